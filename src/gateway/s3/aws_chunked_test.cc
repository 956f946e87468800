#include "gateway/s3/aws_chunked.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/hex.h"

namespace cairn::s3 {
namespace {

// Runs a decoder as a connection does, with the bytes arriving in pieces that end at `cuts`. Returns the payload, or
// the error's name.
std::string decode(AwsChunkedDecoder& decoder, std::string_view body, const std::vector<size_t>& cuts) {
  std::string payload;
  size_t at = 0;
  size_t arrived = 0;
  size_t next_cut = 0;
  while (!decoder.done()) {
    const std::string_view here = body.substr(at, arrived - at);
    if (decoder.data_left() > 0 && !here.empty()) {
      const size_t n = std::min<uint64_t>(decoder.data_left(), here.size());
      payload.append(here.substr(0, n));
      const auto taken = decoder.data(std::as_bytes(std::span(here.substr(0, n))));
      if (!taken) return std::string(taken.error().name());
      at += n;
      continue;
    }
    if (decoder.data_left() == 0) {
      const auto taken = decoder.consume(here);
      if (!taken) return std::string(taken.error().name());
      at += *taken;
      if (*taken > 0) continue;
    }
    if (arrived == body.size()) return "ended early";
    arrived = next_cut < cuts.size() ? cuts[next_cut++] : body.size();
  }
  return at == body.size() ? payload : "bytes left over";
}

std::string decode_unsigned(std::string_view body, uint64_t length, std::vector<std::string> trailers = {},
                            const std::vector<size_t>& cuts = {}) {
  AwsChunkedDecoder decoder({std::nullopt, std::move(trailers), length});
  return decode(decoder, body, cuts);
}

constexpr std::string_view kCrc = "x-amz-checksum-crc32";
constexpr std::string_view kHello = "b\r\nhello world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n";

TEST(AwsChunked, UnsignedWithTrailerSplitAtEveryByte) {
  for (size_t a = 0; a <= kHello.size(); ++a) {
    for (size_t b = a; b <= kHello.size(); ++b) {
      AwsChunkedDecoder decoder({std::nullopt, {std::string(kCrc)}, 11});
      ASSERT_EQ(decode(decoder, kHello, {a, b}), "hello world") << a << " " << b;
      ASSERT_EQ(decoder.trailers().at(std::string(kCrc)), "DUoRhQ==");
    }
  }
}

TEST(AwsChunked, ByteByByte) {
  std::vector<size_t> cuts;
  for (size_t i = 1; i < kHello.size(); ++i) cuts.push_back(i);
  EXPECT_EQ(decode_unsigned(kHello, 11, {std::string(kCrc)}, cuts), "hello world");
}

TEST(AwsChunked, Framing) {
  EXPECT_EQ(decode_unsigned("0\r\n\r\n", 0), "");
  EXPECT_EQ(decode_unsigned("B\r\nhello world\r\n0\r\n\r\n", 11), "hello world");
  EXPECT_EQ(decode_unsigned("1\r\nh\r\n00a\r\nello world\r\n0\r\n\r\n", 11), "hello world");
  EXPECT_EQ(decode_unsigned("0;chunk-signature=" + std::string(64, 'a') + "\r\n\r\n", 0), "");  // P31
  const std::string big(65536, 'x');
  EXPECT_EQ(decode_unsigned("10000\r\n" + big + "\r\n0\r\n\r\n", 65536), big);
}

TEST(AwsChunked, RefusesBadFraming) {
  const std::pair<std::string, const char*> cases[] = {
      {"xyz\r\n", "InvalidRequest"},
      {"\r\n", "InvalidRequest"},
      {"-1\r\n", "InvalidRequest"},
      {"0x5\r\n", "InvalidRequest"},
      {"fffffffffffffffff\r\n", "InvalidRequest"},  // beyond 64 bits
      {"ffffffffffffffff\r\n", "IncompleteBody"},
      {"c\r\nhello world!\r\n0\r\n\r\n", "IncompleteBody"},  // 12 > 11
      {"a\r\nhello worl\r\n0\r\n\r\n", "IncompleteBody"},    // 10 < 11
      {"b\r\nhello worldXX0\r\n\r\n", "InvalidRequest"},
      {std::string(2000, '0'), "InvalidRequest"},
      {"b\r\nhello world\r\n0\r\nx-other:1\r\n\r\n", "MalformedTrailerError"},
      {"b\r\nhello world\r\n0\r\nnonsense\r\n\r\n", "MalformedTrailerError"},
      {"b\r\nhello world\r\n", "ended early"},
  };
  for (const auto& [body, expected] : cases) EXPECT_EQ(decode_unsigned(body, 11), expected) << body.substr(0, 40);
}

TEST(AwsChunked, AnnouncedTrailerMustCome) {
  EXPECT_EQ(decode_unsigned("b\r\nhello world\r\n0\r\n\r\n", 11, {std::string(kCrc)}), "MalformedTrailerError");
  EXPECT_EQ(decode_unsigned("b\r\nhello world\r\n0\r\nx-amz-checksum-crc32:a\r\nx-amz-checksum-crc32:b\r\n\r\n", 11,
                            {std::string(kCrc)}),
            "MalformedTrailerError");
}

class AwsChunkedSigned : public testing::Test {
 protected:
  AwsChunkedSigned() {
    authorization_.date = "20130524";
    authorization_.region = "us-east-1";
    authorization_.service = "s3";
    authorization_.timestamp = "20130524T000000Z";
    authorization_.signature = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
  }
  ChunkSigner signer() const {
    return {signing_key("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", authorization_), authorization_};
  }
  std::string decode_signed(std::string_view body, uint64_t length, std::vector<std::string> trailers = {}) {
    AwsChunkedDecoder decoder({signer(), std::move(trailers), length});
    return decode(decoder, body, {});
  }

