// What the tests of this module share: a cluster in memory, a store on it, and short ways to say what they do.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "client/testing/memory_client.h"
#include "mem/arena.h"
#include "object/store.h"
#include "replica/testing/test_loop.h"

namespace cairn::object {

using replica::TestLoop;

inline constexpr Id128 kNode{{1}};

// Bytes that depend on every one of their positions and on `seed`.
inline std::string pattern(size_t size, uint64_t seed) {
  // A page of noise, repeated, with its number in each copy: quick even in unoptimised builds.
  std::string page(4096, '\0');
  SeededRng rng(seed);
  rng.fill(std::as_writable_bytes(std::span(page)));
  std::string out;
  out.reserve(size + page.size());
  for (uint64_t number = 0; out.size() < size; ++number) {
    std::memcpy(page.data(), &number, sizeof number);
    out += page;
  }
  out.resize(size);
  return out;
}

struct World {
  explicit World(uint64_t seed = 1, client::MemoryClient::Options options = {})
      : loop(seed),
        wall(loop),
        arena(*mem::Arena::create(size_t{96} << 20)),
        pool(loop, registry, arena.memory(), 8 << 20),
        client(loop, pool, options) {}

  TestLoop loop;
  replica::TestWallClock wall;
  Registry registry;
  mem::Arena arena;
  mem::Pool pool;
  client::MemoryClient client;
  uint64_t lives = 0;

  std::unique_ptr<Store> open_store() {
    ++lives;
    return std::make_unique<Store>(Store::Context{.loop = loop, .client = client, .registry = registry, .wall = wall},
                                   Identity{.owner = kNode, .life = Id128{{2, static_cast<uint8_t>(lives)}}});
  }
};

inline Task<Result<mem::BufChain>> to_chain(mem::Pool* pool, std::string_view bytes) {
  if (bytes.empty()) co_return mem::BufChain();
  CO_TRY(mem::BufChain chain, co_await pool->alloc_chain(bytes.size()));
  size_t at = 0;
  for (const mem::Buf& slice : chain.slices()) {
    mem::Buf writable = slice;
    std::memcpy(writable.writable(), bytes.data() + at, slice.size());
    at += slice.size();
  }
  co_return chain;
}

inline void append(std::string& out, const mem::BufChain& chain) {
  chain.for_each(
      [&](std::span<const std::byte> bytes) { out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
}

// In writes of `step` bytes.
inline Task<Result<void>> write_all(mem::Pool* pool, Writer* writer, std::string body, size_t step = 256 << 10) {
  for (size_t at = 0; at < body.size(); at += step) {
    CO_TRY(mem::BufChain chain, co_await to_chain(pool, std::string_view(body).substr(at, step)));
    CO_TRY(co_await writer->write(std::move(chain)));
  }
  co_return Result<void>{};
}

// As a gateway makes one, but cheaper.
inline std::string etag_of(std::string_view body) {
  return std::to_string(body.size()) + "-" + std::to_string(crc32c(body.data(), body.size()));
}

inline Task<Result<ObjectInfo>> put(World* world, Store* store, std::string bucket, std::string key, std::string body,
                                    WriteConditions conditions = {}) {
  CO_TRY(auto writer, co_await store->put(bucket, key, {}));
  const std::string etag = etag_of(body);
  CO_TRY(co_await write_all(&world->pool, writer.get(), std::move(body)));
  Writer::Commit commit{.etag = etag, .attributes = {}, .checksum = {}, .conditions = std::move(conditions)};
  co_return co_await writer->commit(std::move(commit));
}

inline Task<Result<std::string>> read_all(Reader* reader) {
  std::string out;
  for (;;) {
    CO_TRY(const mem::BufChain piece, co_await reader->next());
    if (piece.empty()) co_return out;
    append(out, piece);
  }
}

inline Task<Result<std::string>> get(Store* store, std::string bucket, std::string key,
                                     RangeChooser* chooser = nullptr) {
  CO_TRY(auto reader, co_await store->open(std::move(bucket), std::move(key), chooser, {}));
  co_return co_await read_all(reader.get());
}

class FixedRange final : public RangeChooser {
 public:
  FixedRange(uint64_t offset, uint64_t length) : range_{offset, length} {}
  Result<ByteRange> choose(const ObjectInfo& /*info*/) override { return range_; }

 private:
  ByteRange range_;
};

// A world with one store and a bucket "b".
class StoreTest : public ::testing::Test {
 public:
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    return loop.run(std::move(function), std::move(arguments)...);
  }

  Result<ObjectInfo> must_put(std::string key, std::string body, WriteConditions conditions = {}) {
    return run(&put, &world, store.get(), std::string("b"), std::move(key), std::move(body), std::move(conditions));
  }
  Result<std::string> body_of(std::string key) {
    return run(&get, store.get(), std::string("b"), std::move(key), static_cast<RangeChooser*>(nullptr));
  }
  Result<ListResult> list(ListQuery query) {
    return run(&Store::list, store.get(), std::string("b"), std::move(query), CallContext{});
  }
  Result<void> remove(std::string key, WriteConditions conditions = {}) {
    return run(&Store::remove, store.get(), std::string("b"), std::move(key), std::move(conditions), CallContext{});
  }

  StoreTest() {
    EXPECT_TRUE(run(&Store::create_bucket, store.get(), std::string("b"), std::string("me"), CallContext{}));
  }
  ~StoreTest() override {
    if (store) loop.run(&Store::close, store.get());
  }

  World world;
  TestLoop& loop = world.loop;
  std::unique_ptr<Store> store = world.open_store();
};

}  // namespace cairn::object
