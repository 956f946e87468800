#include "base/json_text.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(JsonText, EscapesWhatJsonDemands) {
  EXPECT_EQ(json_escape("plain / text"), "plain / text");
  EXPECT_EQ(json_escape("\"quoted\" \\ back"), R"(\"quoted\" \\ back)");
  EXPECT_EQ(json_escape(std::string_view("a\n\t\0b\x1f", 6)), R"(a\u000a\u0009\u0000b\u001f)");
  EXPECT_EQ(json_escape(""), "");
}

TEST(JsonText, KeepsUtf8AndNothingElse) {
  for (const char* good : {"\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x98\x80", "\xef\xbf\xbf",
                           "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xc2\x80"}) {
    EXPECT_EQ(json_escape(good), good);
  }
  EXPECT_EQ(json_escape("a\xff"), "a\\u00ff");
  EXPECT_EQ(json_escape("\xc3"), "\\u00c3");                        // cut short
  EXPECT_EQ(json_escape("\xc3("), "\\u00c3(");                      // not continued
  EXPECT_EQ(json_escape("\xc0\xaf"), "\\u00c0\\u00af");             // "/" the long way
  EXPECT_EQ(json_escape("\xed\xa0\x80"), "\\u00ed\\u00a0\\u0080");  // half of a pair
  EXPECT_EQ(json_escape("\xf4\x90\x80\x80"), "\\u00f4\\u0090\\u0080\\u0080");
  EXPECT_EQ(json_escape("\xe0\x9f\xbf"), "\\u00e0\\u009f\\u00bf");
}

}  // namespace
}  // namespace cairn
