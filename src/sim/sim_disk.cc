#include "sim/sim_disk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"

namespace cairn::sim {

using engine::IoRequest;
using engine::kBlockBytes;

struct SimDisk::Operation {
  Operation(SimDisk& owner, IoRequest& io, uint64_t n) : disk(owner), request(io), number(n), timer(&on_timer, this) {}
  SimDisk& disk;
  IoRequest& request;
  uint64_t number;
  Timer timer;
  bool zero = false;          // a write of zeroes; otherwise
  uint32_t crc = 0;           // of its bytes at submit
  uint64_t covers = 0;        // a flush: completions up to this one
  bool power_failed = false;  // its fate is decided
};

namespace {

bool is_zero(const std::byte* bytes, size_t size) {
  uint64_t head = 0;
  if (size < sizeof head) return false;
  std::memcpy(&head, bytes, sizeof head);
  return head == 0 && std::memcmp(bytes, bytes + sizeof head, size - sizeof head) == 0;
}

bool is_zero(const IoRequest& request) {
  for (uint32_t i = 0; i < request.iovec_count; ++i) {
    if (!is_zero(static_cast<const std::byte*>(request.iovecs[i].iov_base), request.iovecs[i].iov_len)) return false;
  }
  return true;
}

// A write's bytes in one piece; null when they are zeroes.
std::unique_ptr<std::byte[]> gather(const IoRequest& request, bool zero) {
  if (zero) return nullptr;
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(request.length);
  size_t at = 0;
  for (uint32_t i = 0; i < request.iovec_count; ++i) {
    std::memcpy(bytes.get() + at, request.iovecs[i].iov_base, request.iovecs[i].iov_len);
    at += request.iovecs[i].iov_len;
  }
  return bytes;
}

uint32_t crc_of(const IoRequest& request) {
  uint32_t crc = 0;
  for (uint32_t i = 0; i < request.iovec_count; ++i) {
    crc = crc32c(request.iovecs[i].iov_base, request.iovecs[i].iov_len, crc);
  }
  return crc;
}

void check_request(const IoRequest& request, uint64_t disk_bytes) {
  ASSERT(request.complete != nullptr);
  if (request.op == IoRequest::Op::flush) return;
  ASSERT(request.length > 0);
  ASSERT(request.offset % kBlockBytes == 0);
  ASSERT(request.length % kBlockBytes == 0);
  ASSERT(request.offset <= disk_bytes && request.length <= disk_bytes - request.offset);
  if (request.op == IoRequest::Op::discard) return;
  uint64_t total = 0;
  for (uint32_t i = 0; i < request.iovec_count; ++i) {
    ASSERT(reinterpret_cast<uintptr_t>(request.iovecs[i].iov_base) % kBlockBytes == 0);
    ASSERT(request.iovecs[i].iov_len % kBlockBytes == 0);
    total += request.iovecs[i].iov_len;
  }
  ASSERT(total == request.length);
}

}  // namespace

SimDisk::SimDisk(SimLoop& loop, Options options)
    : loop_(&loop),
      simulator_(loop.simulator()),
      rng_(simulator_.rng().next()),
      faults_(options.faults),
      media_(options.size_bytes, options.garbage_seed),
      cache_(options.size_bytes),
      cached_(options.size_bytes / DiskImage::kPageBytes, 0),
      written_(cached_.size(), false) {}

SimDisk::~SimDisk() { ASSERT(operations_.empty()); }

Duration SimDisk::draw_latency(const IoRequest& request) {
  const auto spread = static_cast<uint64_t>((faults_.latency_max - faults_.latency_min).ns);
  Duration latency = faults_.latency_min + nanoseconds(static_cast<int64_t>(rng_.below(spread + 1)));
  latency = latency + nanoseconds(static_cast<int64_t>(request.length / 4));  // 4 GB/s
  if (strikes(faults_.slow_ppm)) {
    ++stats_.slow;
    latency = latency + nanoseconds(static_cast<int64_t>(rng_.below(static_cast<uint64_t>(faults_.slow_max.ns))));
  }
  return latency;
}

void SimDisk::submit(IoRequest& request) {
  check_request(request, size_bytes());
  const uint64_t number = next_operation_++;
  auto& operation = *operations_.emplace(number, std::make_unique<Operation>(*this, request, number)).first->second;
  if (!powered_) {
    operation.power_failed = true;
    loop_->arm_in(operation.timer, nanoseconds(1));
    return;
  }
  switch (request.op) {
    case IoRequest::Op::read:
      // The beginning of each page will do: who looks at a page looks there, or at its checksum. Openings read much.
      for (uint32_t i = 0; i < request.iovec_count; ++i) {
        auto* bytes = static_cast<std::byte*>(request.iovecs[i].iov_base);
        for (size_t at = 0; at < request.iovecs[i].iov_len; at += kBlockBytes) std::memset(bytes + at, 0xdb, 64);
      }
      break;
    case IoRequest::Op::write:
      operation.zero = is_zero(request);
      if (!operation.zero) operation.crc = crc_of(request);
      break;
    case IoRequest::Op::flush:
      operation.covers = completions_;
      break;
    case IoRequest::Op::discard:
      break;
  }
  loop_->arm_in(operation.timer, draw_latency(request));
}

void SimDisk::on_timer(void* argument) {
  auto& operation = *static_cast<Operation*>(argument);
  operation.disk.finish(operation);
}

void SimDisk::finish(Operation& operation) {
  IoRequest& request = operation.request;
  const Errc result = operation.power_failed ? Errc::io_error : perform(operation);
  simulator_.trace().event("disk.done", static_cast<uint64_t>(request.op), request.offset, request.length,
                           static_cast<uint64_t>(result) << 32 | operation.crc);
  const uint64_t number = operation.number;
  operations_.erase(number);
  request.result = result;
  request.complete(request);
}

Errc SimDisk::perform(Operation& operation) {
  switch (operation.request.op) {
    case IoRequest::Op::read:
      return perform_read(operation.request);
    case IoRequest::Op::write:
      return perform_write(operation);
    case IoRequest::Op::flush:
      return perform_flush(operation);
    case IoRequest::Op::discard:
      return perform_discard(operation.request);
  }
  return Errc::io_error;
}

Errc SimDisk::perform_read(IoRequest& request) {
  ++stats_.reads;
  if (strikes(faults_.read_error_ppm)) {
    ++stats_.read_errors;
    return Errc::io_error;
  }
  uint64_t at = request.offset;
  for (uint32_t i = 0; i < request.iovec_count; ++i) {
    peek(at, {static_cast<std::byte*>(request.iovecs[i].iov_base), request.iovecs[i].iov_len});
    at += request.iovecs[i].iov_len;
  }
  return Errc::ok;
}

bool SimDisk::may_lie(const IoRequest& request) const {
  return request.offset >= faults_.lie_begin && request.offset + request.length <= faults_.lie_end;
}

Errc SimDisk::perform_write(Operation& operation) {
  IoRequest& request = operation.request;
  ++stats_.writes;
  // The owner promised not to touch it; a device may read it at any moment until now.
  ASSERT(operation.zero ? is_zero(request) : crc_of(request) == operation.crc);
  if (faults_.full) {
    for (uint64_t at = request.offset; at < request.offset + request.length; at += kBlockBytes) {
      const size_t page = at / DiskImage::kPageBytes;
      if (written_[page]) continue;
      ++stats_.full_errors;
      return Errc::no_space;
    }
  }
  auto bytes = gather(request, operation.zero);
  if (strikes(faults_.write_error_ppm)) {
    ++stats_.write_errors;
    // Any of its sectors may have been written: an unflushed write of a mixture of old and new.
    auto mixture = std::make_unique_for_overwrite<std::byte[]>(request.length);
    peek(request.offset, {mixture.get(), request.length});
    for (size_t at = 0; at < request.length; at += faults_.tear_bytes) {
      if (!rng_.chance(1, 2)) continue;
      if (bytes == nullptr) {
        std::memset(mixture.get() + at, 0, faults_.tear_bytes);
      } else {
        std::memcpy(mixture.get() + at, bytes.get() + at, faults_.tear_bytes);
      }
    }
    add_unflushed(request.offset, std::move(mixture), request.length);
    return Errc::io_error;
  }
  if (may_lie(request) && strikes(faults_.lost_write_ppm)) {
    ++stats_.lost_writes;
    stats_.lied_pages += request.length / kBlockBytes;
    return Errc::ok;
  }
  uint64_t offset = request.offset;
  if (may_lie(request) && strikes(faults_.misdirected_write_ppm)) {
    ++stats_.misdirected_writes;
    stats_.lied_pages += request.length / kBlockBytes;
    const uint64_t places = (faults_.lie_end - faults_.lie_begin - request.length) / kBlockBytes + 1;
    offset = faults_.lie_begin + rng_.below(places) * kBlockBytes;
  }
  add_unflushed(offset, std::move(bytes), request.length);
  return Errc::ok;
}

void SimDisk::add_unflushed(uint64_t offset, std::unique_ptr<std::byte[]> bytes, size_t size) {
  put(cache_, offset, bytes.get(), size);
  for (uint64_t at = offset; at < offset + size; at += DiskImage::kPageBytes) {
    ++cached_[at / DiskImage::kPageBytes];
    written_[at / DiskImage::kPageBytes] = true;
  }
  unflushed_.push_back({.completion = ++completions_, .offset = offset, .bytes = std::move(bytes), .size = size});
}

void SimDisk::put(DiskImage& image, uint64_t offset, const std::byte* bytes, size_t size) {
  if (bytes == nullptr) {
    image.write_zeroes(offset, size);
  } else {
    image.write(offset, {bytes, size});
  }
}

Errc SimDisk::perform_flush(Operation& operation) {
  ++stats_.flushes;
  if (flush_failed_) return Errc::io_error;
  const auto covered = [&](const Unflushed& write) { return write.completion <= operation.covers; };
  if (strikes(faults_.flush_error_ppm)) {
    ++stats_.flush_errors;
    flush_failed_ = true;
    for (Unflushed& write : unflushed_) write.doomed |= covered(write);
    return Errc::io_error;
  }
  if (faults_.lie_about_flush) return Errc::ok;
  // Doomed writes stay: readable until the crash that decides about them.
  const auto durable = [&](const Unflushed& write) { return covered(write) && !write.doomed; };
  for (const Unflushed& write : unflushed_) {
    if (durable(write)) make_durable(write);
  }
  std::erase_if(unflushed_, durable);
  return Errc::ok;
}

void SimDisk::make_durable(const Unflushed& write) {
  // What a doomed write left under this one can't come back at a crash.
  for (Unflushed& older : unflushed_) {
    if (!older.doomed || older.completion > write.completion) continue;
    const uint64_t begin = std::max(older.offset, write.offset);
    const uint64_t end = std::min(older.offset + older.size, write.offset + write.size);
    if (begin >= end) continue;
    if (older.bytes == nullptr) {
      older.bytes = std::make_unique<std::byte[]>(older.size);
    }
    if (write.bytes == nullptr) {
      std::memset(older.bytes.get() + (begin - older.offset), 0, end - begin);
    } else {
      std::memcpy(older.bytes.get() + (begin - older.offset), write.bytes.get() + (begin - write.offset), end - begin);
    }
  }
  for (size_t at = 0; at < write.size; at += DiskImage::kPageBytes) {
    const size_t page = (write.offset + at) / DiskImage::kPageBytes;
    if (cached_[page] == 1) {
      media_.take_page(cache_, page);  // no other write has been there since
    } else {
      put(media_, write.offset + at, write.bytes == nullptr ? nullptr : write.bytes.get() + at, DiskImage::kPageBytes);
    }
  }
  release_cached(write.offset, write.size);
}

void SimDisk::release_cached(uint64_t offset, size_t size) {
  for (uint64_t at = offset; at < offset + size; at += DiskImage::kPageBytes) {
    const size_t page = at / DiskImage::kPageBytes;
    ASSERT(cached_[page] > 0);
    if (--cached_[page] == 0) cache_.drop_page(page);
  }
}

Errc SimDisk::perform_discard(IoRequest& request) {
  ++stats_.discards;
  const uint64_t outcome = rng_.below(3);
  if (outcome == 0) return Errc::ok;  // the old bytes stay
  std::unique_ptr<std::byte[]> bytes;
  if (outcome == 1) {
    bytes = std::make_unique_for_overwrite<std::byte[]>(request.length);
    std::memset(bytes.get(), 0x5a, request.length);
  }
  add_unflushed(request.offset, std::move(bytes), request.length);
  return Errc::ok;
}

void SimDisk::power_off() {
  ASSERT(powered_);
  powered_ = false;
  ++stats_.crashes;
  simulator_.trace().event("disk.power_off", unflushed_.size(), operations_.size());
  // Completed ones first, in order: whatever stays of a later write lies over what stays of an earlier one. Since each
  // may be lost, this covers every order.
  for (const Unflushed& write : unflushed_) crash_write(write.offset, write.bytes.get(), write.size, true);
  for (const Unflushed& write : unflushed_) release_cached(write.offset, write.size);
  unflushed_.clear();
  for (auto& [number, operation] : operations_) {
    if (operation->power_failed) continue;
    if (operation->request.op == IoRequest::Op::write) {
      const auto bytes = gather(operation->request, operation->zero);
      crash_write(operation->request.offset, bytes.get(), operation->request.length, false);
    }
    operation->power_failed = true;
    loop_->arm_in(operation->timer, nanoseconds(1));
  }
}

void SimDisk::crash_write(uint64_t offset, const std::byte* bytes, size_t size, bool completed) {
  enum class Fate : uint8_t { kept, lost, torn };
  Fate fate{};
  switch (faults_.crash_style) {
    case CrashStyle::keep_completed:
      fate = completed ? Fate::kept : static_cast<Fate>(rng_.below(3));
      break;
    case CrashStyle::lose_unflushed:
      fate = Fate::lost;
      break;
    case CrashStyle::mixed:
      fate = static_cast<Fate>(rng_.below(3));
      break;
  }
  switch (fate) {
    case Fate::kept:
      ++stats_.crash_kept;
      put(media_, offset, bytes, size);
      break;
    case Fate::lost:
      ++stats_.crash_lost;
      break;
    case Fate::torn:
      ++stats_.crash_torn;
      write_some_sectors(offset, bytes, size);
      break;
  }
}

void SimDisk::write_some_sectors(uint64_t offset, const std::byte* bytes, size_t size) {
  std::array<std::byte, DiskImage::kPageBytes> sector_bytes;
  const auto sector = std::span(sector_bytes).first(faults_.tear_bytes);
  const size_t count = size / sector.size();
  const uint64_t shape = rng_.below(3);  // the first ones, the last ones, any
  const size_t cut = rng_.below(count + 1);
  for (size_t i = 0; i < count; ++i) {
    const bool kept = shape == 0 ? i < cut : shape == 1 ? i >= cut : rng_.chance(1, 2);
    if (!kept) continue;
    if (faults_.tear_to_garbage && rng_.chance(1, 16)) {
      rng_.fill(sector);
    } else if (bytes == nullptr) {
      std::memset(sector.data(), 0, sector.size());
    } else {
      std::memcpy(sector.data(), bytes + i * sector.size(), sector.size());
    }
    media_.write(offset + i * sector.size(), sector);
  }
}

void SimDisk::power_on(SimLoop& loop) {
  ASSERT(!powered_ && operations_.empty());
  powered_ = true;
  flush_failed_ = false;
  loop_ = &loop;
}

uint64_t SimDisk::rot(uint64_t begin, uint64_t end) {
  const size_t first = begin / DiskImage::kPageBytes;
  const size_t count = (end - begin) / DiskImage::kPageBytes;
  if (count == 0) return size_bytes();
  const size_t start = rng_.below(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t page = first + (start + i) % count;
    if (!media_.has_page(page) && cached_[page] == 0) continue;
    const uint64_t at = page * DiskImage::kPageBytes + rng_.below(DiskImage::kPageBytes);
    const auto mask = static_cast<std::byte>(1 << rng_.below(8));
    std::byte byte;
    media_.read(at, {&byte, 1});
    byte ^= mask;
    media_.write(at, {&byte, 1});
    if (cached_[page] > 0) {
      cache_.read(at, {&byte, 1});
      byte ^= mask;
      cache_.write(at, {&byte, 1});
    }
    ++stats_.rotten_bits;
    simulator_.trace().event("disk.rot", at, static_cast<uint64_t>(mask));
    return page * DiskImage::kPageBytes;
  }
  return size_bytes();
}

void SimDisk::peek(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const size_t page = offset / DiskImage::kPageBytes;
    const size_t n = std::min<size_t>(out.size(), DiskImage::kPageBytes - offset % DiskImage::kPageBytes);
    (cached_[page] > 0 ? cache_ : media_).read(offset, out.first(n));
    offset += n;
    out = out.subspan(n);
  }
}

void SimDisk::poke(uint64_t offset, std::span<const std::byte> in) {
  media_.write(offset, in);
  for (size_t done = 0; done < in.size();) {
    const uint64_t at = offset + done;
    const size_t n = std::min<size_t>(in.size() - done, DiskImage::kPageBytes - at % DiskImage::kPageBytes);
    if (cached_[at / DiskImage::kPageBytes] > 0) cache_.write(at, in.subspan(done, n));
    done += n;
  }
}

}  // namespace cairn::sim
