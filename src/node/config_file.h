// The config file: TOML, with the settings' names as tables and keys.
//
//   reactors = 2
//   [memory]
//   arena = "512MiB"
//   [s3]
//   domains = ["s3.example.com"]
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "node/settings.h"

namespace cairn::node {

// Sets what the text names. `path` stands before errors and as the values' origin, with the line. Errors:
// invalid_argument; settings may have been changed partly then.
Result<void> apply_config_text(std::string_view text, const std::string& path, Settings& settings);
// Reads the file first: not_found, permission_denied, io_error.
Result<void> apply_config_file(const std::string& path, Settings& settings);

}  // namespace cairn::node
