// Answers to operations that may take minutes (completing an upload, copying): the status and blanks are sent after
// Settings::patience, as S3 does, so that neither client nor proxy gives up on a silent connection. What comes then is
// the result's document or, still under status 200, an <Error> document; the SDKs know to look.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "gateway/s3/call.h"
#include "reactor/scope.h"
#include "reactor/sync.h"

namespace cairn::s3 {

namespace detail {

struct LateWork {
  explicit LateWork(Loop& loop) : done(loop) {}
  Event done;
  std::optional<S3Result<std::string>> result;
};

template <typename Work>
Task<void> run_late(LateWork* late, Task<S3Result<std::string>> (*function)(Work*), Work* work) {
  late->result.emplace(co_await function(work));
  late->done.set();
}

Answer answer_when_done(Call& call, LateWork& late);

}  // namespace detail

// Runs `function(work)`, which gives an XML document with its declaration, to its end, whatever becomes of the client,
// and answers with it. `work` outlives the call.
template <typename Work>
Answer answer_late(Call& call, Task<S3Result<std::string>> (*function)(Work*), Work* work) {
  detail::LateWork late(call.environment.loop);
  Scope scope(call.environment.loop);
  scope.spawn(&detail::run_late<Work>, &late, function, work);
  auto answered = co_await detail::answer_when_done(call, late);
  co_await scope.join();
  co_return answered;
}

}  // namespace cairn::s3
