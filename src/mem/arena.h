// Arena: the memory that payload lives in. Mapped once in huge pages where the system gives them (explicit ones, else
// transparent ones, else normal pages), touched at start because a first touch on the path costs 20 us a page, and
// registered once with each consumer (io_uring fixed buffers, later verbs). Each reactor's Pool gets a part of it.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"

namespace cairn::mem {

class Arena {
 public:
  // Rounds up to whole 2 MiB pages and gives all of them their memory, which takes up to a second per GiB. Errors: busy
  // (not that much memory), invalid_argument (0).
  static Result<Arena> create(size_t bytes);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::span<std::byte> memory() const { return memory_; }
  // Explicit huge pages were had.
  bool huge() const { return huge_; }
  // The `index`th of `count` equal parts, each a multiple of 1 MiB.
  std::span<std::byte> part(size_t index, size_t count) const;

 private:
  Arena(std::span<std::byte> memory, bool huge) : memory_(memory), huge_(huge) {}

  std::span<std::byte> memory_;
  bool huge_ = false;
};

}  // namespace cairn::mem
