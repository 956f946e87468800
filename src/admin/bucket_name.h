// Which bucket names the admin API creates: those that every S3 client can address.
#pragma once

#include <string_view>

#include "base/status.h"

namespace cairn::admin {

// S3's rules for general purpose buckets: 3 to 63 of a-z, 0-9, '-' and '.', a letter or digit first and last, no two
// dots together, not an IPv4 address. invalid_argument says which one is broken.
Result<void> check_bucket_name(std::string_view name);

}  // namespace cairn::admin
