// Small files that a node keeps: read whole, written so that a crash leaves the old one or the new one.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace cairn::node {

// errno as an Error that tells "not there", "not allowed" and "full" apart.
Error file_error(int errno_value, std::string_view doing, std::string_view path);

bool exists(const std::string& path);
// At most 1 MiB: too_large beyond it.
Result<std::string> read_small_file(const std::string& path);
// Writes a temporary file beside it, syncs it, renames it over `path` and syncs the directory.
Result<void> write_file_durably(const std::string& path, std::string_view content, mode_t mode);
// Makes renames in a directory durable.
Result<void> sync_directory(const std::string& path);
// The directory that a path is in.
std::string parent_of(const std::string& path);
// Absence is fine.
void remove_file(const std::string& path);

}  // namespace cairn::node
