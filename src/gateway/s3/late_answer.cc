#include "gateway/s3/late_answer.h"

#include "gateway/s3/xml_response.h"
#include "reactor/deadline.h"

namespace cairn::s3 {
namespace {

constexpr std::string_view kDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

Task<void> wait_a_while(Call& call, Event& done) {
  Deadline patience(call.environment.loop, call.environment.loop.now() + call.environment.settings.patience);
  (void)co_await done.wait(patience.token());
}

// The declaration was sent ahead: nothing may stand before it in a document.
std::string without_declaration(std::string document) {
  if (document.starts_with(kDeclaration)) document.erase(0, kDeclaration.size());
  return document;
}

}  // namespace

Answer detail::answer_when_done(Call& call, LateWork& late) {
  co_await wait_a_while(call, late.done);
  if (late.done.is_set()) {
    if (!*late.result) co_return late.result->error();
    co_return co_await send_xml(call, **std::move(late.result));
  }
  call.response.set_status(200);
  call.response.set_header("Content-Type", "application/xml");
  bool connected = (co_await call.response.begin_chunked()).has_value();
  std::string blank(kDeclaration);
  while (!late.done.is_set()) {
    if (connected) connected = (co_await call.response.write(std::exchange(blank, " "))).has_value();
    co_await wait_a_while(call, late.done);
  }
  if (!connected) co_return S3Result<void>();
  std::string document = *late.result
                             ? **std::move(late.result)
                             : render_error(late.result->error(), call.resource(), call.request_id, call.host_id);
  if (co_await call.response.write(without_declaration(std::move(document)))) (void)co_await call.response.finish();
  co_return S3Result<void>();
}

}  // namespace cairn::s3
