// For tests: methods that behave well, slowly, badly.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "mem/pool.h"
#include "srpc/push_target.h"
#include "srpc/server.h"

namespace cairn::srpc::testing {

struct EchoBody {
  Le64 number;
  Le32 delay_us;
};
// Gives back number + 1, the tail and the payload, after delay_us.
struct Echo {
  static constexpr MethodId kId{0x0101};
  static constexpr std::string_view kName = "echo";
  using Request = EchoBody;
  using Reply = EchoBody;
};

struct SizeBody {
  Le32 bytes;
  Le32 crc;
};
// Takes payload, gives its size and checksum.
struct Put {
  static constexpr MethodId kId{0x0102};
  static constexpr std::string_view kName = "put";
  using Request = None;
  using Reply = SizeBody;
};
// Gives that many bytes.
struct Get {
  static constexpr MethodId kId{0x0103};
  static constexpr std::string_view kName = "get";
  using Request = SizeBody;
  using Reply = SizeBody;
};
// Fails with the code and text (tail) it is told.
struct CodeBody {
  Le16 code;
};
struct Fail {
  static constexpr MethodId kId{0x0104};
  static constexpr std::string_view kName = "fail";
  using Request = CodeBody;
  using Reply = None;
};
// Answers when it is cancelled: with the reason.
struct Hang {
  static constexpr MethodId kId{0x0105};
  static constexpr std::string_view kName = "hang";
  using Request = None;
  using Reply = None;
};

// Counts what it is told, as a call or as a notice, after delay_us.
struct Note {
  static constexpr MethodId kId{0x0106};
  static constexpr std::string_view kName = "note";
  using Request = EchoBody;
  using Reply = None;
};
// From now on the client is pushed every number that comes with Note.
struct Subscribe {
  static constexpr MethodId kId{0x0107};
  static constexpr std::string_view kName = "subscribe";
  using Request = None;
  using Reply = None;
};
// What is pushed.
struct Noted {
  static constexpr MethodId kId{0x0108};
  static constexpr std::string_view kName = "noted";
  using Request = EchoBody;
  using Reply = None;
};
// As Echo, but may be executed twice.
struct Again {
  static constexpr MethodId kId{0x0109};
  static constexpr std::string_view kName = "again";
  static constexpr bool kIdempotent = true;
  using Request = EchoBody;
  using Reply = EchoBody;
};

// Adds the number to a sum, once, and gives what it is then; with the tail and the payload, after delay_us.
struct Add {
  static constexpr MethodId kId{0x010a};
  static constexpr std::string_view kName = "add";
  static constexpr bool kSequenced = true;
  using Request = EchoBody;
  using Reply = EchoBody;
};

inline std::byte pattern(size_t at) { return static_cast<std::byte>((at * 31) ^ (at >> 8)); }

inline uint32_t crc_of(const mem::BufChain& chain) {
  uint32_t crc = 0;
  chain.for_each([&](std::span<const std::byte> piece) { crc = crc32c(piece, crc); });
  return crc;
}

// Payload with the pattern; the chain's memory must be there.
inline Task<Result<mem::BufChain>> make_payload(mem::Pool* pool, size_t size, CancelToken cancel = {}) {
  CO_TRY(auto chain, co_await pool->alloc_chain(size, mem::Purpose::client, cancel));
  size_t at = 0;
  for (const mem::Buf& buf : chain.slices()) {
    auto* bytes = const_cast<std::byte*>(buf.data());
    for (size_t i = 0; i < buf.size(); ++i) bytes[i] = pattern(at++);
  }
  co_return chain;
}

class Methods {
 public:
  explicit Methods(Server& server, uint32_t max_hang = 2000) {
    server.register_method<Echo>(*this, &Methods::echo, {.max_concurrent = 2000, .max_tail = 4000});
    server.register_method<Put>(*this, &Methods::put);
    // Without payload in requests: it waits for memory, and must not hold some meanwhile.
    server.register_method<Get>(*this, &Methods::get, {.max_data = 0});
    server.register_method<Fail>(*this, &Methods::fail, {.max_tail = 4000});
    server.register_method<Note>(*this, &Methods::note, {.max_concurrent = max_hang});
    server.register_method<Subscribe>(*this, &Methods::subscribe);
    server.register_method<Again>(*this, &Methods::echo, {.max_concurrent = 2000, .max_tail = 4000});
    server.register_method<Add>(*this, &Methods::add, {.max_concurrent = 2000, .max_tail = 4000});
    server.register_method<Hang>(*this, &Methods::hang, {.max_concurrent = max_hang, .retry_after = milliseconds(7)});
  }

