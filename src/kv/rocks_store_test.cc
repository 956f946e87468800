#include "kv/rocks_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "base/rng.h"
#include "kv/kv_machine.h"
#include "reactor/offload.h"
#include "reactor/reactor.h"

namespace cairn::kv {
namespace {

namespace fs = std::filesystem;

// A directory of its own, gone at the end.
struct TempDir {
  TempDir() {
    std::string pattern = (fs::temp_directory_path() / "cairn-kv-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string path;
};

// A reactor, helpers, and a store with one view.
struct Node {
  explicit Node(RocksStore::Options options) {
    auto opened = RocksStore::open(std::move(options));
    if (!opened) throw std::runtime_error(opened.error().to_string());  // fails the test, and only it
    store = *std::move(opened);
    view = make_view("s0/");
  }
  std::unique_ptr<OrderedStore> make_view(const std::string& prefix) {
    return store->view(prefix, helpers, *reactor, registry, "view=\"" + prefix + "\"");
  }

  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    return reactor->run_task(std::move(function), std::move(arguments)...);
  }
  std::optional<std::string> get(std::string key) {
    struct Get {
      static Task<Result<std::optional<std::string>>> task(OrderedStore* s, std::string k) {
        co_return co_await s->get(k);
      }
    };
    return *run(&Get::task, view.get(), std::move(key));
  }
  ScanResult scan(ScanOptions options) { return *run(&OrderedStore::scan, view.get(), std::move(options)); }
  void flush() { ASSERT_TRUE(run(&OrderedStore::flush, view.get())); }
  void put(const std::string& key, const std::string& value) {
    const Mutation mutation{key, value};
    ASSERT_TRUE(view->write({&mutation, 1}));
  }
  uint64_t counter(const std::string& name) {
    const std::string text = Registry::expose({{&registry, ""}});
    const size_t at = text.find("\n" + name + "{");
    return at == std::string::npos ? 0 : std::stoull(text.substr(text.find("} ", at) + 2));
  }

  SystemRng rng;
  Registry registry;
  std::unique_ptr<Reactor> reactor = *Reactor::create({.mode = Mode::economy, .rng = rng, .registry = registry});
  OffloadPool helpers{"kv", 2};
  std::unique_ptr<RocksStore> store;
  std::unique_ptr<OrderedStore> view;
};

TEST(RocksStore, ReadsItsWritesBeforeAndAfterAFlush) {
  TempDir dir;
  Node node({.path = dir.path});
  node.put("a", "1");
  node.put("b", "2");
  const Mutation gone{"a", std::nullopt};
  ASSERT_TRUE(node.view->write({&gone, 1}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(node.get("a"), std::nullopt);
    EXPECT_EQ(node.get("b"), "2");
    EXPECT_EQ(node.scan({}).items.size(), 1u);
    node.flush();
  }
}

TEST(RocksStore, KeepsWhatWasFlushedAndOnlyAPrefix) {
  TempDir dir;
  {
    Node node({.path = dir.path});
    node.put("a", "1");
    node.flush();
    node.put("b", "2");
  }
  Node node({.path = dir.path});
  EXPECT_EQ(node.get("a"), "1");
  EXPECT_EQ(node.get("b"), std::nullopt) << "closing doesn't flush";
}

TEST(RocksStore, ReadsGoToAHelperOnlyWhenTheCacheMisses) {
  TempDir dir;
  {
    Node node({.path = dir.path});
    for (int i = 0; i < 1000; ++i) node.put("k" + std::to_string(i), std::string(500, 'x'));
    node.flush();
  }
  Node node({.path = dir.path});
  EXPECT_EQ(node.get("k500"), std::string(500, 'x'));
  const uint64_t cold = node.counter("kv_store_reads_offloaded_total");
  EXPECT_GE(cold, 1u);
  EXPECT_EQ(node.get("k500"), std::string(500, 'x'));
  node.put("fresh", "y");
  EXPECT_EQ(node.get("fresh"), "y");
  EXPECT_EQ(node.counter("kv_store_reads_offloaded_total"), cold);
  EXPECT_EQ(node.scan({.begin = "k", .end = "l", .max_items = 2000, .max_bytes = 10 << 20}).items.size(), 1000u);
}

TEST(RocksStore, ScansRangesWithLimits) {
  TempDir dir;
  Node node({.path = dir.path});
  auto other = node.make_view("s1/");
  for (char c = 'a'; c <= 'j'; ++c) node.put(std::string(1, c), "value");
  const Mutation foreign{"c", "foreign"};
  ASSERT_TRUE(other->write({&foreign, 1}));
  auto page = node.scan({.begin = "b", .end = "h", .max_items = 3});
  ASSERT_EQ(page.items.size(), 3u);
  EXPECT_EQ(page.items[0].key, "b");
  EXPECT_EQ(page.items[1].value, "value");
  EXPECT_TRUE(page.more);
  page = node.scan({.begin = "e", .end = "h", .max_items = 3});
  EXPECT_EQ(page.items.back().key, "g");
  EXPECT_FALSE(page.more);
  page = node.scan({.begin = "b", .max_bytes = 1, .keys_only = true});
  ASSERT_EQ(page.items.size(), 1u);
  EXPECT_EQ(page.items[0].value, "");
  EXPECT_TRUE(node.scan({.begin = "h", .end = "b"}).items.empty());
  EXPECT_EQ(node.scan({}).items.size(), 10u) << "the other view's keys stay unseen";
}

TEST(RocksStore, ViewsAndStoreGoInAnyOrderEvenWithOperationsInFlight) {
  TempDir dir;
  Node node({.path = dir.path});
  node.put("a", "1");
  struct Flush {
    static Task<void> task(OrderedStore* view, Errc* out) { *out = (co_await view->flush()).code(); }
  };
  Errc flushed = Errc::unknown;
  Scope scope(*node.reactor);
  scope.spawn(&Flush::task, node.view.get(), &flushed);
  node.view.reset();
  node.store.reset();
  node.run(&Scope::join, &scope);
  EXPECT_EQ(flushed, Errc::ok);
}

TEST(RocksStore, ALockedStoreIsReportedAsSuch) {
  TempDir dir;
  Node node({.path = dir.path});
  const auto second = RocksStore::open({.path = dir.path});
  ASSERT_EQ(second.code(), Errc::unavailable) << second.error().to_string();
  EXPECT_NE(second.error().message().find(dir.path), std::string::npos);
}

TEST(RocksStore, AMissingStoreIsNotMadeUnasked) {
  TempDir dir;
  const auto opened = RocksStore::open({.path = dir.path + "/none", .create = false});
  EXPECT_EQ(opened.code(), Errc::not_found) << opened.error().to_string();
}

void damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(0, std::ios::end);
  const auto size = static_cast<int64_t>(file.tellp());
  for (int64_t at = 0; at < size; at += 7) {
    file.seekp(at);
    file.put('\x5a');
  }
}

std::string find_file(const std::string& dir, const std::string& wanted) {
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.path().filename().string().find(wanted) != std::string::npos) return entry.path();
  }
  return {};
}

TEST(RocksStore, ADamagedManifestIsAnErrorAtOpen) {
  TempDir dir;
  {
    Node node({.path = dir.path});
    node.put("a", "1");
    node.flush();
  }
  damage(find_file(dir.path, "MANIFEST"));
  const auto opened = RocksStore::open({.path = dir.path});
  EXPECT_EQ(opened.code(), Errc::corrupt) << opened.error().to_string();
}

TEST(RocksStore, ADamagedTableIsAnErrorAndNeverWrongData) {
  TempDir dir;
  std::vector<std::string> values(1000, std::string(100, '\0'));
  {
    Node node({.path = dir.path});
    for (size_t i = 0; i < values.size(); ++i) {
      SeededRng(i).fill(std::as_writable_bytes(std::span(values[i])));
      node.put("k" + std::to_string(i), values[i]);
    }
    node.flush();
  }
  for (const auto& entry : fs::directory_iterator(dir.path)) {
    if (entry.path().extension() != ".sst" || entry.file_size() < 50'000) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20'000);
    file.put('\x5a').put('\xa5').put('\x5a');
  }
  Node node({.path = dir.path});
  struct Get {
    static Task<Result<std::optional<std::string>>> task(OrderedStore* view, std::string key) {
      co_return co_await view->get(key);
    }
  };
  int corrupt = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = node.run(&Get::task, node.view.get(), "k" + std::to_string(i));
    if (value) {
      EXPECT_EQ(*value, values[i]);
    } else {
      EXPECT_EQ(value.code(), Errc::corrupt);
      ++corrupt;
    }
  }
  EXPECT_GT(corrupt, 0);
  EXPECT_LT(corrupt, 300) << "the damage is in one block";
}

