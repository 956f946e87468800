// Random work from many clients at once on two groups, with crashes, restarts and checkpoints in between, against a
// model that is a map of byte strings.
//
//   - after a crash each group is at some entry k, at least its last acknowledged one, and the chunks are exactly what
//     the entries up to k make of them;
//   - a read gives, page for page, what the chunk was at some moment between its beginning and its end;
//   - nothing leaks: used space is what the chunks need.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "engine/geometry.h"
#include "engine/testing/rig.h"

namespace cairn::engine {
namespace {

using test::chunk_id;
using test::pattern;
using test::Rig;

using Bytes = std::vector<std::byte>;

struct Operation {
  EntryKind kind = EntryKind::noop;
  uint64_t chunk = 0;
  uint32_t offset = 0;
  Bytes bytes;  // chunk_write
  uint32_t length = 0;
};

// The whole truth: a write replaces whole pages, discards make holes.
void apply_to(std::map<uint64_t, Bytes>& chunks, const Operation& op) {
  switch (op.kind) {
    case EntryKind::chunk_write: {
      Bytes& chunk = chunks[op.chunk];
      const size_t end = op.offset + op.bytes.size();
      const size_t page_end = (end + kPageBytes - 1) / kPageBytes * kPageBytes;
      if (chunk.size() < end) chunk.resize(end);
      std::ranges::copy(op.bytes, chunk.begin() + op.offset);
      for (size_t i = end; i < std::min(page_end, chunk.size()); ++i) chunk[i] = std::byte{0};
      break;
    }
    case EntryKind::chunk_delete:
      chunks.erase(op.chunk);
      break;
    case EntryKind::chunk_discard:
      if (const auto at = chunks.find(op.chunk); at != chunks.end()) {
        const size_t end = std::min<size_t>(at->second.size(), op.offset + op.length);
        for (size_t i = op.offset; i < end; ++i) at->second[i] = std::byte{0};
      }
      break;
    default:
      break;
  }
}

constexpr uint64_t kChunksPerGroup = 6;

struct Group {
  std::vector<Operation> log;  // log[i] has index i + 1
  uint64_t acknowledged = 0;   // the highest index
  uint64_t applied = 0;
  std::map<uint64_t, Bytes> chunks;
  // Versions since the oldest read under way began.
  std::map<uint64_t, std::vector<std::optional<Bytes>>> versions;
  int reads = 0;
};

class Model {
 public:
  explicit Model(uint64_t seed)
      : rng_(seed),
        rig_({.seed = seed,
              .shard_bytes = 32 * test::kMegabyte,
              .pool_bytes = 48 * test::kMegabyte,
              .shard = {.cache_bytes = rng_.below(3) * 2 * test::kMegabyte,
                        .dirty_bytes = rng_.below(3) * 256 * 1024,
                        .checkpoint_interval = milliseconds(static_cast<int64_t>(1 + rng_.below(50))),
                        .admission_wait = milliseconds(200)}}) {}

  void run(int lives) {
    rig_.start();
    for (int life = 0; life < lives && !::testing::Test::HasFatalFailure(); ++life) {
      work();
      if (::testing::Test::HasFatalFailure()) return;
      check_everything();
    }
  }

 private:
  Operation random_operation(uint64_t group) {
    Operation op;
    op.chunk = group * 100 + 1 + rng_.below(kChunksPerGroup);
    const uint64_t dice = rng_.below(100);
    if (dice < 8) {
      op.kind = EntryKind::chunk_delete;
    } else if (dice < 16) {
      op.kind = EntryKind::chunk_discard;
      op.offset = static_cast<uint32_t>(rng_.below(40)) * kPageBytes;
      op.length = static_cast<uint32_t>(1 + rng_.below(40)) * kPageBytes;
    } else {
      op.kind = EntryKind::chunk_write;
      op.offset =
          static_cast<uint32_t>(rng_.chance(1, 2) ? rng_.below(4) * kPagesPerUnit : rng_.below(60)) * kPageBytes;
      const uint64_t most = dice < 60 ? 3 * kPageBytes : dice < 95 ? 4 * kUnitBytes : 12 * kUnitBytes;
      op.bytes = pattern(1 + rng_.below(most), rng_.next());
      if (rng_.chance(2, 3)) op.bytes.resize((op.bytes.size() + kPageBytes - 1) / kPageBytes * kPageBytes);
    }
    return op;
  }

