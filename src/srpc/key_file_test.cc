#include "srpc/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace cairn::srpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kOne(64, '1');
const std::string kTwo = std::string(62, '0') + "aB";

std::byte last_byte(const SharedKey& key) { return key.bytes().back(); }

TEST(KeyFile, ALineIsAKey) {
  auto keys = parse_keys(kOne, "f");
  ASSERT_TRUE(keys);
  ASSERT_EQ(keys->size(), 1U);
  EXPECT_EQ(last_byte((*keys)[0]), std::byte{0x11});
  // The first one proves.
  keys = parse_keys("# the new one\n\n  " + kTwo + " \r\n# the old one\n" + kOne + "\n", "f");
  ASSERT_TRUE(keys);
  ASSERT_EQ(keys->size(), 2U);
  EXPECT_EQ(last_byte((*keys)[0]), std::byte{0xab});
  EXPECT_EQ(last_byte((*keys)[1]), std::byte{0x11});
}

TEST(KeyFile, WhatIsNoKeyIsRefusedWithoutShowingIt) {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::string five = kOne + "\n" + kOne + "\n" + kOne + "\n" + kOne + "\n" + kOne + "\n";
  for (const Case& c : {Case{"", "f has no key: a key is a line of 64"}, Case{"# nothing\n\n", "f has no key"},
                        Case{kOne.substr(1), "f has no key in line 1"}, Case{kOne + "1", "f has no key in line 1"},
                        Case{kOne + "\n" + std::string(64, 'g'), "f has no key in line 2"},
                        Case{kOne + " " + kOne, "f has no key in line 1"}, Case{five, "f has more than 4 keys"}}) {
    const auto keys = parse_keys(c.text, "f");
    ASSERT_FALSE(keys) << c.text;
    EXPECT_EQ(keys.error().code(), Errc::invalid_argument);
    EXPECT_THAT(keys.error().message(), HasSubstr(c.message));
    EXPECT_THAT(keys.error().message(), Not(HasSubstr("1111")));
  }
}

TEST(KeyFile, IsReadFromAFile) {
  const std::string path = ::testing::TempDir() + "key_file_test.keys";
  std::ofstream(path) << kOne << "\n";
  EXPECT_TRUE(read_key_file(path));
  std::ofstream(path) << std::string(5000, '\n') << kOne;
  EXPECT_EQ(read_key_file(path).code(), Errc::invalid_argument);
  std::filesystem::remove(path);
  const auto missing = read_key_file(path);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr(path));
  EXPECT_FALSE(read_key_file(::testing::TempDir()));  // a folder
}

}  // namespace
}  // namespace cairn::srpc
