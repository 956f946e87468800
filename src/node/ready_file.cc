#include "node/ready_file.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "node/files.h"

namespace cairn::node {

Result<void> write_ready_file(const std::string& path, const Endpoints& endpoints, const DataDirectory& directory,
                              bool access_key_valid) {
  nlohmann::json document = {{"endpoints", endpoints},
                             {"admin_token", directory.admin_token()},
                             {"cluster_id", directory.identity().cluster_id.to_string()},
                             {"pid", ::getpid()}};
  if (access_key_valid) {
    document["access_key"] = directory.credentials().access_key;
    document["secret_key"] = directory.credentials().secret_key;
  }
  return write_file_durably(path, document.dump(2) + "\n", 0600);
}

std::string endpoints_path(const std::string& data_directory) { return data_directory + "/endpoints.json"; }

Result<void> write_endpoints(const Endpoints& endpoints, const DataDirectory& directory) {
  const nlohmann::json document = {
      {"endpoints", endpoints}, {"cluster_id", directory.identity().cluster_id.to_string()}, {"pid", ::getpid()}};
  return write_file_durably(endpoints_path(directory.path()), document.dump(2) + "\n", 0600);
}

}  // namespace cairn::node
