// The file by which scripts learn that a node is up, and how to talk to it.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "node/data_directory.h"

namespace cairn::node {

// "s3" -> "127.0.0.1:9000".
using Endpoints = std::map<std::string, std::string>;

// {"endpoints": {...}, "access_key", "secret_key", "admin_token", "cluster_id", "pid"}. Written whole and with mode
// 0600, since it holds secrets; whoever sees the file sees all of it. The access key is left out when it was deleted
// meanwhile.
Result<void> write_ready_file(const std::string& path, const Endpoints& endpoints, const DataDirectory& directory,
                              bool access_key_valid);

// Where the CLI finds the endpoints of the node that uses a data directory; without secrets.
std::string endpoints_path(const std::string& data_directory);
Result<void> write_endpoints(const Endpoints& endpoints, const DataDirectory& directory);

}  // namespace cairn::node
