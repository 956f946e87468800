#include "engine/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "base/crc32c.h"
#include "engine/ring_reader.h"

namespace cairn::engine {
namespace {

// Why the chain of batches ends where it does.
enum class ChainEnd : uint8_t {
  not_a_batch,  // or one that isn't whole, or a stale one
  unreadable,   // the device said so
  later_life,   // a whole batch of a later epoch than the superblock knows
  at_limit,     // nothing can come behind it: the ring is full, or it was fenced there
};

class Replayer {
 public:
  Replayer(BlockDevice& device, mem::Pool& pool, const ShardLayout& layout, JournalIdentity identity,
           const Superblock& superblock, const ReplayFilter& filter)
      : device_(device),
        pool_(pool),
        layout_(layout),
        identity_(identity),
        superblock_(superblock),
        filter_(filter),
        ring_(device, pool, layout) {}

  Task<Result<Replay>> run();

 private:
  enum class Payload : uint8_t { whole, bad, unreadable };
  struct Batch {
    BatchHeader header;
    std::vector<ReplayedEntry> entries;          // wanted ones
    std::vector<std::pair<GroupId, Index>> all;  // every record's
    Payload inline_payload = Payload::whole;     // of the wanted ones
  };
  struct Parsed {
    ChainEnd end = ChainEnd::not_a_batch;  // when there is no header
    std::optional<BatchHeader> header;
    std::vector<Record> records;
  };

  // Behind it there is nothing to look at.
  Lsn limit() const { return superblock_.fenced ? superblock_.durable : superblock_.tail + layout_.journal_bytes; }
  Task<Result<Parsed>> parse_at(Lsn lsn);
  bool fits_chain(const BatchHeader& header, uint64_t previous_epoch) const;
  Task<Result<ChainEnd>> read_chain();
  Task<Result<void>> add_batch(const BatchHeader& header, std::vector<Record> records);
  Task<Result<std::optional<Lsn>>> find_proof(Lsn bad);
  Task<Result<void>> verify_tail();
  Task<Result<Payload>> check_units(const Record& record);
  void damage(Lsn at, std::string_view why);

  BlockDevice& device_;
  mem::Pool& pool_;
  const ShardLayout& layout_;
  const JournalIdentity identity_;
  const Superblock superblock_;
  const ReplayFilter& filter_;
  RingReader ring_;

