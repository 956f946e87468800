// Message digests by OpenSSL, fed in pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

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

}  // namespace cairn::s3
