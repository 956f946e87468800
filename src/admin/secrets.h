// Random names and secrets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/rng.h"

namespace cairn::admin {

// Uniform over the alphabet.
std::string random_text(Rng& rng, std::string_view alphabet, size_t length);
// 20 characters, upper case and digits, as clients expect of an access key.
std::string random_access_key(Rng& rng);
// 40 letters and digits: 238 bits.
std::string random_secret_key(Rng& rng);
std::string random_token(Rng& rng);

// Takes the same time wherever the first difference is.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace cairn::admin
