// The in-memory Stream (stream.h). Each direction is a bounded run of bytes with a reader that waits for more or for
// the end, and a writer that waits for room.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "reactor/stream.h"
#include "reactor/sync.h"

namespace cairn {
namespace {

class Direction {
 public:
  Direction(Loop& loop, size_t capacity) : capacity_(capacity), changed_(loop) {}

  Task<Result<size_t>> read(std::span<iovec> into, bool keep, CancelToken token) {
    while (bytes_.empty()) {
      if (reader_closed_) co_return Error(Errc::closed, "pipe");
      if (ended_) co_return size_t{0};
      CO_TRY(co_await wait(token));
    }
    if (reader_closed_) co_return Error(Errc::closed, "pipe");
    size_t done = 0;
    for (const iovec& part : into) {
      const size_t n = std::min(part.iov_len, bytes_.size() - done);
      if (n > 0) std::memcpy(part.iov_base, bytes_.data() + done, n);
      done += n;
    }
    if (!keep) {
      bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(done));
      changed_.set();
    }
    co_return done;
  }

  Task<Result<void>> write(std::span<iovec> from, CancelToken token) {
    for (iovec& part : from) {
      while (part.iov_len > 0) {
        if (ended_ || reader_closed_) co_return Error(Errc::closed, "pipe");
        if (token.cancelled()) co_return Error(token.reason());
        const size_t n = std::min(part.iov_len, capacity_ - bytes_.size());
        const auto* data = static_cast<const std::byte*>(part.iov_base);
        bytes_.insert(bytes_.end(), data, data + n);
        part = {static_cast<std::byte*>(part.iov_base) + n, part.iov_len - n};
        if (n > 0) {
          changed_.set();
        } else {
          CO_TRY(co_await wait(token));
        }
      }
    }
    co_return Result<void>();
  }

  void end() {
    ended_ = true;
    changed_.set();
  }
  // Its reader has closed.
  void close_reader() {
    reader_closed_ = true;
    changed_.set();
  }

 private:
  Event::Awaiter wait(CancelToken token) {
    changed_.reset();
    return changed_.wait(token);
  }

  size_t capacity_;
  std::vector<std::byte> bytes_;
  bool ended_ = false;
  bool reader_closed_ = false;
  Event changed_;
};

class PipeEnd final : public Stream {
 public:
  PipeEnd(std::shared_ptr<Direction> in, std::shared_ptr<Direction> out) : in_(std::move(in)), out_(std::move(out)) {}
  ~PipeEnd() override { PipeEnd::close(); }

  using Stream::send_all;
  Task<Result<size_t>> recv(std::span<std::byte> into, CancelToken token) override {
    ASSERT(!into.empty());
    iovec vector{into.data(), into.size()};
    co_return co_await in_->read({&vector, 1}, false, token);
  }
  Task<Result<size_t>> peek(std::span<std::byte> into, CancelToken token) override {
    ASSERT(!into.empty());
    iovec vector{into.data(), into.size()};
    co_return co_await in_->read({&vector, 1}, true, token);
  }
  Task<Result<size_t>> recv_vectors(std::span<iovec> into, CancelToken token) override {
    co_return co_await in_->read(into, false, token);
  }
  Task<Result<void>> send_all(std::span<iovec> from, CancelToken token) override {
    co_return co_await out_->write(from, token);
  }
  void shutdown_send() override { out_->end(); }
  void close() override {
    out_->end();
    in_->close_reader();
  }
  std::string peer() const override { return "(memory)"; }

 private:
  std::shared_ptr<Direction> in_;
  std::shared_ptr<Direction> out_;
};

}  // namespace

std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> make_pipe(Loop& loop, size_t capacity) {
  ASSERT(capacity > 0);
  auto there = std::make_shared<Direction>(loop, capacity);
  auto back = std::make_shared<Direction>(loop, capacity);
  return {std::make_unique<PipeEnd>(back, there), std::make_unique<PipeEnd>(there, back)};
}

}  // namespace cairn
