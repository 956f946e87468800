// Message digests and HMAC by OpenSSL, fed in pieces.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cairn::s3 {

enum class DigestKind { md5, sha1, sha256 };

class Digest {
 public:
  explicit Digest(DigestKind kind);
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  ~Digest();

  void update(std::span<const std::byte> bytes);
  // The raw digest of everything so far; the object starts anew.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

using Sha256 = std::array<std::byte, 32>;
Sha256 sha256(std::string_view text);
Sha256 hmac_sha256(std::span<const std::byte> key, std::string_view text);
// In time that doesn't depend on where they differ: for signatures.
bool equal_secret(std::string_view a, std::string_view b);

}  // namespace cairn::s3
