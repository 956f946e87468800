// The only function that copies payload, and the counter that tests hold against what each path may copy.
#pragma once

#include <cstddef>
#include <span>

#include "base/metrics.h"

namespace cairn::mem {

// out.size() == in.size(). Adds to `copied`, a pool's mem_payload_bytes_copied_total.
void copy_payload(Counter& copied, std::span<std::byte> out, std::span<const std::byte> in);

}  // namespace cairn::mem
