// The device that a node keeps its chunks on: found, or made when it is a file that doesn't exist yet.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "engine/disk_file.h"
#include "node/settings.h"

namespace cairn::node {

// Opens the device, or makes a file of device.size whose space is all allocated, so that no write can fail later
// because somebody else filled the file system. A crash leaves no half-made device. Errors, besides DiskFile's:
// not_found (the folder, or a path in /dev that isn't there), no_space.
Result<engine::DiskFile> find_or_create_device(const std::string& path, const NodeSettings& settings);

}  // namespace cairn::node