// Bends the version record of a store.
void rewrite_mark(const std::string& path, const std::optional<std::string>& value) {
  rocksdb::DB* raw = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, path, &raw).ok());
  const std::unique_ptr<rocksdb::DB> db(raw);
  const rocksdb::Slice key("\0cairn", 6);
  ASSERT_TRUE((value ? db->Put({}, key, *value) : db->Delete({}, key)).ok());
}

TEST(RocksStore, NewerAndForeignDatabasesAreRefused) {
  TempDir dir;
  {
    Node node({.path = dir.path});
    node.put("a", "1");
    node.flush();
  }
  // Magic, version 2, and the CRC32C of those eight bytes.
  std::string newer("\x43\x4e\x4b\x56\x02\x00\x00\x00", 8);
  const uint32_t crc = crc32c(newer.data(), newer.size());
  newer.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  rewrite_mark(dir.path, newer);
  auto opened = RocksStore::open({.path = dir.path});
  ASSERT_EQ(opened.code(), Errc::unsupported) << opened.error().to_string();
  EXPECT_NE(opened.error().message().find("newer"), std::string::npos);
  rewrite_mark(dir.path, "nonsense");
  EXPECT_EQ(RocksStore::open({.path = dir.path}).code(), Errc::corrupt);
  rewrite_mark(dir.path, std::nullopt);
  opened = RocksStore::open({.path = dir.path});
  ASSERT_EQ(opened.code(), Errc::unsupported);
  EXPECT_NE(opened.error().message().find("isn't Cairn's"), std::string::npos);
}

