#include "engine/shard_format.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "engine/superblock.h"

namespace cairn::engine {

Lsn first_lsn(const ShardExtent& extent) {
  const uint64_t pages = extent.journal_bytes / kPageBytes;
  const uint64_t page = crc32c(extent.device.bytes.data(), extent.device.bytes.size(), extent.shard) % pages;
  return Lsn(extent.journal_bytes + page * kPageBytes);
}

Task<Result<void>> format_shard(BlockDevice& device, mem::Pool& pool, ShardExtent extent) {
  CO_TRY(const auto layout, ShardLayout::of(extent));
  CO_TRY(auto zeroes, co_await pool.alloc(mem::kMaxBlock, mem::Purpose::internal));
  std::memset(zeroes.writable(), 0, zeroes.size());
  const uint64_t end = layout.data_offset;
  for (uint64_t at = layout.superblocks_offset; at < end;) {
    const uint64_t n = std::min<uint64_t>(zeroes.size(), end - at);
    CO_TRY(co_await write(device, at, zeroes.slice(0, n)));
    at += n;
  }
  // Zeroes are on the device before the superblock that vouches for them.
  CO_TRY(co_await flush(device));
  const Lsn begin = first_lsn(extent);
  co_return co_await write_superblock(device, pool, extent,
                                      {.generation = 1,
                                       .epoch = 1,
                                       .tail = begin,
                                       .life_begin = begin,
                                       .durable = begin,
                                       .checkpoint = 0,
                                       .clean = true});
}

}  // namespace cairn::engine
