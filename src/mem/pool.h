// Pool: one reactor's part of the arena, given out in blocks of 4 KiB, 16 KiB, 64 KiB, 256 KiB and 1 MiB.
//
// A quad buddy: a free block of one class splits into four of the next smaller one, and four free siblings merge again,
// so the pool never ends up with all its memory in a class that nobody asks for. Splitting and merging touch only the
// bookkeeping, which stands apart from the payload.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "base/thread_id.h"
#include "mem/buf.h"
#include "mem/buf_chain.h"
#include "reactor/cancel.h"
#include "reactor/loop.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn::mem {

inline constexpr std::array<uint32_t, 5> kClassBytes = {4096, 16384, 65536, 262144, 1048576};
inline constexpr size_t kPage = kClassBytes.front();
inline constexpr size_t kMaxBlock = kClassBytes.back();

// Who asks. Each leaves alone what is reserved for those below it:
//
//   client     what comes from outside and what is fetched for outside; waits for requests to be served, anywhere
//   request    what other nodes and poll groups have asked of this one; waits for internal work only
//   internal   replies received, the journal, checkpoints: waits for devices only
//
// So memory can't run out in a circle, also not through two nodes that are each other's clients: whoever waits for
// memory waits for somebody further down to end, and nobody holds memory of one purpose while waiting for more of the
// same. (Who must do that, such as a copy of unaligned bytes, is limited in number.)
enum class Purpose : uint8_t { client, request, internal };
inline constexpr size_t kPurposes = 3;

// Carries a block to its pool's thread, which then calls Pool::free_block. Called on the freeing thread.
class ForeignFree {
 public:
  virtual ~ForeignFree() = default;
  virtual void send_home(Block* block) noexcept = 0;
};

// A holder of memory that others may have at any time: a cache. Asked before anybody has to wait.
class Reclaimer {
 public:
  // Gives up blocks worth about `bytes`; false when nothing is left to give up. Allocates nothing.
  virtual bool reclaim(size_t bytes) noexcept = 0;

 protected:
  ~Reclaimer() = default;
};

class Pool {
 public:
  // `memory` is a multiple of 1 MiB and outlives the pool; `reserve_bytes` of it are for Purpose::internal, and
  // `request_bytes` more not for clients. Belongs to the thread that makes it, until bind_to_this_thread.
  Pool(Loop& loop, Registry& registry, std::span<std::byte> memory, size_t reserve_bytes, size_t request_bytes = 0);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  // All blocks are back.
  ~Pool();

  void bind_to_this_thread() { owner_ = ThreadId::current(); }
  void set_foreign_free(ForeignFree* hook) { foreign_free_ = hook; }
  // Removed before it is destroyed.
  void add_reclaimer(Reclaimer& reclaimer) { reclaimers_.push_back(&reclaimer); }
  void remove_reclaimer(Reclaimer& reclaimer) { std::erase(reclaimers_, &reclaimer); }

  // One block of the smallest class that holds `size` (<= 1 MiB), the Buf's size being `size`; 4 KiB-aligned.
  // Errc::busy when there is none now.
  Result<Buf> try_alloc(size_t size, Purpose purpose = Purpose::client);
  // Waits its turn.
  Task<Result<Buf>> alloc(size_t size, Purpose purpose = Purpose::client, CancelToken token = {});
  // Blocks of 1 MiB and a smaller last one, `size` bytes altogether; smaller blocks, each full but the last, where the
  // memory is in pieces. So enough free bytes are always enough, however they lie. All or nothing, so that two chains
  // that each wait for the other's rest can't exist. Errc::too_large when the pool could never give that much.
  Task<Result<BufChain>> alloc_chain(size_t size, Purpose purpose = Purpose::client, CancelToken token = {});

  size_t free_bytes() const { return free_bytes_; }
  // Somebody waits for memory: a cache takes nothing in now.
  bool has_waiters() const;
  size_t total_bytes() const { return memory_.size(); }
  // What clients leave alone for requests.
  size_t request_bytes() const { return request_bytes_; }
  // Where copy_payload on this reactor counts.
  Counter& copied() { return copied_; }
  Loop& loop() { return loop_; }
  std::span<std::byte> memory() const { return memory_; }

  // On the pool's own thread. For Buf and ForeignFree.
  void free_block(Block* block) noexcept;

 private:
  friend class Buf;
  struct Node;

  static size_t class_of(size_t size);
  Semaphore& turn(Purpose purpose) { return turns_[static_cast<size_t>(purpose)]; }
  size_t kept_from(Purpose purpose) const;
  Block* take(size_t class_index);
  enum class Shape : uint8_t { one_block, any_blocks };
  static size_t needed(size_t size, Shape shape);
  bool can_ever_give(size_t size, Purpose purpose, Shape shape) const;
  bool try_take(size_t size, Purpose purpose, Shape shape, BufChain& out);
  bool try_take_reclaiming(size_t size, Purpose purpose, Shape shape, BufChain& out);
  Task<Result<void>> wait_and_take(size_t size, Purpose purpose, Shape shape, CancelToken token, BufChain& out);
  size_t page_of(const Block* block) const { return static_cast<size_t>(block - blocks_.get()); }
  void push_free(size_t class_index, size_t page);
  void remove_free(size_t class_index, size_t page);

  Loop& loop_;
  std::span<std::byte> memory_;
  size_t reserve_bytes_;
  size_t request_bytes_;
  size_t free_bytes_;
  ThreadId owner_;
  ForeignFree* foreign_free_ = nullptr;
  std::vector<Reclaimer*> reclaimers_;

  // One entry per 4 KiB page; the entry of a block's first page speaks for the block.
  std::unique_ptr<Block[]> blocks_;
  static constexpr uint8_t kNotFree = 0xff;
  std::vector<uint8_t> free_class_;  // the class of the free block that starts here, or kNotFree
  std::vector<uint32_t> free_slot_;  // its place in free_[class]
  std::array<std::vector<uint32_t>, kClassBytes.size()> free_;

  // Waiters queue for a turn; the one whose turn it is waits for freed_. A queue for each purpose, because nobody may
  // stand behind those who wait for him.
  std::array<Semaphore, kPurposes> turns_;
  Event freed_;
  Counter& copied_;
  Gauge& free_gauge_;
  Counter& waits_;
};

}  // namespace cairn::mem
