#include "base/log.h"

#include <gtest/gtest.h>

#include <regex>

namespace cairn {
namespace {

std::string captured(void (*write)()) {
  ::testing::internal::CaptureStderr();
  write();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, WritesOneLinePerEventWithTimeLevelAndPlace) {
  log::setup(log::Level::info, log::Format::text);
  const std::string line = captured([] { LOG(warn, "disk {} is {} % full", "d0", 95); });
  EXPECT_TRUE(std::regex_match(
      line, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warn\S* +log_test\.cc:\d+ disk d0 is 95 % full\n)")))
      << line;
  EXPECT_EQ(captured([] { LOG(debug, "too fine"); }), "");
  log::setup(log::Level::error, log::Format::text);
  EXPECT_EQ(captured([] { LOG(warn, "not wanted now"); }), "");
}

TEST(Log, BracesInValuesAreOnlyText) {
  log::setup(log::Level::info, log::Format::text);
  EXPECT_NE(captured([] { LOG(info, "key {}", "{} {0} %v"); }).find("key {} {0} %v\n"), std::string::npos);
}

TEST(Log, JsonLinesStayJsonWhateverIsLogged) {
  log::setup(log::Level::info, log::Format::json);
  const std::string line = captured([] { LOG(info, "key '{}'", "a\"b\\c\nd\xff"); });
  EXPECT_TRUE(std::regex_match(
      line,
      std::regex(
          R"(\{"time":"[^"]+Z","level":"info","at":"log_test\.cc:\d+","message":"key 'a\\"b\\\\c\\u000ad\\u00ff'"\}\n)")))
      << line;
  log::setup(log::Level::warn, log::Format::text);
}

}  // namespace
}  // namespace cairn
