// Authenticator: proves that a call is signed with the secret of a known access key. Nobody is served without.
#pragma once

#include <string>
#include <unordered_map>

#include "gateway/s3/call.h"

namespace cairn::s3 {

// One per reactor.
class Authenticator {
 public:
  // Sets authorization and signing_key of the call. Errors: AccessDenied (anonymous), InvalidAccessKeyId, what sigv4.h
  // lists. The body isn't touched: its hash or its chunks' signatures are held against what was signed when it is read.
  Answer authenticate(Call& call);

 private:
  // Keys for a day and region cost four HMACs; by "secret/date/region".
  static constexpr size_t kMaxKeys = 1024;
  const Sha256& key_for(const std::string& secret, const Authorization& authorization);

  std::unordered_map<std::string, Sha256> keys_;
};

}  // namespace cairn::s3
