// Somebody between a client and a server who have the same key, or between two who haven't. He may change, cut,
// prolong, drop, repeat and invent messages until the connection is made. If a call is executed, then both had the key
// and he had changed nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/assert.h"
#include "srpc/testing/keys.h"
#include "srpc/testing/middleman.h"

namespace {

using namespace cairn;
using namespace cairn::srpc;
using namespace cairn::srpc::testing;

// hello, challenge, proof, hello reply. What is forged behind them isn't the handshake's affair.
constexpr size_t kMessages = 4;

// Four bytes of input each.
struct Edit {
  enum class What : uint8_t { flip, cut, append, drop, repeat, invent };
  size_t message;
  What what;
  uint8_t at;
  std::byte value;
};

std::vector<Edit> edits_of(std::span<const uint8_t> input) {
  std::vector<Edit> edits;
  for (; input.size() >= 4 && edits.size() < 20; input = input.subspan(4)) {
    edits.push_back({input[0] % kMessages, static_cast<Edit::What>(input[1] % 6), input[2], std::byte{input[3]}});
  }
  return edits;
}

class Attacker {
 public:
  explicit Attacker(std::vector<Edit> edits) : edits_(std::move(edits)) {}

  Bytes operator()(const Passing& passing) {
    const size_t number = count_++;
    if (number >= kMessages) return passing.bytes;
    Bytes body = passing.metadata;
    Bytes out;  // what is invented comes first: behind a proof it would be the client's word already
    size_t times = 1;
    for (const Edit& edit : edits_) {
      if (edit.message != number) continue;
      switch (edit.what) {
        case Edit::What::flip:
          if (!body.empty()) body[edit.at % body.size()] ^= edit.value;
          break;
        case Edit::What::cut:
          body.resize(std::min<size_t>(body.size(), edit.at));
          break;
        case Edit::What::append:
          body.resize(std::min(body.size() + edit.at, kMaxMetadata), edit.value);
          break;
        case Edit::What::drop:
          times = 0;
          break;
        case Edit::What::repeat:
          // A hello reply that comes again comes behind the handshake.
          if (number < 3) times = 2;
          break;
        case Edit::What::invent:
          out = std::move(out) + encode_message({.kind = static_cast<Kind>(1 + edit.at % kLastKind)},
                                                Bytes(static_cast<uint8_t>(edit.value), std::byte{edit.at}));
          break;
      }
    }
    for (; times > 0; --times) out = std::move(out) + passing.with(body);
    // What a newer client says behind its proof is none of the server's business.
    const bool longer_proof = passing.header.kind == Kind::proof && body.size() > sizeof(ProofBody) &&
                              out == passing.with(body) &&
                              std::ranges::equal(passing.metadata, std::span(body).first(sizeof(ProofBody)));
    if (out != passing.bytes && !longer_proof) attacked_ = true;
    return out;
  }
  bool attacked() const { return attacked_; }

 private:
  std::vector<Edit> edits_;
  size_t count_ = 0;
  bool attacked_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const KeyRing ring(keys_of({1}));
  const KeyRing other(keys_of({2}));
  // Two with the same key, mostly; else one has another one, or none.
  const std::array<const KeyRing*, 8> choices = {&ring, &ring, &ring, &ring, &ring, &ring, &other, nullptr};
  const KeyRing* client_keys = choices[data[0] % 8];
  Attacker attacker(edits_of(std::span(data + 1, size - 1)));
  Bench bench({.keys = &ring}, [&](const Passing& passing) { return attacker(passing); }, 1 + data[0]);
  const bool served = bench.connects({.keys = client_keys});
  const bool honest = client_keys == &ring && !attacker.attacked();
  ASSERT(served == honest);
  ASSERT(bench.methods.echoes == (honest ? 1U : 0U));
  return 0;
}
