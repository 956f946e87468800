#include "mem/copy.h"

#include <cstring>

#include "base/assert.h"

namespace cairn::mem {

void copy_payload(Counter& copied, std::span<std::byte> out, std::span<const std::byte> in) {
  ASSERT(out.size() == in.size());
  if (in.empty()) return;
  std::memcpy(out.data(), in.data(), in.size());
  copied.add(in.size());
}

}  // namespace cairn::mem
