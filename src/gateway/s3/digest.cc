#include "gateway/s3/digest.h"

#include <openssl/evp.h>

#include "base/assert.h"

namespace cairn::s3 {
namespace {

// Fetched once: looking an algorithm up by EVP_md5() takes a lock and a search at each use since OpenSSL 3.
const EVP_MD* algorithm(DigestKind kind) {
  static const EVP_MD* const md5 = EVP_MD_fetch(nullptr, "MD5", nullptr);
  static const EVP_MD* const sha1 = EVP_MD_fetch(nullptr, "SHA1", nullptr);
  static const EVP_MD* const sha256_md = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  switch (kind) {
    case DigestKind::md5:
      return md5;
    case DigestKind::sha1:
      return sha1;
    case DigestKind::sha256:
      return sha256_md;
  }
  return nullptr;
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

struct Digest::State {
  std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};
  const EVP_MD* md = nullptr;
};

Digest::Digest(DigestKind kind) : state_(std::make_unique<State>()) {
  state_->md = algorithm(kind);
  ASSERT(state_->md != nullptr && state_->context != nullptr);
  ASSERT(EVP_DigestInit_ex2(state_->context.get(), state_->md, nullptr) == 1);
}

Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

void Digest::update(std::span<const std::byte> bytes) {
  ASSERT(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Digest::finish() {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  ASSERT(EVP_DigestFinal_ex(state_->context.get(), reinterpret_cast<unsigned char*>(out.data()), &size) == 1);
  out.resize(size);
  ASSERT(EVP_DigestInit_ex2(state_->context.get(), state_->md, nullptr) == 1);
  return out;
}

}  // namespace cairn::s3
