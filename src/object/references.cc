#include "object/references.h"

#include <algorithm>
#include <string_view>

#include "kv/prefix_store.h"
#include "object/keys.h"
#include "object/records.h"

namespace cairn::object {
namespace {

Result<void> see_part(References& out, std::string_view value) {
  TRY(const auto record, PartRecord::decode(value));
  out.see(record.data.id, References::State::referenced);
  return {};
}

Result<void> see_table(References& out, std::string_view value) {
  TRY(const auto table, PartTable::decode(value));
  for (const TablePart& part : table.parts) out.see(part.data.id, References::State::referenced);
  return {};
}

Result<void> see_object(References& out, std::string_view value) {
  TRY(const auto record, ObjectRecord::decode(value));
  out.see(record.data.id, References::State::referenced);
  return {};
}

Result<void> see_garbage(References& out, std::string_view value) {
  TRY(const auto garbage, GarbageRecord::decode(value));
  for (const DataRef& data : garbage.data) out.see(data.id, References::State::queued);
  return {};
}

struct Space {
  std::string_view prefix;
  Result<void> (*see)(References& out, std::string_view value);
};
// In this order; see the header.
constexpr Space kSpaces[] = {{keys::kParts, &see_part},
                             {keys::kTables, &see_table},
                             {keys::kObjects, &see_object},
                             {keys::kGarbage, &see_garbage}};

}  // namespace

References::References(std::vector<DataId> ids) : ids_(std::move(ids)) {
  std::ranges::sort(ids_);
  const auto rest = std::ranges::unique(ids_);
  ids_.erase(rest.begin(), rest.end());
  states_.assign(ids_.size(), State::none);
}

References::State References::state(const DataId& id) const {
  const auto found = std::ranges::lower_bound(ids_, id);
  return found != ids_.end() && *found == id ? states_[static_cast<size_t>(found - ids_.begin())] : State::none;
}

void References::see(const DataId& id, State state) {
  const auto found = std::ranges::lower_bound(ids_, id);
  if (found == ids_.end() || *found != id) return;
  State& now = states_[static_cast<size_t>(found - ids_.begin())];
  now = std::max(now, state);
}

Task<Result<void>> References::mark(const Base& base, client::CallContext context) {
  for (const engine::GroupId group : base.client.all_groups()) CO_TRY(co_await mark_group(base, group, context));
  co_return Result<void>{};
}

Task<Result<void>> References::mark_group(const Base& base, engine::GroupId group, client::CallContext context) {
  for (const Space& space : kSpaces) {
    std::string begin(space.prefix);
    const std::string end = kv::prefix_end(space.prefix);
    for (bool more = true; more;) {
      kv::ScanOptions options{.begin = begin, .end = end};
      CO_TRY(const auto page, co_await base.client.kv_scan(group, std::move(options), context));
      for (const kv::KeyValue& item : page.items) {
        if (Result<void> seen = space.see(*this, item.value); !seen) co_return std::move(seen).error();
      }
      more = page.more;
      if (more) begin = page.items.back().key + '\0';
      co_await base.loop.yield();
    }
  }
  co_return Result<void>{};
}

}  // namespace cairn::object
