#include "object/sweep.h"

#include <algorithm>

#include "base/log.h"
#include "kv/prefix_store.h"
#include "object/keys.h"
#include "object/records.h"
#include "object/session.h"

namespace cairn::object {
namespace {

constexpr engine::ChunkId last_chunk() {
  engine::ChunkId id;
  id.bytes.fill(0xff);
  return id;
}

}  // namespace

Task<Result<Sweep::Sessions>> Sweep::list_sessions(Identity identity, client::CallContext context) {
  Sessions out;
  std::string begin(keys::kSessions);
  const std::string end = kv::prefix_end(begin);
  for (bool more = true; more;) {
    kv::ScanOptions options{.begin = begin, .end = end};
    CO_TRY(const auto page, co_await base_.client.kv_scan(base_.client.system_group(), std::move(options), context));
    for (const kv::KeyValue& item : page.items) {
      const auto number = keys::session_of(item.key);
      if (!number) co_return Error(Errc::corrupt, "a session record with a malformed key");
      CO_TRY(const auto record, SessionRecord::decode(item.value));
      const bool dead = record.owner == identity.owner && record.life != identity.life;
      (dead ? out.dead : out.alive).push_back(*number);
    }
    more = page.more;
    if (more) begin = page.items.back().key + '\0';
  }
  co_return out;
}

Task<Result<void>> Sweep::run(Identity identity, client::CallContext context) {
  CO_TRY(const Sessions sessions, co_await list_sessions(identity, context));
  for (const uint32_t session : sessions.dead) CO_TRY(co_await sweep_session(session, context));
  co_return Result<void>{};
}

Task<Result<Sweep::Range>> Sweep::list_range(engine::ChunkId after, engine::ChunkId end, client::CallContext context) {
  const std::vector<engine::GroupId> groups = base_.client.all_groups();
  const size_t quota = std::max<size_t>(1, range_chunks_ / groups.size());
  Range range{.chunks = {}, .last = end, .end = true};
  for (const engine::GroupId group : groups) {
    engine::ChunkId from = after;
    for (size_t got = 0; got < quota;) {
      const size_t wanted = std::min<size_t>(quota - got, 10'000);
      CO_TRY(const auto page, co_await base_.client.chunk_list(group, from, wanted, context));
      for (const engine::ChunkId& id : page) {
        if (id <= end) range.chunks.push_back(id);
      }
      got += page.size();
      if (page.size() < wanted || page.back() > end) break;
      from = page.back();
      if (got == quota && from < range.last) {
        range.last = from;  // this group has more: what others have beyond comes with the next range
        range.end = false;
      }
    }
  }
  std::erase_if(range.chunks, [&](const engine::ChunkId& id) { return id > range.last; });
  std::ranges::sort(range.chunks);
  co_return range;
}

References Sweep::references_of(const std::vector<engine::ChunkId>& chunks) {
  std::vector<DataId> ids;
  for (const engine::ChunkId& chunk : chunks) {
    const DataId id = DataId::of_chunk(chunk);
    if (ids.empty() || ids.back() != id) ids.push_back(id);
  }
  return References(std::move(ids));
}

Task<Result<void>> Sweep::sweep_session(uint32_t session, client::CallContext context) {
  CO_TRY(co_await fence_session(base_.client, session, context));
  // Counters start at 1, so the first id names no chunk.
  engine::ChunkId after = DataId::make(session, 0).chunk(0);
  const engine::ChunkId end = DataId::make(session, UINT64_MAX).chunk(UINT32_MAX);
  uint64_t seen = 0;
  uint64_t deleted = 0;
  for (bool more = true; more;) {
    CO_TRY(const Range range, co_await list_range(after, end, context));
    seen += range.chunks.size();
    if (!range.chunks.empty()) {
      References references = references_of(range.chunks);
      CO_TRY(co_await references.mark(base_, context));
      for (const engine::ChunkId& chunk : range.chunks) {
        if (references.state(DataId::of_chunk(chunk)) != References::State::none) continue;
        CO_TRY(co_await base_.client.chunk_delete(chunk, context));
        ++deleted;
        metrics_.swept_chunks.add();
      }
    }
    after = range.last;
    more = !range.end;
    if (more) LOG(info, "write session {}: {} chunks looked at, {} unused ones deleted", session, seen, deleted);
  }
  kv::Batch batch;
  batch.mutations.push_back({keys::session(session), std::nullopt});
  CO_TRY(
      co_await base_.client.kv_batch(base_.client.system_group(), std::move(batch), mem::Purpose::internal, context));
  metrics_.sweeps.add();
  LOG(info, "write session {} of an earlier start is cleaned up: {} chunks looked at, {} unused ones deleted", session,
      seen, deleted);
  co_return Result<void>{};
}

Task<Result<OrphanReport>> Sweep::check(Identity identity, client::CallContext context) {
  OrphanReport report;
  for (engine::ChunkId after;;) {
    // Who lived at any time during the walk may have had data that was not committed yet when it was looked for.
    CO_TRY(Sessions before, co_await list_sessions(identity, context));
    CO_TRY(const Range range, co_await list_range(after, last_chunk(), context));
    report.chunks += range.chunks.size();
    if (!range.chunks.empty()) {
      References references = references_of(range.chunks);
      CO_TRY(co_await references.mark(base_, context));
      CO_TRY(Sessions sessions, co_await list_sessions(identity, context));
      sessions.alive.insert(sessions.alive.end(), before.alive.begin(), before.alive.end());
      for (const engine::ChunkId& chunk : range.chunks) {
        const DataId data = DataId::of_chunk(chunk);
        switch (references.state(data)) {
          case References::State::referenced:
            ++report.referenced;
            break;
          case References::State::queued:
            ++report.queued;
            break;
          case References::State::none:
            if (std::ranges::find(sessions.alive, data.session()) != sessions.alive.end()) {
              ++report.in_flight;
              break;
            }
            ++report.orphans;
            if (report.examples.size() < OrphanReport::kMaxExamples) report.examples.push_back(chunk.to_string());
        }
      }
    }
    if (range.end) co_return report;
    after = range.last;
  }
}

}  // namespace cairn::object
