// Text inside a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

// What stands between the quotes. Valid UTF-8 passes as it is; a byte that isn't part of it (a client may name an
// object so) becomes the character of its number, because one such byte makes the whole document unreadable.
std::string json_escape(std::string_view text);

}  // namespace cairn
