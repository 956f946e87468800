#include "base/base64.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

std::string encode(std::string_view text) { return to_base64(std::as_bytes(std::span(text))); }

// RFC 4648 section 10.
TEST(Base64, KnownAnswers) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : cases) {
    EXPECT_EQ(encode(plain), coded);
    EXPECT_EQ(from_base64(coded), plain);
  }
}

TEST(Base64, EveryByteSurvives) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(from_base64(encode(all)), all);
}

TEST(Base64, RefusesWhatIsNotCanonical) {
  for (const char* text : {"Z", "Zg", "Zg=", "Z===", "====", "Zh==", "Zm9=", "Zm9v\n", "Zm-v", "Zg==Zg==", "=m9v"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace cairn
