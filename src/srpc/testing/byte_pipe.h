// For tests: two ends of a stream of bytes in memory, which carries as much at a time as it is told, keeps, changes or
// cuts what passes, and has a limited room for what wasn't taken yet.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "srpc/stream/byte_stream.h"

namespace cairn::srpc::testing {

class BytePipe {
 public:
  // One direction.
  struct Lane {
    std::vector<std::byte> passed;  // all that was ever sent, as it was sent
    std::vector<std::byte> waiting;
    size_t most_at_once = std::numeric_limits<size_t>::max();
    size_t room = std::numeric_limits<size_t>::max();
    size_t cut_at = std::numeric_limits<size_t>::max();  // of `passed`: the stream ends there
    std::function<std::byte(size_t at, std::byte)> change;
    bool ended = false;
    bool was_full = false;
  };

  // Side 0 sends on lane 0 and receives from lane 1; side 1 the other way round. The pipe outlives its ends.
  std::unique_ptr<stream::ByteStream> end(size_t side) { return std::make_unique<End>(*this, side); }

  // Tells both sides what there is to tell, once. False when there was nothing.
  bool step() {
    bool something = false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (ends_[side] == nullptr) continue;
      Lane& out = lanes[side];
      if (out.was_full && out.waiting.size() < out.room) {
        out.was_full = false;
        something = true;
        ends_[side]->events().on_sendable();
      }
      Lane& in = lanes[1 - side];
      if (ends_[side] != nullptr && ends_[side]->wants_more() && (!in.waiting.empty() || (in.ended && !told_[side]))) {
        told_[side] = in.ended && in.waiting.empty();
        something = true;
        ends_[side]->events().on_receivable();
      }
    }
    return something;
  }

  // As new; no end is there.
  void reset() {
    lanes = {};
    told_ = {};
  }

  std::array<Lane, 2> lanes;

 private:
  class End final : public stream::ByteStream {
   public:
    End(BytePipe& pipe, size_t side) : pipe_(pipe), side_(side) { pipe_.ends_[side] = this; }
    ~End() override {
      if (pipe_.ends_[side_] != this) return;
      pipe_.ends_[side_] = nullptr;
      out().ended = true;
    }
    void start(stream::StreamEvents& events) override { events_ = &events; }
    stream::Moved receive(std::span<iovec> vectors) override {
      Lane& in = pipe_.lanes[1 - side_];
      if (in.waiting.empty()) return {in.ended ? stream::Moved::How::end : stream::Moved::How::would_block};
      const size_t most = std::min(in.most_at_once, in.waiting.size());
      size_t n = 0;
      for (const iovec& vector : vectors) {
        const size_t piece = std::min(vector.iov_len, most - n);
        std::memcpy(vector.iov_base, in.waiting.data() + n, piece);
        n += piece;
      }
      in.waiting.erase(in.waiting.begin(), in.waiting.begin() + static_cast<ptrdiff_t>(n));
      return {stream::Moved::How::some, n, {}, !in.waiting.empty() || in.ended};
    }
    stream::Moved send(std::span<iovec> vectors) override {
      Lane& lane = out();
      size_t n = 0;
      for (const iovec& vector : vectors) {
        for (size_t i = 0; i < vector.iov_len && n < lane.most_at_once && lane.waiting.size() < lane.room; ++i, ++n) {
          const std::byte byte = static_cast<const std::byte*>(vector.iov_base)[i];
          const size_t at = lane.passed.size();
          lane.passed.push_back(byte);
          lane.ended = lane.ended || at >= lane.cut_at;
          if (!lane.ended) lane.waiting.push_back(lane.change ? lane.change(at, byte) : byte);
        }
      }
      lane.was_full = n == 0;
      if (n == 0) return {stream::Moved::How::would_block};
      return {stream::Moved::How::some, n};
    }
    void set_receiving(bool wanted) override { receiving_ = wanted; }
    void want_flush() override {}
    void shutdown_send() override { out().ended = true; }
    const std::string& peer() const override { return peer_; }

    stream::StreamEvents& events() { return *events_; }
    bool wants_more() const { return receiving_ && events_ != nullptr; }

   private:
    Lane& out() { return pipe_.lanes[side_]; }

    BytePipe& pipe_;
    const size_t side_;
    stream::StreamEvents* events_ = nullptr;
    bool receiving_ = true;
    std::string peer_ = "pipe";
  };

  std::array<End*, 2> ends_{};
  std::array<bool, 2> told_{};
};

}  // namespace cairn::srpc::testing
