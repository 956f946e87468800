#include "srpc/tcp/tcp_poll_group.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "srpc/stream/stream_endpoint.h"
#include "srpc/tcp/tcp_stream.h"

namespace cairn::srpc::tcp {

TcpPollGroup::TcpPollGroup(Reactor& reactor, mem::Pool& pool, mem::Purpose requests)
    : reactor_(reactor), pool_(pool), requests_(requests), scope_(reactor) {
  reactor_.add_poller(*this);
}

TcpPollGroup::~TcpPollGroup() {
  ASSERT(hot_count_ == 0);
  reactor_.remove_poller(*this);
}

std::unique_ptr<Endpoint> TcpPollGroup::make_endpoint(Fd fd, std::string peer) {
  auto stream = std::make_unique<TcpStream>(*this, std::move(fd), std::move(peer));
  return std::make_unique<stream::StreamEndpoint>(
      stream::StreamEndpoint::Context{.loop = reactor_, .pool = pool_, .scope = scope_, .requests = requests_},
      std::move(stream));
}

size_t TcpPollGroup::poll(size_t budget) {
  size_t work = flush_dirty();
  const uint32_t allowance = hot_count_ == 0 ? 0 : kMisses / static_cast<uint32_t>(hot_count_);
  // By index: what is received may add to the list and remove from it.
  const size_t n = hot_.size();
  for (size_t i = 0; i < n && work < budget; ++i) {
    TcpStream* stream = hot_[i];
    if (stream == nullptr) continue;
    stream->received_ = false;
    stream->events_->on_receivable();
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

bool TcpPollGroup::arm() {
  if (std::ranges::any_of(dirty_, [](const TcpStream* stream) { return stream != nullptr; })) return false;
  for (size_t i = 0; i < hot_.size(); ++i) {
    TcpStream* stream = hot_[i];
    if (stream == nullptr) continue;
    forget_hot(*stream);
    stream->expect_more(false);
  }
  hot_.clear();
  return true;
}

size_t TcpPollGroup::flush_dirty() {
  if (dirty_.empty()) return 0;
  // What is queued while flushing (a callback of on_sent) goes with the next.
  std::swap(dirty_, flushing_);
  size_t flushed = 0;
  for (size_t i = 0; i < flushing_.size(); ++i) {
    TcpStream* stream = flushing_[i];
    if (stream == nullptr) continue;
    flushing_[i] = nullptr;
    stream->dirty_ = false;
    stream->events_->on_flush();
    ++flushed;
  }
  flushing_.clear();
  return flushed;
}

void TcpPollGroup::add_hot(TcpStream& stream) {
  ASSERT(!stream.hot_);
  stream.hot_ = true;
  stream.misses_ = 0;
  hot_.push_back(&stream);
  ++hot_count_;
}

void TcpPollGroup::forget_hot(TcpStream& stream) {
  if (!stream.hot_) return;
  stream.hot_ = false;
  --hot_count_;
  std::ranges::replace(hot_, &stream, static_cast<TcpStream*>(nullptr));
}

void TcpPollGroup::forget_dirty(TcpStream& stream) {
  if (!stream.dirty_) return;
  stream.dirty_ = false;
  std::ranges::replace(dirty_, &stream, static_cast<TcpStream*>(nullptr));
  std::ranges::replace(flushing_, &stream, static_cast<TcpStream*>(nullptr));
}

}  // namespace cairn::srpc::tcp
