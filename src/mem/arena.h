// Arena: the memory that payload lives in. Mapped once in huge pages where the system gives them (explicit ones, else
// transparent ones, else normal pages), touched at start because a first touch on the path costs 20 us a page, and
// registered once with each consumer (io_uring fixed buffers, later verbs). Each reactor's Pool gets a part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace cairn::mem {

class Arena {
 public:
  // Who can have it mapped: this process, or others of the machine, too, to which it gives the memfd. That costs the
  // huge pages, where the system has none for memory that is shared.
  enum class Sharing : uint8_t { process, machine };
  // Rounds up to whole 2 MiB pages and gives all of them their memory, which takes up to a second per GiB. Errors: busy
  // (not that much memory), invalid_argument (0).
  static Result<Arena> create(size_t bytes, Sharing sharing = Sharing::process);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::span<std::byte> memory() const { return memory_; }
  // Explicit huge pages were had.
  bool huge() const { return huge_; }
  // Of Sharing::machine: all of memory(), sealed against shrinking. Else none.
  const Fd& memfd() const { return memfd_; }
  // The `index`th of `count` equal parts, each a multiple of 1 MiB.
  std::span<std::byte> part(size_t index, size_t count) const;

 private:
  Arena(std::span<std::byte> memory, bool huge, Fd memfd = {})
      : memory_(memory), huge_(huge), memfd_(std::move(memfd)) {}
  static Result<Arena> create_shared(size_t bytes);

  std::span<std::byte> memory_;
  bool huge_ = false;
  Fd memfd_;
};

}  // namespace cairn::mem
