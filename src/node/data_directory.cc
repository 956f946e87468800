#include "node/data_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "admin/secrets.h"
#include "base/hex.h"
#include "node/files.h"
#include "srpc/key_file.h"

namespace cairn::node {
namespace {

using nlohmann::json;

Error damaged(const std::string& path, std::string_view what) {
  return Error(Errc::corrupt, fmt::format("{} {}; restore it from a backup, or start with an empty --data directory "
                                          "(which makes a new, empty node)",
                                          path, what));
}

// Missing or wrongly typed members become "", so that the caller's check finds them.
std::string text_member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<json> read_json(const std::string& path) {
  TRY(const std::string text, read_small_file(path));
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return damaged(path, "is not a JSON object");
  return parsed;
}

// A secret kept as one line. Made, with mode 0600, when it doesn't exist.
Result<std::string> load_or_create_line(const std::string& path, const std::string& fresh) {
  if (!exists(path)) {
    TRY(write_file_durably(path, fresh + "\n", 0600));
    return fresh;
  }
  TRY(std::string text, read_small_file(path));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.size() < 16) return damaged(path, "holds no secret");
  return text;
}

// A folder that a script made beforehand usually has the umask's mode.
Result<void> close_to_others(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return file_error(errno, "look at the data directory", path);
  if (!S_ISDIR(info.st_mode)) return Error(Errc::invalid_argument, fmt::format("--data {} is not a directory", path));
  if ((info.st_mode & 077) != 0 && ::chmod(path.c_str(), 0700) != 0) {
    return file_error(errno, "close to others (chmod 700)", path);
  }
  return {};
}

}  // namespace

std::string admin_token_path(const std::string& data_directory) { return data_directory + "/admin_token"; }

Result<DataDirectory> DataDirectory::open(const std::string& path, Rng& rng, const WallClock& clock) {
  DataDirectory directory;
  directory.path_ = path;
  while (directory.path_.size() > 1 && directory.path_.ends_with('/')) directory.path_.pop_back();
  if (::mkdir(directory.path_.c_str(), 0700) != 0 && errno != EEXIST) {
    return file_error(errno, "create the data directory", directory.path_);
  }
  TRY(close_to_others(directory.path_));
  TRY(directory.lock());
  TRY(directory.load_or_create_identity(rng, clock));
  TRY(directory.load_or_create_secrets(rng));
  return directory;
}

Result<void> DataDirectory::lock() {
  const std::string path = path_ + "/lock";
  lock_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_) return file_error(errno, "open", path);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return file_error(errno, "lock", path);
    std::string holder = read_small_file(path).value_or("");
    while (!holder.empty() && holder.back() == '\n') holder.pop_back();
    return Error(Errc::busy, fmt::format("data directory {} is in use by {}; stop it first, or choose another --data",
                                         path_, holder.empty() ? "another process" : "pid " + holder));
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock_.get(), 0) != 0 || ::pwrite(lock_.get(), pid.data(), pid.size(), 0) != ssize_t(pid.size())) {
    return file_error(errno, "write", path);
  }
  return {};
}

Result<void> DataDirectory::load_or_create_identity(Rng& rng, const WallClock& clock) {
  const std::string path = path_ + "/node.json";
  if (!exists(path)) {
    // A store or device without an identity is what is left of a node, never a fresh start.
    for (const auto& leftover : {default_device_path(), store_path()}) {
      if (exists(leftover)) return damaged(path, fmt::format("is missing although {} exists", leftover));
    }
    identity_ = {.cluster_id = Id128::random(rng), .node_id = Id128::random(rng), .created_unix_ns = clock.unix_ns()};
    return save_identity();
  }
  TRY(const json document, read_json(path));
  const auto format = document.find("format");
  if (format == document.end() || !format->is_number_unsigned()) return damaged(path, "has no format number");
  if (format->get<uint64_t>() > kNodeFormat) {
    return Error(Errc::unsupported,
                 fmt::format("{} was written by a newer release (format {}, this one reads up to {}); upgrade cairnd",
                             path, format->get<uint64_t>(), kNodeFormat));
  }
  const auto cluster = Id128::parse(text_member(document, "cluster_id"));
  const auto node = Id128::parse(text_member(document, "node_id"));
  if (!cluster || !node || cluster->is_zero() || node->is_zero()) return damaged(path, "has no valid identity");
  identity_ = {.cluster_id = *cluster, .node_id = *node};
  if (const auto created = document.find("created_unix_ns");
      created != document.end() && created->is_number_integer()) {
    identity_.created_unix_ns = created->get<int64_t>();
  }
  const auto devices = document.find("devices");
  if (devices == document.end() || !devices->is_array()) return damaged(path, "has no list of devices");
  for (const auto& entry : *devices) {
    const auto id = entry.is_object() ? Id128::parse(text_member(entry, "id")) : std::nullopt;
    if (!id) return damaged(path, "has a device without an id");
    devices_.push_back({*id, text_member(entry, "path")});
  }
  return {};
}

Result<void> DataDirectory::load_or_create_secrets(Rng& rng) {
  TRY(admin_token_, load_or_create_line(admin_token_path(path_), admin::random_token(rng)));
  const std::string keys_path = path_ + "/cluster_key";
  if (!exists(keys_path)) {
    std::array<std::byte, srpc::SharedKey::kBytes> fresh{};
    rng.fill(fresh);
    TRY(write_file_durably(keys_path, to_hex(fresh) + "\n", 0600));
  }
  auto keys = srpc::read_key_file(keys_path);
  if (!keys) return Error(Errc::corrupt, keys.error().message());
  cluster_keys_ = *std::move(keys);

  const std::string path = path_ + "/credentials.json";
  if (!exists(path)) {
    credentials_ = {admin::random_access_key(rng), admin::random_secret_key(rng)};
    const json document = {{"access_key", credentials_.access_key}, {"secret_key", credentials_.secret_key}};
    return write_file_durably(path, document.dump(2) + "\n", 0600);
  }
  TRY(const json document, read_json(path));
  credentials_ = {text_member(document, "access_key"), text_member(document, "secret_key")};
  if (credentials_.access_key.empty() || credentials_.secret_key.empty()) return damaged(path, "holds no access key");
  return {};
}

Result<void> DataDirectory::save_identity() const {
  json devices = json::array();
  for (const auto& device : devices_) devices.push_back({{"id", device.id.to_string()}, {"path", device.path}});
  const json document = {{"format", kNodeFormat},
                         {"cluster_id", identity_.cluster_id.to_string()},
                         {"node_id", identity_.node_id.to_string()},
                         {"created_unix_ns", identity_.created_unix_ns},
                         {"devices", devices}};
  return write_file_durably(path_ + "/node.json", document.dump(2) + "\n", 0600);
}

Result<void> DataDirectory::remember_device(KnownDevice device) {
  devices_.push_back(std::move(device));
  auto saved = save_identity();
  if (!saved) devices_.pop_back();
  return saved;
}

}  // namespace cairn::node
