// HomeMail: brings blocks that were freed on other threads back to their pool, which lives on a reactor.
//
//   Pool pool(reactor, registry, memory, reserve);
//   HomeMail mail(reactor, pool);                    // from now on, until it is destroyed
#pragma once

#include "mem/pool.h"
#include "reactor/reactor.h"
#include "reactor/remote_stack.h"

namespace cairn::mem {

class HomeMail final : public ForeignFree {
 public:
  HomeMail(Reactor& reactor, Pool& pool) : pool_(pool), stack_(reactor, &deliver, &pool) {
    pool.set_foreign_free(this);
  }
  // Nobody else uses the pool's blocks any more. On the reactor's thread or while it doesn't run.
  ~HomeMail() override { pool_.set_foreign_free(nullptr); }

  void send_home(Block* block) noexcept override { stack_.push(block); }

 private:
  static void deliver(void* pool, Block* block) { static_cast<Pool*>(pool)->free_block(block); }

  Pool& pool_;
  RemoteStack<Block, &Block::next> stack_;
};

}  // namespace cairn::mem
