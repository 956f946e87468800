// The log: one line per event, on standard error, with time, level and place. Data paths log nothing at info.
//
//   LOG(info, "device {} opened, {} chunks", name, count);
//
// This is the one process-wide object of the code base: a log line is wanted most where nobody handed a logger in.
#pragma once

#include <fmt/core.h>

#include <string_view>

namespace cairn::log {

enum class Level { debug, info, warn, error, off };
enum class Format { text, json };

// Called once by a program's main before threads start. Before that, lines at warn and above go to standard error as
// text.
void setup(Level level, Format format);
bool enabled(Level level) noexcept;
void write(Level level, const char* file, int line, std::string_view text);

}  // namespace cairn::log

#define LOG(level, ...)                                                                                     \
  do {                                                                                                      \
    if (::cairn::log::enabled(::cairn::log::Level::level))                                                  \
      ::cairn::log::write(::cairn::log::Level::level, __FILE_NAME__, __LINE__, ::fmt::format(__VA_ARGS__)); \
  } while (false)