  Task<void> propose(uint64_t group_number, Operation op) {
    Group& group = groups_[group_number];
    Entry entry;
    if (op.kind == EntryKind::chunk_write) {
      entry = rig_.write_entry(chunk_id(op.chunk), op.offset, op.bytes);
    } else {
      entry = Rig::simple_entry(op.kind, chunk_id(op.chunk), op.offset, op.length);
    }
    entry.group = GroupId(static_cast<uint32_t>(group_number));
    auto permit = co_await rig_.shard->admit(entry, mem::Purpose::client);
    if (!permit) {
      const Errc code = permit.error().code();
      EXPECT_TRUE(code == Errc::no_space || code == Errc::busy || code == Errc::device_fenced || code == Errc::closed)
          << permit.error().to_string();
      co_return;
    }
    entry.index = rig_.take_index(entry.group);
    const Index index = entry.index;
    EXPECT_EQ(index.value, group.log.size() + 1);
    group.log.push_back(op);
    const auto appended = co_await rig_.shard->append(std::move(entry), *std::move(permit));
    if (!appended) {
      EXPECT_EQ(appended.error().code(), Errc::device_fenced);
      co_return;
    }
    EXPECT_EQ(index.value, group.acknowledged + 1) << "acknowledged out of order";
    group.acknowledged = index.value;
    // Sometimes the vote takes a while.
    while (group.applied + 1 < index.value || rng_.chance(1, 4)) (void)co_await rig_.loop.sleep(microseconds(20));
    rig_.shard->apply(GroupId(static_cast<uint32_t>(group_number)), index);
    apply_to(group.chunks, group.log[index.value - 1]);
    ++group.applied;
    if (group.reads > 0) group.versions[op.chunk].push_back(state_of(group, op.chunk));
  }

  static std::optional<Bytes> state_of(const Group& group, uint64_t chunk) {
    const auto at = group.chunks.find(chunk);
    return at == group.chunks.end() ? std::nullopt : std::optional(at->second);
  }

  Task<void> read(uint64_t group_number, uint64_t chunk) {
    Group& group = groups_[group_number];
    const auto offset = static_cast<uint32_t>(rng_.below(300000));
    const auto length = static_cast<uint32_t>(1 + rng_.below(rng_.chance(1, 2) ? 5000 : 400000));
    ++group.reads;
    group.versions[chunk].push_back(state_of(group, chunk));
    const size_t first = group.versions[chunk].size() - 1;
    const auto result = co_await rig_.shard->read(chunk_id(chunk), offset, length);
    check_read(group.versions[chunk], first, offset, length, result);
    if (--group.reads == 0) group.versions.clear();
  }

  static void check_read(const std::vector<std::optional<Bytes>>& versions, size_t first, uint32_t offset,
                         uint32_t length, const Result<mem::BufChain>& result) {
    if (!result) {
      const bool missing = std::any_of(versions.begin() + static_cast<ptrdiff_t>(first), versions.end(),
                                       [](const auto& version) { return !version.has_value(); });
      const Errc code = result.error().code();
      EXPECT_TRUE((code == Errc::not_found && missing) || code == Errc::io_error) << result.error().to_string();
      return;
    }
    Bytes got(result->size());
    result->copy_metadata_to(got);
    bool size_fits = false;
    std::vector<bool> page_fits(got.size() / kPageBytes + 2, false);
    for (size_t v = first; v < versions.size(); ++v) {
      if (!versions[v]) continue;
      const Bytes& bytes = *versions[v];
      const size_t begin = std::min<size_t>(offset, bytes.size());
      const size_t size = std::min<size_t>(length, bytes.size() - begin);
      size_fits |= size == got.size();
      for (size_t at = 0, page = 0; at < got.size(); ++page) {
        const size_t n = std::min<size_t>(got.size() - at, kPageBytes - (offset + at) % kPageBytes);
        Bytes expected(n);
        if (begin + at < bytes.size()) {
          std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(begin + at), std::min(n, bytes.size() - begin - at),
                      expected.begin());
        }
        if (std::equal(expected.begin(), expected.end(), got.begin() + static_cast<ptrdiff_t>(at))) {
          page_fits[page] = true;
        }
        at += n;
      }
    }
    EXPECT_TRUE(size_fits) << got.size();
    for (size_t at = 0, page = 0; at < got.size(); ++page) {
      EXPECT_TRUE(page_fits[page]) << "page " << page << " of a read at " << offset << " is from no version";
      at += std::min<size_t>(got.size() - at, kPageBytes - (offset + at) % kPageBytes);
    }
  }

