// The data directory: what a node keeps besides its devices.
//
//   DATA/                 0700
//   ├── lock              held (flock) by the running cairnd, with its pid
//   ├── node.json         format version, cluster and node identity, the devices that belong to it
//   ├── credentials.json  0600  the access key made at first start
//   ├── admin_token       0600  the bearer token of the admin API
//   ├── cluster_key       0600  keys that prove to other nodes that this one belongs to the cluster (srpc/key_file.h)
//   ├── device0           the default device file
//   └── store/            the ordered store (RocksDB)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/id.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/time.h"
#include "srpc/key_ring.h"

namespace cairn::node {

// Raised when an older cairnd could no longer read the directory or the devices.
inline constexpr uint32_t kNodeFormat = 1;

struct Identity {
  Id128 cluster_id;
  Id128 node_id;
  int64_t created_unix_ns = 0;
};

struct Credentials {
  std::string access_key;
  std::string secret_key;
};

// A device that was formatted for this node.
struct KnownDevice {
  Id128 id;
  std::string path;
};

// An open data directory; owned by one process at a time.
class DataDirectory {
 public:
  // Creates what is missing, locks it, and reads or makes the identity and the secrets. Errors: busy (with the pid of
  // the holder), unsupported (a newer format), corrupt (a file that isn't ours or is damaged), permission_denied,
  // no_space, not_found (the parent).
  static Result<DataDirectory> open(const std::string& path, Rng& rng, const WallClock& clock);

  const std::string& path() const { return path_; }
  const Identity& identity() const { return identity_; }
  const Credentials& credentials() const { return credentials_; }
  const std::string& admin_token() const { return admin_token_; }
  // As the file has them: the first proves. At least one.
  const std::vector<srpc::SharedKey>& cluster_keys() const { return cluster_keys_; }
  const std::vector<KnownDevice>& devices() const { return devices_; }

  std::string default_device_path() const { return path_ + "/device0"; }
  std::string store_path() const { return path_ + "/store"; }

  // Durable when it returns: from now on a start insists on finding the device.
  Result<void> remember_device(KnownDevice device);

 private:
  Result<void> lock();
  Result<void> load_or_create_identity(Rng& rng, const WallClock& clock);
  Result<void> load_or_create_secrets(Rng& rng);
  Result<void> save_identity() const;

  std::string path_;
  Fd lock_;
  Identity identity_;
  std::vector<KnownDevice> devices_;
  Credentials credentials_;
  std::string admin_token_;
  std::vector<srpc::SharedKey> cluster_keys_;
};

// For the CLI: the token in a data directory, and the endpoint that a node wrote there when it became ready.
std::string admin_token_path(const std::string& data_directory);

}  // namespace cairn::node