TEST(RocksStore, InfoLogStaysInTheDirectoryAndMemoryIsBounded) {
  TempDir dir;
  Node node({.path = dir.path, .cache_bytes = 4 << 20, .write_buffer_bytes = 2 << 20});
  SeededRng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string value(1000, '\0');
    rng.fill(std::as_writable_bytes(std::span(value)));
    const Mutation mutation{std::to_string(rng.next()), value};
    Result<void> written = node.view->write({&mutation, 1});
    while (written.code() == Errc::busy) {
      node.flush();
      written = node.view->write({&mutation, 1});
    }
    ASSERT_TRUE(written);
  }
  EXPECT_LT(node.store->memory_bytes(), size_t{12} << 20);
  EXPECT_GT(node.store->disk_bytes(), size_t{10} << 20);
  EXPECT_FALSE(find_file(dir.path, "LOG").empty());
}

// P25: 100,000 deleted keys before the live ones. The first page passes over them all; soon none does.
TEST(RocksStore, ListingsStopPassingOverDeletedKeys) {
  TempDir dir;
  Node node({.path = dir.path});
  for (int i = 0; i < 100; ++i) node.put("live" + std::to_string(1000 + i), "x");
  for (int i = 0; i < 100'000; ++i)
    node.put("dead" + std::to_string(1'000'000 + i), "some value of an object's record");
  node.flush();
  for (int i = 0; i < 100'000; ++i) {
    const Mutation gone{"dead" + std::to_string(1'000'000 + i), std::nullopt};
    ASSERT_TRUE(node.view->write({&gone, 1}));
  }
  bool cheap = false;
  for (int attempt = 0; attempt < 600 && !cheap; ++attempt) {
    const uint64_t before = node.counter("kv_store_reads_offloaded_total");
    ASSERT_EQ(node.scan({.max_items = 10}).items.size(), 10u);
    cheap = node.counter("kv_store_reads_offloaded_total") == before;
    if (!cheap) ::usleep(50'000);
  }
  EXPECT_TRUE(cheap) << "a scan that stays on the reactor passes over less than 512 deleted keys";
}

// The key-value machine on the real store, through a clean restart.
TEST(RocksStore, CarriesAKvMachine) {
  TempDir dir;
  const auto body = [](int i) { return *encode_batch(std::vector<Mutation>{{"n", std::to_string(i)}}); };
  {
    Node node({.path = dir.path});
    auto machine = *node.run(&KvMachine::open, std::ref(static_cast<Loop&>(*node.reactor)), std::ref(*node.view),
                             KvMachine::Options{.prefix = "g1/"});
    for (uint64_t i = 1; i <= 10; ++i) {
      ASSERT_TRUE(node.run(&KvMachine::apply, machine.get(), i, body(static_cast<int>(i)), std::vector<Mutation>{},
                           CancelToken{}));
      if (i == 6) node.flush();
    }
  }
  Node node({.path = dir.path});
  auto machine = *node.run(&KvMachine::open, std::ref(static_cast<Loop&>(*node.reactor)), std::ref(*node.view),
                           KvMachine::Options{.prefix = "g1/"});
  EXPECT_EQ(machine->applied(), 6u);
  EXPECT_EQ(*node.run(&KvMachine::get, machine.get(), std::string("n")), "6");
}

// ---- Real crashes: a child process writes and flushes, and is killed at a random moment. ----

// Write number i puts (n: i) and a run of keys "i/0".."i/4", and deletes those of i - 3: so the state tells which
// writes are in it, and whether each is whole.
std::vector<Mutation> write_number(uint64_t i) {
  std::vector<Mutation> mutations = {{"n", std::to_string(i)}};
  for (int part = 0; part < 5; ++part) {
    mutations.push_back({"w" + std::to_string(i) + "/" + std::to_string(part), std::string(200, 'x')});
    if (i > 3) mutations.push_back({"w" + std::to_string(i - 3) + "/" + std::to_string(part), std::nullopt});
  }
  return mutations;
}

// The highest write in the store; fails unless the store holds exactly the first so many writes.
uint64_t checked_state(Node& node) {
  const uint64_t last = std::stoull(node.get("n").value_or("0"));
  std::map<std::string, std::string> expected;
  if (last > 0) expected["n"] = std::to_string(last);
  for (uint64_t i = last < 3 ? 1 : last - 2; i <= last; ++i) {
    for (int part = 0; part < 5; ++part) {
      expected["w" + std::to_string(i) + "/" + std::to_string(part)] = std::string(200, 'x');
    }
  }
  std::map<std::string, std::string> found;
  for (const KeyValue& item : node.scan({.max_items = 1000}).items) found[item.key] = item.value;
  EXPECT_EQ(found, expected) << "after write " << last;
  return last;
}

// Small memory tables, so that RocksDB flushes by itself, too.
RocksStore::Options small_store(std::string path) { return {.path = std::move(path), .write_buffer_bytes = 256 << 10}; }

// The child: reports each completed flush as a line with the last write that it covers.
TEST(RocksStoreChild, DISABLED_WritesUntilKilled) {
  Node node(small_store(std::getenv("CAIRN_KV_CHILD_DIR")));
  uint64_t i = std::stoull(node.get("n").value_or("0"));
  SeededRng rng(std::stoull(std::getenv("CAIRN_KV_CHILD_SEED")));
  for (;;) {
    ++i;
    while (node.view->write(write_number(i)).code() == Errc::busy) node.flush();
    if (!rng.chance(1, 40)) continue;
    node.flush();
    const std::string line = std::to_string(i) + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) return;
  }
}

// Runs the child, kills it `delay_us` after its first report (or after its start), and returns its last report.
uint64_t run_and_kill(const std::string& dir, uint64_t seed, useconds_t delay_us) {
  std::array<int, 2> pipe_fds{};
  EXPECT_EQ(::pipe2(pipe_fds.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
  std::vector<std::string> arguments = {"/proc/self/exe", "--gtest_filter=RocksStoreChild.DISABLED_WritesUntilKilled",
                                        "--gtest_also_run_disabled_tests", "--gtest_brief=1"};
  std::vector<std::string> environment = {"CAIRN_KV_CHILD_DIR=" + dir, "CAIRN_KV_CHILD_SEED=" + std::to_string(seed)};
  std::vector<char*> argv, envp;
  for (std::string& a : arguments) argv.push_back(a.data());
  for (std::string& e : environment) envp.push_back(e.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), envp.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_fds[1]);
  std::string output;
  char byte = 0;
  while (output.find('\n') == std::string::npos && ::read(pipe_fds[0], &byte, 1) == 1) output += byte;
  ::usleep(delay_us);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << output;
  while (::read(pipe_fds[0], &byte, 1) == 1) output += byte;
  ::close(pipe_fds[0]);
  uint64_t flushed = 0;
  for (size_t at = 0, end; (end = output.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = output.substr(at, end - at);
    if (!line.empty() && line.find_first_not_of("0123456789") == std::string::npos) flushed = std::stoull(line);
  }
  return flushed;
}

TEST(RocksStore, AfterAKillItHoldsAPrefixThatCoversTheLastFlush) {
  TempDir dir;
  SeededRng rng(static_cast<uint64_t>(::getpid()));
  uint64_t previous = 0;
  for (int round = 0; round < 12; ++round) {
    const uint64_t flushed = run_and_kill(dir.path, rng.next(), static_cast<useconds_t>(rng.below(150'000)));
    Node node(small_store(dir.path));
    const uint64_t last = checked_state(node);
    EXPECT_GE(last, flushed) << "a completed flush is lost";
    EXPECT_GE(last, previous);
    EXPECT_GT(flushed, previous) << "the child did nothing";
    previous = last;
  }
}

}  // namespace
}  // namespace cairn::kv
