// A file with the cluster's keys: a line for each, 64 hexadecimal digits; the first is that with which this side proves
// itself, the others are accepted, too (key_ring.h). Empty lines and lines that begin with # are left out.
//
//   openssl rand -hex 32 > cluster.key
//   TRY(auto keys, srpc::read_key_file("cluster.key"));   // std::vector<SharedKey>, for KeyRing
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "srpc/key_ring.h"

namespace cairn::srpc {

// 1 to KeyRing::kMaxKeys of them. `name` stands in the error, what the lines hold never does. Errors: invalid_argument.
Result<std::vector<SharedKey>> parse_keys(std::string_view text, std::string_view name);

// The text isn't left in memory. Errors: not_found, permission_denied, io_error, and those of parse_keys.
Result<std::vector<SharedKey>> read_key_file(const std::string& path);

}  // namespace cairn::srpc