  std::vector<Batch> batches_;
  Lsn end_{};   // of the chain
  Lsn mark_{};  // everything below was durable
  Replay result_;
};

void Replayer::damage(Lsn at, std::string_view why) {
  result_.damage = fmt::format(
      "the journal is damaged at position {}: {}. What it held from there on can't be "
      "recovered from this replica; nothing was changed on the device",
      at.value, why);
}

Task<Result<Replayer::Parsed>> Replayer::parse_at(Lsn lsn) {
  Parsed parsed;
  CO_TRY(co_await ring_.load(lsn));
  if (ring_.page(lsn).empty()) {
    parsed.end = ChainEnd::unreadable;
    co_return parsed;
  }
  const auto header = parse_batch_header(ring_.page(lsn), identity_, lsn);
  if (!header) co_return parsed;
  if (header->end() > limit()) co_return parsed;
  std::vector<std::byte> meta;
  meta.reserve(header->meta_bytes);
  for (Lsn at = lsn; at < lsn + header->meta_bytes; at = at + kPageBytes) {
    CO_TRY(co_await ring_.load(at));
    const auto page = ring_.page(at);
    if (page.empty()) {
      parsed.end = ChainEnd::unreadable;
      co_return parsed;
    }
    meta.insert(meta.end(), page.begin(), page.end());
  }
  auto records = parse_batch(meta, *header);
  if (records.code() == Errc::unsupported) {
    co_return Error(Errc::unsupported, fmt::format("shard {}: the journal was written by a newer release: upgrade, "
                                                   "nothing was written",
                                                   identity_.shard));
  }
  if (!records) co_return parsed;
  parsed.header = *header;
  parsed.records = *std::move(records);
  co_return parsed;
}

// A whole batch may still be a stale one, from before a cut.
bool Replayer::fits_chain(const BatchHeader& header, uint64_t previous_epoch) const {
  if (header.lsn >= superblock_.life_begin) return header.epoch == superblock_.epoch;
  return header.epoch >= previous_epoch && header.epoch < superblock_.epoch && header.end() <= superblock_.life_begin;
}

Task<Result<ChainEnd>> Replayer::read_chain() {
  uint64_t epoch = 0;
  end_ = superblock_.tail;
  while (end_ < limit()) {
    CO_TRY(auto parsed, co_await parse_at(end_));
    if (!parsed.header) co_return parsed.end;
    if (parsed.header->epoch > superblock_.epoch) co_return ChainEnd::later_life;
    if (!fits_chain(*parsed.header, epoch)) co_return ChainEnd::not_a_batch;
    epoch = parsed.header->epoch;
    const BatchHeader header = *parsed.header;
    CO_TRY(co_await add_batch(header, std::move(parsed.records)));
    mark_ = std::max(mark_, header.durable);
    end_ = header.end();
  }
  co_return ChainEnd::at_limit;
}

// Reads the batch's inline pages and checks them.
Task<Result<void>> Replayer::add_batch(const BatchHeader& header, std::vector<Record> records) {
  Batch batch{.header = header, .entries = {}, .all = {}};
  Lsn at = header.lsn + header.meta_bytes;
  for (Record& record : records) {
    batch.all.emplace_back(record.group, record.index);
    if (filter_.was_applied(record)) mark_ = std::max(mark_, header.end());
    ReplayedEntry entry{.record = std::move(record), .batch = header.lsn, .inline_lsn = at};
    const WritePlan& plan = entry.record.plan;
    const bool wanted = filter_.wants(entry.record);
    for (uint32_t i = 0; i < plan.inline_pages(); ++i, at = at + kPageBytes) {
      if (!wanted) continue;
      CO_TRY(co_await ring_.load(at));
      const uint32_t page = i < plan.head_pages ? i : i + plan.unit_count * kPagesPerUnit;
      const auto bytes = ring_.page(at);
      if (bytes.empty()) {
        // Not rotten: whoever needs the page will try again.
        batch.inline_payload = Payload::unreadable;
      } else if (crc32c(bytes) != entry.record.page_crcs[page]) {
        entry.rotten_pages |= uint32_t{1} << i;
        if (batch.inline_payload == Payload::whole) batch.inline_payload = Payload::bad;
      }
    }
    if (wanted) batch.entries.push_back(std::move(entry));
  }
  batches_.push_back(std::move(batch));
  co_return Result<void>{};
}

// The position of a whole batch behind `bad` that says that `bad` was durable when it was written. Those that say less
// still move the mark.
Task<Result<std::optional<Lsn>>> Replayer::find_proof(Lsn bad) {
  for (Lsn at = bad + kPageBytes; at < limit(); at = at + kPageBytes) {
    // Most pages are no header: they cost one comparison.
    if (!ring_.has(at)) CO_TRY(co_await ring_.load(at));
    if (ring_.page(at).empty() || !parse_batch_header(ring_.page(at), identity_, at)) continue;
    CO_TRY(const auto parsed, co_await parse_at(at));
    if (!parsed.header) continue;
    const bool later_life = parsed.header->epoch > superblock_.epoch;
    const bool this_life = parsed.header->epoch == superblock_.epoch && parsed.header->lsn >= superblock_.life_begin;
    if (later_life || (this_life && parsed.header->durable > bad)) co_return std::optional(at);
    if (this_life) mark_ = std::max(mark_, parsed.header->durable);
  }
  co_return std::optional<Lsn>();
}

Task<Result<Replayer::Payload>> Replayer::check_units(const Record& record) {
  const uint32_t first_page = record.plan.head_pages;
  const uint32_t pages = static_cast<uint32_t>(record.page_crcs.size()) - record.plan.inline_pages();
  CO_TRY(auto memory, co_await pool_.alloc(kUnitBytes, mem::Purpose::internal));
  for (uint32_t i = 0; i < record.plan.unit_count; ++i) {
    const uint32_t in_unit = std::min(kPagesPerUnit, pages - i * kPagesPerUnit);
    if (record.units[i].value >= layout_.unit_count) co_return Payload::bad;
    const auto buf = memory.slice(0, size_t{in_unit} * kPageBytes);
    if (!co_await read_patiently(device_, layout_.unit_offset(record.units[i]), buf)) co_return Payload::unreadable;
    for (uint32_t page = 0; page < in_unit; ++page) {
      const auto bytes = buf.bytes().subspan(size_t{page} * kPageBytes, kPageBytes);
      if (crc32c(bytes) != record.page_crcs[first_page + i * kPagesPerUnit + page]) co_return Payload::bad;
    }
  }
  co_return Payload::whole;
}

// Batches beyond the mark were perhaps never finished: their payload decides.
Task<Result<void>> Replayer::verify_tail() {
  for (size_t i = 0; i < batches_.size(); ++i) {
    const Batch& batch = batches_[i];
    if (batch.header.end() <= mark_) continue;
    Payload payload = batch.inline_payload;
    for (size_t e = 0; e < batch.entries.size() && payload == Payload::whole; ++e) {
      const Record& record = batch.entries[e].record;
      if (record.plan.unit_count == 0) continue;
      CO_TRY(payload, co_await check_units(record));
    }
    if (payload == Payload::unreadable) {
      damage(batch.header.lsn, "the device can't read the payload of an entry that may have been acknowledged");
      co_return Result<void>{};
    }
    if (payload == Payload::bad) {
      end_ = batch.header.lsn;
      for (size_t k = i; k < batches_.size(); ++k) result_.cut_entries += batches_[k].all.size();
      batches_.erase(batches_.begin() + static_cast<ptrdiff_t>(i), batches_.end());
      co_return Result<void>{};
    }
  }
  co_return Result<void>{};
}

Task<Result<Replay>> Replayer::run() {
  mark_ = std::max(superblock_.durable, superblock_.life_begin);
  CO_TRY(const auto end, co_await read_chain());
  if (end == ChainEnd::unreadable) {
    damage(end_, "the device can't read it");
  } else if (end == ChainEnd::later_life) {
    damage(end_, "it is newer than every superblock that is readable");
  } else if (end_ < mark_) {
    damage(end_,
           fmt::format("the entries there do not match their checksum, and were durable (up to {})", mark_.value));
  } else if (end == ChainEnd::not_a_batch && !superblock_.clean) {
    CO_TRY(const auto proof, co_await find_proof(end_));
    if (proof) {
      damage(end_, fmt::format("the entries there do not match their checksum, and the batch at {} says that they were "
                               "durable",
                               proof->value));
    }
  }
  if (!result_.damage) CO_TRY(co_await verify_tail());

  result_.end = end_;
  std::map<GroupId, Index> last;
  for (Batch& batch : batches_) {
    for (const auto& [group, index] : batch.all) last[group] = std::max(last[group], index);
    for (ReplayedEntry& entry : batch.entries) {
      result_.rotten_pages += static_cast<uint64_t>(std::popcount(entry.rotten_pages));
      result_.entries.push_back(std::move(entry));
    }
  }
  result_.last_indexes.assign(last.begin(), last.end());
  co_return std::move(result_);
}

}  // namespace

Task<Result<Replay>> replay_journal(BlockDevice& device, mem::Pool& pool, const ShardLayout& layout,
                                    JournalIdentity identity, const Superblock& superblock,
                                    const ReplayFilter& filter) {
  Replayer replayer(device, pool, layout, identity, superblock, filter);
  co_return co_await replayer.run();
}

}  // namespace cairn::engine
