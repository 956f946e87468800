#include "srpc/stream/stream_group.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "srpc/stream/stream_endpoint.h"

namespace cairn::srpc::stream {

StreamGroup::StreamGroup(Reactor& reactor, mem::Pool& pool, mem::Purpose requests, Hot hot)
    : reactor_(reactor), pool_(pool), requests_(requests), hot_limits_(hot), scope_(reactor) {
  reactor_.add_poller(*this);
}

StreamGroup::~StreamGroup() {
  ASSERT(hot_count_ == 0);
  reactor_.remove_poller(*this);
}

std::unique_ptr<Endpoint> StreamGroup::make_endpoint(std::unique_ptr<ByteStream> stream) {
  return std::make_unique<StreamEndpoint>(
      StreamEndpoint::Context{.loop = reactor_, .pool = pool_, .scope = scope_, .requests = requests_},
      std::move(stream));
}

size_t StreamGroup::poll(size_t budget) {
  size_t work = flush_dirty();
  const uint32_t allowance = hot_count_ == 0 ? 0 : hot_limits_.misses / static_cast<uint32_t>(hot_count_);
  // By index: what is received may add to the list and remove from it.
  const size_t n = hot_.size();
  for (size_t i = 0; i < n && work < budget; ++i) {
    GroupedStream* stream = hot_[i];
    if (stream == nullptr) continue;
    stream->received_ = false;
    stream->try_now();
    if (hot_[i] == nullptr) {  // it is gone or doesn't want to receive any more
      ++work;
    } else if (stream->received_) {
      stream->misses_ = 0;
      ++work;
    } else if (++stream->misses_ >= allowance) {
      forget_hot(*stream);
      stream->expect_more(false);
    }
  }
  std::erase(hot_, nullptr);
  return work + flush_dirty();
}

bool StreamGroup::arm() {
  if (std::ranges::any_of(dirty_, [](const GroupedStream* stream) { return stream != nullptr; })) return false;
  for (size_t i = 0; i < hot_.size(); ++i) {
    GroupedStream* stream = hot_[i];
    if (stream == nullptr) continue;
    forget_hot(*stream);
    stream->expect_more(false);
  }
  hot_.clear();
  return true;
}

size_t StreamGroup::flush_dirty() {
  if (dirty_.empty()) return 0;
  // What is queued while flushing (a callback of on_sent) goes with the next.
  std::swap(dirty_, flushing_);
  size_t flushed = 0;
  for (size_t i = 0; i < flushing_.size(); ++i) {
    GroupedStream* stream = flushing_[i];
    if (stream == nullptr) continue;
    flushing_[i] = nullptr;
    stream->dirty_ = false;
    stream->events_->on_flush();
    ++flushed;
  }
  flushing_.clear();
  return flushed;
}

void StreamGroup::add_hot(GroupedStream& stream) {
  ASSERT(!stream.hot_);
  stream.hot_ = true;
  stream.misses_ = 0;
  hot_.push_back(&stream);
  ++hot_count_;
}

void StreamGroup::forget_hot(GroupedStream& stream) {
  if (!stream.hot_) return;
  stream.hot_ = false;
  --hot_count_;
  std::ranges::replace(hot_, &stream, static_cast<GroupedStream*>(nullptr));
}

void StreamGroup::forget_dirty(GroupedStream& stream) {
  if (!stream.dirty_) return;
  stream.dirty_ = false;
  std::ranges::replace(dirty_, &stream, static_cast<GroupedStream*>(nullptr));
  std::ranges::replace(flushing_, &stream, static_cast<GroupedStream*>(nullptr));
}

void GroupedStream::start(StreamEvents& events) {
  ASSERT(events_ == nullptr);
  events_ = &events;
  open();
  expect_more(true);
}

void GroupedStream::expect_more(bool hot_wanted) {
  if (!receiving_ || hot_) return;
  if (hot_wanted && group_.may_be_hot()) {
    unwatch();
    group_.add_hot(*this);
  } else {
    watch();
  }
}

void GroupedStream::set_receiving(bool wanted) {
  if (receiving_ == wanted) return;
  receiving_ = wanted;
  if (!wanted) {
    group_.forget_hot(*this);
    unwatch();
  } else {
    expect_more(true);
  }
}

void GroupedStream::want_flush() {
  if (!dirty_) group_.dirty_.push_back(this);
  dirty_ = true;
}

void GroupedStream::let_go() {
  group_.forget_dirty(*this);
  group_.forget_hot(*this);
}

}  // namespace cairn::srpc::stream