  Task<void> client(uint64_t number, uint64_t steps) {
    const uint64_t group = 1 + number % 2;
    for (uint64_t i = 0; i < steps && !dead_; ++i) {
      if (rng_.chance(1, 3)) {
        co_await read(group, group * 100 + 1 + rng_.below(kChunksPerGroup));
      } else if (rng_.chance(1, 60)) {
        (void)co_await rig_.shard->checkpoint();
      } else {
        co_await propose(group, random_operation(group));
      }
      if (rng_.chance(1, 4)) (void)co_await rig_.loop.sleep(microseconds(static_cast<int64_t>(rng_.below(300))));
    }
  }

  void work() {
    Scope scope(rig_.loop);
    dead_ = false;
    for (uint64_t i = 0; i < 8; ++i) scope.spawn(&Model::client, this, i, 5 + rng_.below(60));
    uint64_t steps = rng_.below(4000);
    rig_.loop.run_until([&] { return scope.running() == 0 || steps-- == 0; });
    dead_ = true;
    if (scope.running() > 0) {
      rig_.device->power_off();
      rig_.store->power_off(rig_.rng);
      rig_.loop.run_until([&] { return scope.running() == 0; });
      rig_.close();
      rig_.loop.run_until([&] { return rig_.device->under_way() == 0; });
      rig_.store->power_on();
      rig_.plug_in();
      ++crashes;
    } else {
      rig_.close();
    }
    for (auto& [number, group] : groups_) {
      group.reads = 0;
      group.versions.clear();
    }
    rig_.open();
    ASSERT_TRUE(rig_.shard->health()) << rig_.shard->health().error().to_string();
  }

  void check_everything() {
    uint64_t used = 0;
    for (auto& [number, group] : groups_) {
      const uint64_t last = rig_.shard->last_index(GroupId(static_cast<uint32_t>(number))).value;
      ASSERT_GE(last, group.acknowledged) << "group " << number << " lost acknowledged entries";
      ASSERT_LE(last, group.log.size());
      group.log.resize(last);
      group.acknowledged = group.applied = last;
      group.chunks.clear();
      for (const Operation& op : group.log) apply_to(group.chunks, op);
      for (uint64_t n = 1; n <= kChunksPerGroup; ++n) {
        const uint64_t chunk = number * 100 + n;
        const auto expected = state_of(group, chunk);
        const auto got = rig_.read(chunk_id(chunk));
        ASSERT_EQ(got.has_value(), expected.has_value()) << "chunk " << chunk << ", " << errc_name(got.code());
        if (expected) {
          ASSERT_TRUE(*got == *expected) << "chunk " << chunk;
        }
      }
    }
    const SpaceUsage usage = rig_.shard->usage();
    used = usage.used_bytes;
    ASSERT_EQ(usage.total_bytes, usage.free_bytes + used + usage.pending_bytes + usage.freeing_bytes);
    ASSERT_EQ(usage.pending_bytes, 0u);
  }

  SeededRng rng_;
  Rig rig_;
  std::map<uint64_t, Group> groups_;
  bool dead_ = false;

 public:
  int crashes = 0;
};

class ShardModelTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ShardModelTest, SurvivesEverything) {
  Model model(GetParam());
  model.run(6);
}

// CAIRN_SEEDS and CAIRN_FROM widen the search.
uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ShardModelTest,
                         ::testing::Range(from_environment("CAIRN_FROM", 1),
                                          from_environment("CAIRN_FROM", 1) + from_environment("CAIRN_SEEDS", 30)));

}  // namespace
}  // namespace cairn::engine