  uint64_t echoes = 0;
  uint64_t hanging = 0;
  uint64_t hung = 0;  // calls of hang that have ended
  Errc last_hang_reason = Errc::ok;
  uint64_t last_map_epoch = 0;
  uint64_t notes = 0;
  uint64_t sum_of_notes = 0;
  std::vector<std::shared_ptr<PushTarget>> subscribers;
  uint64_t last_features = 0;
  uint64_t adds = 0;  // executed
  uint64_t sum = 0;
  uint64_t adds_cancelled = 0;
  Trace last_trace;

 private:
  Task<Result<Message<EchoBody>>> echo(CallContext& context, Message<EchoBody> request) {
    ++echoes;
    last_map_epoch = context.map_epoch;
    last_trace = context.trace;
    last_features = context.features;
    if (request.meta.delay_us > 0) {
      CO_TRY(co_await context.loop.sleep(microseconds(request.meta.delay_us), context.cancel));
    }
    request.meta.number = request.meta.number + 1;
    co_return request;
  }
  Task<Result<Message<EchoBody>>> add(CallContext& context, Message<EchoBody> request) {
    ++adds;
    last_trace = context.trace;
    if (request.meta.delay_us > 0) {
      auto slept = co_await context.loop.sleep(microseconds(request.meta.delay_us), context.cancel);
      if (!slept) ++adds_cancelled;
      CO_TRY(slept);
    }
    sum += request.meta.number;
    request.meta.number = sum;
    co_return request;
  }
  Task<Result<Message<SizeBody>>> put(CallContext&, Message<None> request) {
    SizeBody size{static_cast<uint32_t>(request.data.size()), crc_of(request.data)};
    co_return Message<SizeBody>{.meta = size, .tail = {}, .data = {}};
  }
  Task<Result<Message<SizeBody>>> get(CallContext& context, Message<SizeBody> request) {
    CO_TRY(auto data, co_await make_payload(&context.pool, request.meta.bytes, context.cancel));
    SizeBody size{request.meta.bytes, crc_of(data)};
    co_return Message<SizeBody>{.meta = size, .tail = {}, .data = std::move(data)};
  }
  Task<Result<Message<None>>> note(CallContext& context, Message<EchoBody> request) {
    if (request.meta.delay_us > 0) {
      CO_TRY(co_await context.loop.sleep(microseconds(request.meta.delay_us), context.cancel));
    }
    ++notes;
    sum_of_notes += request.meta.number;
    for (const auto& target : subscribers) (void)target->push<Noted>(request);
    co_return Message<None>{};
  }
  Task<Result<Message<None>>> subscribe(CallContext& context, Message<None>) {
    subscribers.push_back(context.client);
    co_return Message<None>{};
  }
  Task<Result<Message<None>>> fail(CallContext& context, Message<CodeBody> request) {
    context.retry_after = milliseconds(3);
    co_return Error(errc_from_wire(request.meta.code), std::move(request.tail));
  }
  Task<Result<Message<None>>> hang(CallContext& context, Message<None>) {
    ++hanging;
    auto slept = co_await context.loop.sleep_until(Time::never(), context.cancel);
    --hanging;
    ++hung;
    last_hang_reason = slept.code();
    co_return std::move(slept).error();
  }
};

}  // namespace cairn::srpc::testing