  Authorization authorization_;
};

// The example of the documentation: 65,536 and 1,024 bytes of "a".
TEST_F(AwsChunkedSigned, PublishedExample) {
  std::string body = "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" +
                     std::string(65536, 'a') +
                     "\r\n400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" +
                     std::string(1024, 'a') +
                     "\r\n0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n";
  EXPECT_EQ(decode_signed(body, 66560), std::string(66560, 'a'));
  body[1000] = 'b';
  EXPECT_EQ(decode_signed(body, 66560), "SignatureDoesNotMatch");
}

TEST_F(AwsChunkedSigned, TrailerMustBeSigned) {
  ChunkSigner chain = signer();
  const std::string first = chain.sign_chunk(to_hex(sha256("hello world")));
  const std::string last = chain.sign_chunk(to_hex(sha256("")));
  const std::string trailer = chain.sign_trailer("x-amz-checksum-crc32:DUoRhQ==\n");
  const std::string body = "b;chunk-signature=" + first + "\r\nhello world\r\n0;chunk-signature=" + last +
                           "\r\nx-amz-checksum-crc32:DUoRhQ==\r\n";
  const std::vector<std::string> announced{std::string(kCrc)};
  EXPECT_EQ(decode_signed(body + "x-amz-trailer-signature:" + trailer + "\r\n\r\n", 11, announced), "hello world");
  EXPECT_EQ(decode_signed(body + "\r\n", 11, announced), "SignatureDoesNotMatch");
  EXPECT_EQ(decode_signed(body + "x-amz-trailer-signature:" + std::string(64, '0') + "\r\n\r\n", 11, announced),
            "SignatureDoesNotMatch");
}

TEST_F(AwsChunkedSigned, ChunksWithoutSignatureAreRefused) {
  EXPECT_EQ(decode_signed("b\r\nhello world\r\n0\r\n\r\n", 11), "SignatureDoesNotMatch");
}

}  // namespace
}  // namespace cairn::s3
