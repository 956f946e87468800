// Assertions state what only a bug can break. They stay on in every build: a storage system that goes on after its
// invariants broke destroys data. What a peer, a client or a disk can cause is an Error (status.h), never an assertion.
#pragma once

namespace cairn {

// Prints the condition and the place on standard error, then aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace cairn

#define ASSERT(condition)                                      \
  (__builtin_expect(static_cast<bool>(condition), 1) ? void(0) \
                                                     : ::cairn::assertion_failed(#condition, __FILE__, __LINE__))
