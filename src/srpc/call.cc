#include "srpc/call.h"

#include "base/assert.h"
#include "srpc/channel.h"

namespace cairn::srpc::detail {

PendingCall::PendingCall(Channel& channel, MethodId method, Manner manner, const CallOptions& options)
    : channel_(channel), method_(method), manner_(manner), options_(options), timer_(&on_deadline, this) {}

PendingCall::~PendingCall() { ASSERT(state_ == State::made || state_ == State::done); }

bool PendingCall::submit(std::coroutine_handle<> handle) {
  handle_ = handle;
  submitting_ = true;
  channel_.submit(*this);
  submitting_ = false;
  return state_ != State::done;
}

void PendingCall::finish(Errc status, std::string text) {
  ASSERT(state_ != State::done);
  state_ = State::done;
  status_ = status;
  error_text_ = std::move(text);
  channel_.loop().disarm(timer_);
  cancel_.reset();
  channel_.finished(*this);
  if (!submitting_) channel_.loop().post(handle_);
}

void PendingCall::on_deadline(void* self) {
  auto& call = *static_cast<PendingCall*>(self);
  call.channel_.give_up(call, Errc::timed_out);
}

void PendingCall::on_cancel(void* self) {
  auto& call = *static_cast<PendingCall*>(self);
  call.channel_.give_up(call, call.options_.cancel.reason());
}

}  // namespace cairn::srpc::detail
