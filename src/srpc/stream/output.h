// Output: the queue of what a stream still has to send. Messages are encoded once, payload stays where it is, and all
// goes out in as few pieces as possible.
//
//   items:   [small small small bulk-prefix | payload] [small | payload] [small small]
//             `---------- bytes ----------'
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/metrics.h"
#include "mem/buf_chain.h"
#include "srpc/wire.h"

namespace cairn::srpc::stream {

class Output {
 public:
  // `copied`: the pool's counter, for payload too small to be worth a piece of its own.
  explicit Output(Counter& copied) : copied_(copied) {}

  // Sets the header's lengths and promises. With header.elsewhere the data is checksummed, if at all, and not sent.
  // `memory_block` goes behind the metadata.
  void add(Header header, std::span<const std::byte> metadata, std::span<const std::byte> memory_block,
           mem::BufChain&& data);

  bool empty() const { return items_.empty(); }
  size_t queued_bytes() const { return queued_bytes_; }
  // The next pieces to send; valid until the next call of add or advance. 0 when empty.
  size_t gather(std::span<iovec> out);
  // The first `n` bytes are sent.
  void advance(size_t n);
  void clear();

 private:
  struct Item {
    size_t bytes = 0;        // in buffer_, right behind those of the item before
    size_t run_bytes = 0;    // those of them, from the start, that are messages which aren't bulk
    size_t first_bytes = 0;  // of the first of these
    mem::BufChain data;
    bool sealed = false;  // part of it has been gathered: its bytes don't change any more
  };

  void seal(Item& item, size_t at);

  Counter& copied_;
  std::vector<std::byte> buffer_;
  size_t front_ = 0;  // where the first item's bytes begin in buffer_
  std::deque<Item> items_;
  size_t sent_ = 0;  // of the first item
  size_t queued_bytes_ = 0;
  uint8_t promised_shift_ = 0;
  uint32_t calm_messages_ = 0;  // without bulk between them
};

}  // namespace cairn::srpc::stream
