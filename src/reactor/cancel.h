// Cancellation: a source, tokens handed down the call chain, and callbacks run when the source is cancelled.
//
// One thread only. Cancelling is a request: each awaited operation ends soon with the reason as its error, and never
// frees a buffer that a device may still write to (an operation on a device ends when the device is done).
#pragma once

#include "base/assert.h"
#include "base/status.h"

namespace cairn {

class CancelCallback;

class CancelSource {
 public:
  CancelSource() = default;
  CancelSource(const CancelSource&) = delete;
  CancelSource& operator=(const CancelSource&) = delete;
  ~CancelSource() { ASSERT(head_ == nullptr); }

  // Runs the callbacks in the order of their registration. Only the first call counts. `reason` is Errc::cancelled, or
  // Errc::timed_out for a deadline.
  void cancel(Errc reason = Errc::cancelled);
  bool cancelled() const { return reason_ != Errc::ok; }
  // Errc::ok until cancelled.
  Errc reason() const { return reason_; }

 private:
  friend class CancelCallback;
  Errc reason_ = Errc::ok;
  CancelCallback* head_ = nullptr;
  CancelCallback* tail_ = nullptr;
};

// A reference to a source, or to none ("never cancelled"). The source outlives its tokens.
class CancelToken {
 public:
  CancelToken() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a source is passed where a token is wanted
  CancelToken(CancelSource& source) : source_(&source) {}

  bool cancelled() const { return source_ != nullptr && source_->cancelled(); }
  Errc reason() const { return source_ == nullptr ? Errc::ok : source_->reason(); }

 private:
  friend class CancelCallback;
  CancelSource* source_ = nullptr;
};

// Calls `function(argument)` when the token's source is cancelled, unless destroyed or reset before. If it is cancelled
// already, nothing is called: check the token first.
class CancelCallback {
 public:
  using Function = void (*)(void*);

  CancelCallback() = default;
  CancelCallback(CancelToken token, Function function, void* argument) { arm(token, function, argument); }
  CancelCallback(const CancelCallback&) = delete;
  CancelCallback& operator=(const CancelCallback&) = delete;
  ~CancelCallback() { reset(); }

  void arm(CancelToken token, Function function, void* argument);
  void reset();

 private:
  friend class CancelSource;
  CancelSource* source_ = nullptr;
  Function function_ = nullptr;
  void* argument_ = nullptr;
  CancelCallback* previous_ = nullptr;
  CancelCallback* next_ = nullptr;
};

}  // namespace cairn
