#include "base/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/hex.h"

namespace cairn {
namespace {

std::string_view view_of(const Sha256& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// FIPS 180-2, appendix B.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// RFC 4231, cases 1, 2 and 6 (a key longer than a block).
TEST(HmacSha256, KnownAnswers) {
  const std::string key(20, '\x0b');
  EXPECT_EQ(to_hex(hmac_sha256(std::as_bytes(std::span(key)), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(to_hex(hmac_sha256(std::as_bytes(std::span(std::string_view("Jefe"))), "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const std::string large(131, '\xaa');
  EXPECT_EQ(
      to_hex(hmac_sha256(std::as_bytes(std::span(large)), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(EqualSecret, SeesEveryByte) {
  const Sha256 a = sha256("a");
  EXPECT_TRUE(equal_secret(a, Sha256(a)));
  for (size_t i = 0; i < a.size(); ++i) {
    Sha256 b = a;
    b[i] ^= std::byte{1};
    EXPECT_FALSE(equal_secret(a, b));
    EXPECT_FALSE(equal_secret(view_of(a), view_of(b)));
  }
  EXPECT_FALSE(equal_secret(view_of(a), view_of(a).substr(1)));
  EXPECT_TRUE(equal_secret(std::string_view(), std::string_view()));
}

TEST(Wipe, LeavesNothing) {
  Sha256 secret = sha256("a");
  wipe(secret);
  EXPECT_TRUE(std::ranges::all_of(secret, [](std::byte b) { return b == std::byte{0}; }));
}

}  // namespace
}  // namespace cairn
