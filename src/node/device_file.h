// The file or block device that a node keeps its chunks in, before the engine sees it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "node/settings.h"

namespace cairn::node {

struct DeviceFile {
  std::string path;
  uint64_t size_bytes = 0;
  bool created = false;  // by this call: it holds nothing but zeroes
};

// Finds the device, or makes a file of device.size whose space is all allocated, so that no write can fail later
// because somebody else filled the file system. A crash leaves no half-made device. Errors: not_found (the folder, or a
// path in /dev that isn't there), permission_denied, no_space, invalid_argument (neither a file nor a block device).
Result<DeviceFile> find_or_create_device(const std::string& path, const NodeSettings& settings);

}  // namespace cairn::node
