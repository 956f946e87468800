#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "base/json_text.h"

namespace cairn::log {
namespace {

struct State {
  Level level = Level::warn;
  Format format = Format::text;
  std::shared_ptr<spdlog::logger> logger = make_logger();

  static std::shared_ptr<spdlog::logger> make_logger() {
    auto logger = std::make_shared<spdlog::logger>("cairn", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_level(spdlog::level::trace);
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %-5l %v", spdlog::pattern_time_type::utc);
    logger->flush_on(spdlog::level::info);
    return logger;
  }
};

State& state() {
  // cairn-allow(global): the one process-wide object, see log.h
  static State the_state;
  return the_state;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
    case Level::off:
      return spdlog::level::off;
  }
  return spdlog::level::err;
}

}  // namespace

void setup(Level level, Format format) {
  state().level = level;
  state().format = format;
  if (format == Format::json) {
    state().logger->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})", spdlog::pattern_time_type::utc);
  }
}

bool enabled(Level level) noexcept { return level >= state().level; }

void write(Level level, const char* file, int line, std::string_view text) {
  auto& s = state();
  if (s.format == Format::json) {
    s.logger->log(to_spdlog(level), R"("at":"{}:{}","message":"{}")", file, line, json_escape(text));
  } else {
    s.logger->log(to_spdlog(level), "{}:{} {}", file, line, text);
  }
}

}  // namespace cairn::log
