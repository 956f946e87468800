#include "scenarios/object_workload.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "client/client.h"
#include "engine/types.h"
#include "scenarios/page_pattern.h"

namespace cairn::scenarios {

using engine::kPageBytes;

namespace {

constexpr std::string_view kBucket = "bucket";

std::string etag_of(uint64_t version) { return "v" + std::to_string(version); }
uint64_t version_of(std::string_view etag) {
  uint64_t version = 0;
  if (etag.starts_with('v')) (void)std::from_chars(etag.data() + 1, etag.data() + etag.size(), version);
  return version;
}

uint64_t random_size(Rng& rng, bool small_only) {
  switch (rng.below(small_only ? 4 : 8)) {
    case 0:
      return 0;
    case 1:
      return 1 + rng.below(200);
    case 2:
      return 1 + rng.below(5000);
    case 3:
      return 1 + rng.below(40'000);
    case 4:
      return 4096 * (1 + rng.below(16));
    case 5:
      return 65536 * (1 + rng.below(4));
    case 6:
      return 1 + rng.below(400'000);
    default:
      return rng.chance(1, 8) ? 4'000'000 + rng.below(1'000'000) : 1 + rng.below(1'000'000);
  }
}

struct RangeOf final : object::RangeChooser {
  explicit RangeOf(std::optional<object::ByteRange> wanted) : range(wanted) {}
  Result<object::ByteRange> choose(const object::ObjectInfo& info) override {
    chosen = range.value_or(object::ByteRange{0, info.size});
    chosen.offset = std::min(chosen.offset, info.size);
    chosen.length = std::min(chosen.length, info.size - chosen.offset);
    return chosen;
  }
  std::optional<object::ByteRange> range;
  object::ByteRange chosen;
};

}  // namespace

ObjectWorkload::ObjectWorkload(NodeWorld& world)
    : world_(world),
      clients_(static_cast<uint32_t>(1 + world.rng.below(4))),
      keys_per_client_(static_cast<uint32_t>(1 + world.rng.below(5))),
      small_objects_only_(world.rng.chance(1, 3)),
      scope_(world.loop) {}

object::CallContext ObjectWorkload::context() {
  return {.deadline = world_.loop.now() + seconds(60), .cancel = *stop_};
}

std::string ObjectWorkload::own_key(SeededRng& rng, uint32_t client) const {
  return fmt::format("c{}/k{}", client, rng.below(keys_per_client_));
}
std::string ObjectWorkload::any_key(SeededRng& rng) const {
  return own_key(rng, static_cast<uint32_t>(rng.below(clients_)));
}

Task<void> ObjectWorkload::make_bucket() {
  if (stop_ == nullptr) stop_ = std::make_unique<CancelSource>();
  const auto made = co_await world_.objects().create_bucket(std::string(kBucket), "owner",
                                                            {.deadline = world_.loop.now() + seconds(60)});
  world_.check.that(made || made.code() == Errc::already_exists, "the bucket can't be made: {}",
                    made ? "" : made.error().to_string());
}

void ObjectWorkload::start() {
  stop_ = std::make_unique<CancelSource>();
  for (uint32_t i = 0; i < clients_; ++i) scope_.spawn(&ObjectWorkload::client, this, i, world_.rng.next());
}

void ObjectWorkload::join() { world_.sim.run(world_.loop, &Scope::join, &scope_); }

Task<void> ObjectWorkload::client(ObjectWorkload* self, uint32_t number, uint64_t seed) {
  SeededRng rng(seed);
  const CancelToken stop(*self->stop_);
  while (!stop.cancelled() && self->world_.check.ok()) {
    constexpr std::pair<uint32_t, Step> kSteps[] = {
        {8, &ObjectWorkload::put},    {2, &ObjectWorkload::put_in_parts}, {8, &ObjectWorkload::get},
        {4, &ObjectWorkload::remove}, {2, &ObjectWorkload::list},         {1, &ObjectWorkload::race},
    };
    uint64_t at = rng.below(25);
    for (const auto& [weight, step] : kSteps) {
      if (at < weight) {
        co_await (self->*step)(rng, number);
        break;
      }
      at -= weight;
    }
    (void)co_await self->world_.loop.sleep(microseconds(static_cast<int64_t>(1 + rng.below(300))), stop);
  }
}

void ObjectWorkload::check_error(Errc code, const std::string& what) {
  NodeWorld& world = world_;
  if (code == Errc::ok || !world.powered() || stop_->cancelled()) return;
  const FaultPlan& plan = world.plan;
  const bool fenced = plan.write_errors || plan.flush_errors || plan.store_errors;
  const bool explained =
      code == Errc::no_space || code == Errc::busy || (code == Errc::io_error && (plan.read_errors || fenced)) ||
      ((code == Errc::device_fenced || code == Errc::unavailable || code == Errc::timed_out || code == Errc::closed) &&
       fenced);
  world.check.that(explained, "{} failed without a cause: {}", what, std::string(errc_name(code)));
  world.coverage.hit(fmt::format("object.{}", errc_name(code)));
}

void ObjectWorkload::conclude(const std::string& key, const Attempt& attempt) {
  if (attempt.result == Errc::ok) {
    model_.acknowledge(key, attempt.version);
  } else if (!attempt.committed || !client::outcome_unknown(attempt.result)) {
    model_.refuse(key, attempt.version);
  }
}

Task<Result<void>> ObjectWorkload::write_pieces(object::Writer& writer, uint64_t version, uint64_t size) {
  SeededRng rng(version);
  for (uint64_t done = 0; done < size;) {
    const uint64_t piece = std::min<uint64_t>(size - done, kPageBytes * (1 + rng.below(64)));
    CO_TRY(auto chain, co_await world_.pool->alloc_chain(piece, mem::Purpose::client, *stop_));
    uint64_t at = done;
    for (mem::Buf buf : chain.slices()) {
      for (std::span<std::byte> rest = buf.writable_bytes(); !rest.empty();) {
        const auto n = std::min<size_t>(rest.size(), kPageBytes);
        fill_page(rest.first(n), version, static_cast<uint32_t>(at / kPageBytes));
        rest = rest.subspan(n);
        at += n;
      }
    }
    CO_TRY(co_await writer.write(std::move(chain)));
    done += piece;
  }
  co_return Result<void>{};
}

Task<void> ObjectWorkload::attempt_put(std::string key, uint64_t size, object::WriteConditions conditions,
                                       Attempt* attempt) {
  attempt->version = model_.new_version();
  model_.describe({.version = attempt->version, .pieces = {{attempt->version, size}}});
  auto writer = co_await world_.objects().put(std::string(kBucket), key, context());
  attempt->result = writer.code();
  if (!writer) co_return;
  if (const auto written = co_await write_pieces(**writer, attempt->version, size); !written) {
    attempt->result = written.code();
    co_await (*writer)->abort();
    co_return;
  }
  attempt->committed = true;
  model_.begin_change(key, attempt->version);
  const auto committed =
      co_await (*writer)->commit({.etag = etag_of(attempt->version), .conditions = std::move(conditions)});
  attempt->result = committed.code();
  world_.sim.trace().event("object.put", attempt->version, size, static_cast<uint64_t>(attempt->result));
}

Task<void> ObjectWorkload::put(SeededRng& rng, uint32_t client) {
  const std::string key = own_key(rng, client);
  Attempt attempt;
  co_await attempt_put(key, random_size(rng, small_objects_only_), {}, &attempt);
  if (attempt.committed || attempt.result == Errc::ok) conclude(key, attempt);
  check_error(attempt.result, "a put");
  if (attempt.result == Errc::ok) world_.coverage.hit("object.put");
}

Task<void> ObjectWorkload::put_in_parts(SeededRng& rng, uint32_t client) {
  const std::string key = own_key(rng, client);
  auto& objects = world_.objects();
  auto upload = co_await objects.create_upload(std::string(kBucket), key, {}, context());
  if (!upload) {
    check_error(upload.code(), "the start of an upload");
    co_return;
  }
  ObjectContent content{.version = model_.new_version(), .pieces = {}};
  std::vector<object::PartInfo> parts;
  Result<void> outcome;
  for (uint32_t number = 1; number <= 1 + rng.below(3) && outcome; ++number) {
    const uint64_t version = model_.new_version();
    const uint64_t size = 1 + random_size(rng, small_objects_only_);
    auto writer = co_await objects.put_part(std::string(kBucket), key, *upload, number, context());
    if (!writer) {
      outcome = writer.error();
      break;
    }
    outcome = co_await write_pieces(**writer, version, size);
    if (!outcome) {
      co_await (*writer)->abort();
      break;
    }
    if (const auto part = co_await (*writer)->commit({.etag = etag_of(version)}); !part) {
      outcome = part.error();
      break;
    }
    content.pieces.push_back({version, size});
    parts.push_back({.number = number, .size = size, .etag = etag_of(version)});
  }
  if (!outcome || rng.chance(1, 5)) {
    if (!outcome) check_error(outcome.code(), "a part");
    const auto aborted = co_await objects.abort_upload(std::string(kBucket), key, *upload, context());
    if (!aborted) check_error(aborted.code(), "an abort");
    world_.coverage.hit("object.upload_aborted");
    co_return;
  }
  model_.describe(content);
  Attempt attempt{.version = content.version, .committed = true};
  model_.begin_change(key, attempt.version);
  const auto completed = co_await objects.complete_upload(
      std::string(kBucket), key, *upload, {.parts = parts, .etag = etag_of(content.version)}, context());
  attempt.result = completed.code();
  conclude(key, attempt);
  check_error(attempt.result, "the completion of an upload");
  if (attempt.result == Errc::ok) world_.coverage.hit("object.upload_completed");
}

void ObjectWorkload::check_bytes(const std::string& key, const ObjectContent& content, uint64_t offset,
                                 const mem::BufChain& data) {
  uint64_t at = offset;
  for (const mem::Buf& buf : data.slices()) {
    for (std::span<const std::byte> rest = buf.bytes(); !rest.empty() && world_.check.ok();) {
      // Which piece, and which of its pages.
      uint64_t begin = 0;
      size_t index = 0;
      while (index + 1 < content.pieces.size() && at >= begin + content.pieces[index].size) {
        begin += content.pieces[index++].size;
      }
      const auto& piece = content.pieces[index];
      const uint64_t within = at - begin;
      const auto page_offset = static_cast<uint32_t>(within % kPageBytes);
      const size_t n = std::min<uint64_t>({rest.size(), kPageBytes - page_offset, piece.size - within});
      world_.check.that(page_matches(rest.first(n), page_offset, {.version = piece.version, .valid = kPageBytes},
                                     static_cast<uint32_t>(within / kPageBytes)),
                        "WRONG BYTES: {} is {} by its etag, and not so at byte {}", key, etag_of(content.version), at);
      at += n;
      rest = rest.subspan(n);
    }
  }
}

Task<void> ObjectWorkload::checked_get(std::string key, std::optional<object::ByteRange> range) {
  const auto look = model_.begin_look(key);
  RangeOf chooser(range);
  auto reader = co_await world_.objects().open(std::string(kBucket), key, &chooser, context());
  const uint64_t version = reader ? version_of((*reader)->info().etag) : 0;
  if (reader || reader.code() == Errc::not_found) {
    world_.check.that(std::ranges::find(look->versions, version) != look->versions.end(), "{} is {}, and it can't be",
                      key, version == 0 ? "absent" : etag_of(version));
  } else {
    check_error(reader.code(), "a get");
  }
  model_.end_look(look);
  if (!reader || !world_.check.ok()) co_return;

  const ObjectContent& content = model_.content(version);
  world_.check.that((*reader)->info().size == content.size(), "{} has {} bytes, not {}", key, (*reader)->info().size,
                    content.size());
  uint64_t at = chooser.chosen.offset;
  const uint64_t end = at + chooser.chosen.length;
  while (world_.check.ok()) {
    const auto data = co_await (*reader)->next();
    if (!data) {
      check_error(data.code(), "reading on");
      co_return;
    }
    if (data->empty()) break;
    if (!world_.check.that(data->size() <= end - at, "{}: more bytes than its range has", key)) co_return;
    check_bytes(key, content, at, *data);
    at += data->size();
    // A slow reader: the object may be replaced and deleted meanwhile.
    if (world_.rng.chance(1, 8)) (void)co_await world_.loop.sleep(milliseconds(3), *stop_);
  }
  world_.check.that(at == end, "{}: its range ended at byte {}, not {}", key, at, end);
  world_.coverage.hit("object.get");
}

Task<void> ObjectWorkload::get(SeededRng& rng, uint32_t) {
  std::optional<object::ByteRange> range;
  if (rng.chance(1, 2)) range = object::ByteRange{rng.below(300'000), 1 + rng.below(200'000)};
  co_await checked_get(any_key(rng), range);
}

Task<Result<void>> ObjectWorkload::remove_key(std::string key) {
  Attempt attempt{.version = 0, .committed = true};
  model_.begin_change(key, 0);
  const auto removed = co_await world_.objects().remove(std::string(kBucket), key, {}, context());
  attempt.result = removed.code();
  conclude(key, attempt);
  co_return removed;
}

Task<void> ObjectWorkload::remove(SeededRng& rng, uint32_t client) {
  const auto removed = co_await remove_key(own_key(rng, client));
  check_error(removed.code(), "a delete");
  world_.check.that(removed.code() != Errc::no_space, "a delete was refused for want of space");
  if (removed) world_.coverage.hit("object.deleted");
}

Task<void> ObjectWorkload::list(SeededRng& rng, uint32_t) {
  object::ListQuery query;
  query.max_keys = 1 + rng.below(6);
  std::string previous;
  for (;;) {
    const auto page = co_await world_.objects().list(std::string(kBucket), query, context());
    if (!page) {
      check_error(page.code(), "a listing");
      co_return;
    }
    for (const auto& object : page->objects) {
      world_.check.that(object.key > previous, "a listing gives {} after {}", object.key, previous);
      previous = object.key;
    }
    if (!page->truncated || !world_.check.ok()) break;
    query.start_after = page->next;
  }
  world_.coverage.hit("object.listed");
}

// P26: of several conditional creations at once, one wins.
Task<void> ObjectWorkload::race(SeededRng& rng, uint32_t client) {
  const std::string key = fmt::format("race/{}-{}", client, races_++);
  std::array<Attempt, 4> attempts;
  Scope scope(world_.loop);
  for (Attempt& attempt : attempts) {
    scope.spawn(&ObjectWorkload::attempt_put, this, key, rng.below(10'000),
                object::WriteConditions{.if_none_match_any = true}, &attempt);
  }
  co_await scope.join();
  const auto won = std::ranges::count(attempts, Errc::ok, &Attempt::result);
  const bool all_known = std::ranges::none_of(attempts, [](const Attempt& a) {
    return a.committed && a.result != Errc::ok && client::outcome_unknown(a.result);
  });
  world_.check.that(won <= 1, "{} of {} conditional creations of one key won", won, attempts.size());
  uint64_t lost = 0;
  for (const Attempt& attempt : attempts) {
    if (attempt.result == Errc::already_exists) ++lost;
    if (attempt.result != Errc::already_exists) check_error(attempt.result, "a conditional put");
  }
  world_.check.that(won == 1 || lost == 0 || !all_known, "all conditional creations of one key lost");
  for (const Attempt& attempt : attempts) {
    if (attempt.result == Errc::ok || !attempt.committed) continue;
    if (!client::outcome_unknown(attempt.result) || won == 1) model_.refuse(key, attempt.version);
  }
  for (const Attempt& attempt : attempts) {
    if (attempt.result == Errc::ok) model_.acknowledge(key, attempt.version);
  }
  world_.coverage.hit("object.race");
}

Task<void> ObjectWorkload::check_everything() {
  // What is found settles what was not known.
  std::vector<std::string> keys;
  for (const auto& [key, versions] : model_.keys()) keys.push_back(key);
  std::vector<std::pair<std::string, uint64_t>> present;
  for (const std::string& key : keys) {
    const auto head = co_await world_.objects().head(std::string(kBucket), key, context());
    if (!world_.check.that(head || head.code() == Errc::not_found, "{} can't be looked at: {}", key,
                           head ? "" : head.error().to_string())) {
      co_return;
    }
    const uint64_t version = head ? version_of(head->etag) : 0;
    if (!world_.check.that(model_.may_be(key, version), "after a restart {} is {}, and it can't be", key,
                           version == 0 ? "absent" : etag_of(version))) {
      co_return;
    }
    model_.settle(key, version);
    if (version != 0) present.emplace_back(key, version);
    co_await checked_get(key, std::nullopt);
    if (!world_.check.ok()) co_return;
  }
  std::vector<std::pair<std::string, uint64_t>> listed;
  object::ListQuery query;
  query.max_keys = 7;
  for (;;) {
    const auto page = co_await world_.objects().list(std::string(kBucket), query, context());
    if (!world_.check.that(page.has_value(), "the bucket can't be listed: {}", page ? "" : page.error().to_string())) {
      co_return;
    }
    for (const auto& object : page->objects) listed.emplace_back(object.key, version_of(object.etag));
    if (!page->truncated) break;
    query.start_after = page->next;
  }
  world_.check.that(listed == present, "the bucket lists {} objects, and {} are there, or others", listed.size(),
                    present.size());
}

Task<void> ObjectWorkload::everything_works() {
  stop_ = std::make_unique<CancelSource>();
  for (uint32_t client = 0; client < clients_ && world_.check.ok(); ++client) {
    const std::string key = fmt::format("c{}/k0", client);
    const auto removed = co_await remove_key(key);
    world_.check.that(removed.has_value(), "a delete without faults failed: {}",
                      removed ? "" : removed.error().to_string());
    Attempt attempt;
    co_await attempt_put(key, 3000, {}, &attempt);
    if (attempt.committed) conclude(key, attempt);
    // On a full device a put may have to wait for the janitor.
    for (int tries = 0; attempt.result == Errc::no_space && tries < 100 && world_.check.ok(); ++tries) {
      (void)co_await world_.loop.sleep(seconds(10));
      co_await attempt_put(key, 3000, {}, &attempt);
      if (attempt.committed) conclude(key, attempt);
      if (tries == 20) co_await delete_everything();
    }
    world_.check.that(attempt.result == Errc::ok, "a put without faults failed: {}",
                      std::string(errc_name(attempt.result)));
    if (world_.check.ok()) co_await checked_get(key, std::nullopt);
  }
}

Task<void> ObjectWorkload::delete_everything() {
  if (stop_->cancelled()) stop_ = std::make_unique<CancelSource>();
  std::vector<std::string> keys;
  for (const auto& [key, versions] : model_.keys()) keys.push_back(key);
  for (const std::string& key : keys) {
    const auto removed = co_await remove_key(key);
    world_.check.that(removed.has_value(), "a delete without faults failed: {}",
                      removed ? "" : removed.error().to_string());
    if (!world_.check.ok()) co_return;
  }
  // Uploads that nobody will finish.
  const auto uploads = co_await world_.objects().list_uploads(std::string(kBucket), {}, context());
  if (!world_.check.that(uploads.has_value(), "uploads can't be listed")) co_return;
  for (const auto& upload : uploads->uploads) {
    const auto aborted =
        co_await world_.objects().abort_upload(std::string(kBucket), upload.key, upload.upload_id, context());
    world_.check.that(aborted.has_value(), "an upload can't be aborted: {}",
                      aborted ? "" : aborted.error().to_string());
  }
}

}  // namespace cairn::scenarios
