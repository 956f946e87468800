#include "kv/rocks_store.h"

#include <fmt/core.h>
#include <rocksdb/utilities/memory_util.h>

#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/crc32c.h"
#include "base/endian.h"
#include "kv/rocks_database.h"
#include "kv/rocks_view.h"

namespace cairn::kv {
namespace {

// Says who made the database and in which version. View prefixes never begin with a zero byte.
constexpr std::string_view kMarkKey("\0cairn", 6);
struct Mark {
  static constexpr uint32_t kMagic = 0x564b'4e43;  // "CNKV"
  static constexpr uint32_t kVersion = 1;
  Le32 magic;
  Le32 version;
  Le32 crc;  // of what precedes it
};
static_assert(sizeof(Mark) == 12);

bool is_fresh(rocksdb::DB& db) {
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator({}));
  it->SeekToFirst();
  return it->status().ok() && !it->Valid();
}

Result<void> write_mark(RocksDatabase& database) {
  Mark mark;
  mark.magic = Mark::kMagic;
  mark.version = Mark::kVersion;
  mark.crc = crc32c(&mark, offsetof(Mark, crc));
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  const rocksdb::Slice value(reinterpret_cast<const char*>(&mark), sizeof mark);
  if (auto s = database.db->Put(options, rocksdb::Slice(kMarkKey.data(), kMarkKey.size()), value); !s.ok()) {
    return rocks_error(s, database.path);
  }
  if (auto s = database.db->Flush({}); !s.ok()) return rocks_error(s, database.path);
  return {};
}

// A store without a mark is one that was being made when the process died, and then it is empty; or it isn't ours.
Result<void> check_mark(RocksDatabase& database) {
  std::string bytes;
  const auto status = database.db->Get({}, rocksdb::Slice(kMarkKey.data(), kMarkKey.size()), &bytes);
  if (status.IsNotFound()) {
    if (is_fresh(*database.db)) return write_mark(database);
    return Error(Errc::unsupported,
                 fmt::format("{} holds a RocksDB database that isn't Cairn's: give another directory", database.path));
  }
  if (!status.ok()) return rocks_error(status, database.path);
  Mark mark;
  if (bytes.size() != sizeof mark) return Error(Errc::corrupt, fmt::format("{}: bad version record", database.path));
  std::memcpy(&mark, bytes.data(), sizeof mark);
  if (mark.magic != Mark::kMagic || mark.crc != crc32c(&mark, offsetof(Mark, crc))) {
    return Error(Errc::corrupt, fmt::format("{}: bad version record", database.path));
  }
  if (mark.version != Mark::kVersion) {
    return Error(Errc::unsupported,
                 fmt::format("{} was written by a newer release (format {}, this one knows {}): upgrade", database.path,
                             mark.version.get(), Mark::kVersion));
  }
  return {};
}

Error open_error(const rocksdb::Status& status, const std::string& path) {
  const std::string text = status.ToString();
  if (status.IsIOError() && (text.find("LOCK") != std::string::npos || text.find("lock ") != std::string::npos)) {
    return {Errc::unavailable, fmt::format("{} is in use by another process: stop that one first ({})", path, text)};
  }
  if (status.IsInvalidArgument() && text.find("does not exist") != std::string::npos) {
    return {Errc::not_found, fmt::format("{}: no key-value store there", path)};
  }
  if (status.IsCorruption()) {
    return {Errc::corrupt,
            fmt::format("{} is damaged: rebuild this device from its replicas, or format it ({})", path, text)};
  }
  if (status.IsNotSupported() || status.IsInvalidArgument()) {
    return {Errc::unsupported, fmt::format("{} was written by a newer release: upgrade ({})", path, text)};
  }
  return rocks_error(status, path);
}

}  // namespace

RocksStore::RocksStore(std::shared_ptr<RocksDatabase> database) : database_(std::move(database)) {}
RocksStore::~RocksStore() = default;

Result<std::unique_ptr<RocksStore>> RocksStore::open(Options options) {
  if (options.create) {
    std::error_code error;
    std::filesystem::create_directories(options.path, error);
    if (error) return Error(Errc::io_error, fmt::format("{}: {}", options.path, error.message()));
  }
  auto database = std::make_shared<RocksDatabase>();
  database->path = options.path;
  database->cache = rocksdb::NewLRUCache(options.cache_bytes, 4, false, 0.3);
  rocksdb::DB* db = nullptr;
  const auto status = rocksdb::DB::Open(rocks_options(options, database->cache), options.path, &db);
  if (!status.ok()) return open_error(status, options.path);
  database->db.reset(db);
  TRY(check_mark(*database));
  return std::unique_ptr<RocksStore>(new RocksStore(std::move(database)));
}

std::unique_ptr<OrderedStore> RocksStore::view(std::string prefix, OffloadPool& helpers, Reactor& reactor,
                                               Registry& registry, std::string_view labels) const {
  ASSERT(!prefix.empty() && prefix.front() != '\0');
  return std::make_unique<RocksView>(database_, std::move(prefix), helpers, reactor, registry, labels);
}

size_t RocksStore::memory_bytes() const {
  uint64_t tables = 0;
  database_->db->GetIntProperty(rocksdb::DB::Properties::kSizeAllMemTables, &tables);
  return database_->cache->GetUsage() + tables;
}

size_t RocksStore::disk_bytes() const {
  uint64_t bytes = 0;
  database_->db->GetIntProperty(rocksdb::DB::Properties::kTotalSstFilesSize, &bytes);
  return bytes;
}

}  // namespace cairn::kv
