// The bytes of a stream give the same messages in whatever pieces they arrive, and nothing else may happen.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "mem/pool.h"
#include "srpc/stream/moved_payload.h"
#include "srpc/stream/reader.h"
#include "srpc/testing/manual_loop.h"
#include "srpc/wire.h"

namespace {

using namespace cairn;
using namespace cairn::srpc;

constexpr size_t kMemory = size_t{2} << 20;
constexpr size_t kLimit = size_t{1} << 20;

struct World {
  World() : storage(new std::byte[kMemory + mem::kPage]) {
    const auto at = (reinterpret_cast<uintptr_t>(storage.get()) + mem::kPage - 1) / mem::kPage * mem::kPage;
    pool.emplace(loop, registry, std::span(reinterpret_cast<std::byte*>(at), kMemory), 0);
  }
  testing::ManualLoop loop;
  Registry registry;
  std::unique_ptr<std::byte[]> storage;
  std::optional<mem::Pool> pool;
};

// A line for each message, and how it ended.
std::string read_all(World& world, std::span<const std::byte> input, uint64_t seed) {
  SeededRng rng(seed);
  stream::Reader reader(world.pool->copied());
  reader.limit_data(kLimit);
  // As on each side of a connection whose server moves payload, and where it doesn't.
  if (const size_t side = input.size() % 3; side != 0) {
    reader.allow_elsewhere(side == 1 ? Kind::request : Kind::reply);
  }
  std::string story;
  for (;;) {
    Incoming message;
    switch (reader.next(message)) {
      case stream::Reader::Step::message: {
        uint32_t crc = crc32c(message.metadata);
        message.data.for_each([&](std::span<const std::byte> piece) { crc = crc32c(piece, crc); });
        ASSERT(message.metadata.size() <= kMaxMetadata && message.metadata.size() <= message.header.metadata_bytes);
        ASSERT(message.no_memory || reader.data_pieces().empty());
        ASSERT(message.damaged || message.no_memory ? message.data.empty()
                                                    : message.data.size() == message.header.data_bytes);
        story += std::to_string(message.header.request_id) + " " + std::to_string(crc) +
                 (message.damaged ? " damaged" : "") + (message.no_memory ? " skipped" : "") + "\n";
        break;
      }
      case stream::Reader::Step::elsewhere: {
        ASSERT(message.metadata.size() <= kMaxMetadata && message.data.size() == message.header.data_bytes);
        uint64_t named = 0;
        for (const auto& piece : reader.data_pieces()) named += piece.bytes;
        ASSERT(message.header.kind == Kind::reply ? reader.data_pieces().empty() : named == message.data.size());
        story += std::to_string(message.header.request_id) + " " + std::to_string(crc32c(message.metadata)) + " " +
                 std::to_string(reader.data_pieces().size()) + " " + std::to_string(reader.reply_pieces().size()) +
                 (stream::MovedPayload::matches(message.data, reader.checksum_table()) ? " whole\n" : "\n");
        break;
      }
      case stream::Reader::Step::need_memory: {
        ASSERT(reader.memory_wanted() > 0 && reader.memory_wanted() <= kLimit);
        // As one does who has none.
        if (reader.header().time_us % 4 == 3) {
          reader.skip_payload();
          break;
        }
        auto buf = world.pool->try_alloc(reader.memory_wanted());
        ASSERT(buf.has_value());
        std::memset(buf->writable(), 0, buf->size());
        reader.give_memory(mem::BufChain(*std::move(buf)));
        break;
      }
      case stream::Reader::Step::need_bytes: {
        if (input.empty()) return story + (reader.at_boundary() ? "end" : "inside");
        iovec vectors[4];
        const size_t n = reader.plan(vectors);
        ASSERT(n > 0 && n <= 4);
        size_t given = 0;
        const size_t piece = seed == 0 ? SIZE_MAX : 1 + rng.below(rng.chance(1, 2) ? 60 : 6000);
        for (const iovec& vector : std::span(vectors, n)) {
          const size_t part = std::min({vector.iov_len, input.size(), piece - given});
          if (part > 0) std::memcpy(vector.iov_base, input.data(), part);
          input = input.subspan(part);
          given += part;
          if (part < vector.iov_len) break;
        }
        reader.advance(given, world.loop.now());
        break;
      }
      case stream::Reader::Step::failed:
        ASSERT(reader.failure().reason != CloseReason::none && !reader.failure().text.empty());
        return story + std::string(close_reason_name(reader.failure().reason));
    }
  }
}

// Every other input gets right checksums, so that the fuzzer gets past them.
void repair(std::vector<std::byte>& bytes) {
  size_t at = 0;
  while (bytes.size() - at >= kHeaderBytes) {
    WireHeader wire;
    std::memcpy(&wire, &bytes[at], sizeof wire);
    wire.magic = kMagic;
    wire.version = kVersionMax;
    wire.crc = crc32c(&wire, offsetof(WireHeader, crc));
    std::memcpy(&bytes[at], &wire, sizeof wire);
    const auto header = decode_header(std::span<const std::byte, kHeaderBytes>(&bytes[at], kHeaderBytes));
    if (!header || header->message_bytes() > bytes.size() - at) return;
    if (header->metadata_bytes > 0) {
      const Le32 crc = crc32c(&bytes[at + kHeaderBytes], header->metadata_bytes);
      std::memcpy(&bytes[at + kHeaderBytes + header->metadata_bytes], &crc, sizeof crc);
    }
    at += header->message_bytes();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  if (size == 0) return 0;
  const uint64_t seed = data[0] / 2 + 1;
  const auto* from = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(from + 1, from + size);
  if (data[0] % 2 == 1) repair(bytes);
  const std::string whole = read_all(world, bytes, 0);
  const std::string in_pieces = read_all(world, bytes, seed);
  ASSERT(whole == in_pieces);
  ASSERT(world.pool->free_bytes() == world.pool->total_bytes());
  return 0;
}
