#include "kv/latches.h"

#include <algorithm>

#include "base/assert.h"

namespace cairn::kv {

Latches::Guard::Guard(Latches* latches, std::unique_ptr<Request> request)
    : latches_(latches), request_(std::move(request)) {}
Latches::Guard::Guard(Guard&& other) noexcept
    : latches_(std::exchange(other.latches_, nullptr)), request_(std::move(other.request_)) {}
Latches::Guard& Latches::Guard::operator=(Guard&& other) noexcept {
  if (this != &other) {
    release();
    latches_ = std::exchange(other.latches_, nullptr);
    request_ = std::move(other.request_);
  }
  return *this;
}
Latches::Guard::~Guard() { release(); }

void Latches::Guard::release() {
  if (request_ == nullptr) return;
  latches_->remove(*request_);
  request_.reset();
}

Latches::~Latches() { ASSERT(keys_.empty() && waiting_ == 0); }

std::vector<Latches::Want> Latches::merged(std::vector<Want> wants) {
  std::ranges::sort(wants, {}, &Want::key);
  std::vector<Want> out;
  for (Want& want : wants) {
    if (!want.check && !want.change) continue;
    if (!out.empty() && out.back().key == want.key) {
      out.back().check |= want.check;
      out.back().change |= want.change;
    } else {
      out.push_back(std::move(want));
    }
  }
  return out;
}

bool Latches::compatible(const Key& key, const Slot& slot) {
  if (slot.check && key.changes_held > 0) return false;
  if (slot.change && key.checks_held > 0) return false;
  return true;
}

void Latches::enqueue(Request& request, std::vector<Want> wants) {
  request.ungranted = wants.size();
  request.slots.reserve(wants.size());  // slots are pointed to: they must not move
  for (Want& want : wants) {
    const auto key = keys_.try_emplace(std::move(want.key)).first;
    Slot& slot = request.slots.emplace_back(
        Slot{.request = &request, .key = key, .check = want.check, .change = want.change, .place = {}});
    slot.place = key->second.waiting.insert(key->second.waiting.end(), &slot);
  }
  // Only now: serving may grant the whole request.
  for (Slot& slot : request.slots) serve(slot.key->second);
}

void Latches::serve(Key& key) {
  while (!key.waiting.empty()) {
    Slot& slot = *key.waiting.front();
    if (!compatible(key, slot)) return;
    key.waiting.pop_front();
    slot.granted = true;
    key.checks_held += slot.check ? 1 : 0;
    key.changes_held += slot.change ? 1 : 0;
    ASSERT(slot.request->ungranted > 0);
    if (--slot.request->ungranted == 0) slot.request->granted.set();
  }
}

void Latches::remove(Request& request) {
  for (Slot& slot : request.slots) {
    Key& key = slot.key->second;
    if (slot.granted) {
      key.checks_held -= slot.check ? 1 : 0;
      key.changes_held -= slot.change ? 1 : 0;
    } else {
      key.waiting.erase(slot.place);
    }
    serve(key);
    // Nobody waits for a key that nobody holds: serve would have given it.
    if (key.waiting.empty() && key.checks_held == 0 && key.changes_held == 0) keys_.erase(slot.key);
  }
  request.slots.clear();
}

Task<Result<Latches::Guard>> Latches::acquire(std::vector<Want> wants, CancelToken cancel) {
  if (cancel.cancelled()) co_return Error(cancel.reason());
  auto request = std::make_unique<Request>(loop_);
  enqueue(*request, merged(std::move(wants)));
  Guard guard(this, std::move(request));  // from here on every way out lets go
  if (guard.request_->ungranted > 0) {
    if (waiting_ >= max_waiting_) {
      co_return Error(Errc::busy, "too many conflicting changes wait for each other; try again later");
    }
    ++waiting_;
    const Result<void> waited = co_await guard.request_->granted.wait(cancel);
    --waiting_;
    if (!waited) co_return waited.error();
  }
  co_return guard;
}

}  // namespace cairn::kv
