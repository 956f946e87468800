// Sizes and durations as people write them: "256MiB", "1.5 GiB", "30s", "250ms". Used by settings, the command line and
// everything that prints for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace cairn {

// A number with an optional fraction and one of B, K, M, G, T, P (also as KiB, kib, ...: powers of 1024) or KB, MB, ...
// (powers of 1000). Without a suffix: bytes. A space before the suffix is fine. Errors: invalid_argument, naming what
// was wrong.
Result<uint64_t> parse_size(std::string_view text);
// The shortest text that parse_size gives the same number for: "256MiB", "1000B" never loses a byte.
std::string format_size_exact(uint64_t bytes);
// For eyes: three significant digits, "1.46 TiB".
std::string format_size(uint64_t bytes);

// A number with an optional fraction and ns, us, ms, s, m, h or d. A suffix is required, 0 apart: a bare "30" means
// seconds to some and milliseconds to others.
Result<Duration> parse_duration(std::string_view text);
// The shortest text that parse_duration gives the same duration for.
std::string format_duration_exact(Duration duration);
// For eyes: the two largest units, "3d 4h", "12m 5s", "340ms".
std::string format_duration(Duration duration);

}  // namespace cairn
