// A head and what follows it, by any split into pieces: the parser never reads beyond its bytes, decides the same
// however they come, and a body never takes a byte of what follows it.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/rng.h"
#include "gateway/http/body.h"
#include "gateway/http/head_parser.h"
#include "gateway/http/testing/string_source.h"
#include "reactor/loop.h"
#include "reactor/scope.h"

namespace {

using namespace cairn;

class FuzzLoop final : public Loop {
 public:
  FuzzLoop() : Loop(rng_), rng_(1) {}
  Time now() const override { return {}; }
  void run() {
    while (run_ready() > 0) {
    }
  }

 private:
  SeededRng rng_;
};

class OpenGate final : public http::BodyGate {
 public:
  Task<Result<void>> on_first_use() override { co_return Result<void>(); }
};

struct Outcome {
  Errc code = Errc::ok;
  std::string text;
  size_t rest = 0;
  bool complete = false;
};

Task<void> read_body(http::Body* body, Outcome* outcome) {
  auto text = co_await http::read_text(*body, 1 << 16);
  outcome->code = text.code();
  if (text) outcome->text = *std::move(text);
  outcome->complete = body->complete();
}

Outcome decode(const http::RequestHead& head, const std::string& bytes, size_t piece) {
  FuzzLoop loop;
  http::testing::StringSource wire(bytes, piece);
  OpenGate gate;
  http::Body body(head, wire, gate);
  Outcome outcome;
  Scope scope(loop);
  scope.spawn(&read_body, &body, &outcome);
  loop.run();
  ASSERT(scope.running() == 0);
  outcome.rest = wire.rest().size();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const http::HeadScan scan = http::scan_head(bytes, 0);
  if (scan.state != http::HeadScan::State::complete) return 0;
  ASSERT(scan.size <= bytes.size());
  for (size_t split = 0; split < scan.size; split += 1 + scan.size / 8) {
    const http::HeadScan again = http::scan_head(bytes, split);
    ASSERT(again.state == scan.state && again.size == scan.size);
  }
  std::string head_bytes = bytes.substr(0, scan.size);
  http::RequestHead head;
  if (const auto error = http::parse_head(head_bytes, {}, head)) {
    ASSERT(error->status >= 400 && error->status < 600 && !error->reason.empty());
    return 0;
  }
  ASSERT(!head.target.empty());
  const std::string rest = bytes.substr(scan.size);
  const Outcome whole = decode(head, rest, SIZE_MAX);
  const Outcome pieces = decode(head, rest, 1 + size % 7);
  ASSERT(whole.complete == pieces.complete && whole.text == pieces.text);
  if (whole.complete) {
    ASSERT(whole.rest == pieces.rest);
    if (head.framing != http::RequestHead::Framing::chunked) ASSERT(rest.size() - whole.rest == head.content_length);
  }
  return 0;
}
