#include "admin/secrets.h"

#include <openssl/crypto.h>

namespace cairn::admin {
namespace {

constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr std::string_view kLettersAndDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

}  // namespace

std::string random_text(Rng& rng, std::string_view alphabet, size_t length) {
  std::string text(length, '\0');
  for (char& c : text) c = alphabet[rng.below(alphabet.size())];
  return text;
}

std::string random_access_key(Rng& rng) { return "CA" + random_text(rng, kUpper, 18); }
// No "/" or "+": such secrets break scripts that put them into URLs.
std::string random_secret_key(Rng& rng) { return random_text(rng, kLettersAndDigits, 40); }
std::string random_token(Rng& rng) { return random_text(rng, kLettersAndDigits, 43); }

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace cairn::admin
