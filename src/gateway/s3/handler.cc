#include "gateway/s3/handler.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/trace.h"
#include "gateway/s3/bucket_operations.h"
#include "gateway/s3/delete_operations.h"
#include "gateway/s3/get_operations.h"
#include "gateway/s3/multipart_operations.h"
#include "gateway/s3/put_operations.h"
#include "gateway/s3/subresources.h"
#include "gateway/s3/xml_response.h"

namespace cairn::s3 {
namespace {

using Function = Answer (*)(Call&);

// The client's, if it names one; else the request's id, so that what the nodes log can be found by it.
Trace trace_of(const http::Request& request, std::string_view request_id) {
  if (const auto named = Trace::from_traceparent(request.headers().value("traceparent"))) return *named;
  const auto id = Id128::parse(std::string(16, '0').append(request_id));
  return {.id = id.value_or(Id128()), .span = {}};
}

Function function_of(Operation operation) {
  switch (operation) {
    case Operation::list_buckets:
      return &list_buckets;
    case Operation::create_bucket:
      return &create_bucket;
    case Operation::head_bucket:
      return &head_bucket;
    case Operation::delete_bucket:
      return &delete_bucket;
    case Operation::list_objects:
      return &list_objects;
    case Operation::list_versions:
      return &list_versions;
    case Operation::list_uploads:
      return &list_uploads;
    case Operation::delete_objects:
      return &delete_objects;
    case Operation::bucket_subresource:
      return &bucket_subresource;
    case Operation::put_object:
      return &put_object;
    case Operation::copy_object:
      return &copy_object;
    case Operation::get_object:
      return &get_object;
    case Operation::head_object:
      return &head_object;
    case Operation::get_attributes:
      return &get_attributes;
    case Operation::delete_object:
      return &delete_object;
    case Operation::create_upload:
      return &create_upload;
    case Operation::upload_part:
      return &upload_part;
    case Operation::upload_part_copy:
      return &upload_part_copy;
    case Operation::complete_upload:
      return &complete_upload;
    case Operation::abort_upload:
      return &abort_upload;
    case Operation::list_parts:
      return &list_parts;
    case Operation::object_subresource:
      return &object_subresource;
  }
  return nullptr;
}

// S3's word for what the HTTP layer refuses.
Code code_of_status(int status) {
  switch (status) {
    case 408:
      return Code::RequestTimeout;
    case 414:
      return Code::InvalidURI;
    case 431:
      return Code::RequestHeaderSectionTooLarge;
    case 501:
      return Code::NotImplemented;
    case 503:
      return Code::SlowDown;
    default:
      return Code::InvalidRequest;
  }
}

Task<void> answer_error(Call& call, const S3Error& error) {
  LOG(debug, "s3: {} {} {}: {}: {}", call.request_id, call.request.head().method_text, call.resource(), error.name(),
      error.message());
  if (call.response.started()) {
    call.response.abort();
    co_return;
  }
  if (error.status() == 503) call.response.set_header("Retry-After", "1");
  // HEAD's answer has no body that could tell the code; the text of the status isn't shown by most clients.
  if (call.request.method() == http::Method::head) call.response.set_header("x-amz-error-code", error.name());
  (void)co_await send_xml(call, render_error(error, call.resource(), call.request_id, call.host_id), error.status());
}

}  // namespace

Handler::Handler(const Context& context, Settings settings)
    : settings_(std::move(settings)),
      environment_{context.loop, context.wall_clock, context.store, settings_},
      refused_(context.registry.counter("s3_requests_refused_total",
                                        "Requests that are malformed, name no operation or aren't authenticated")) {
  for (size_t i = 0; i < kOperations; ++i) {
    const std::string label = fmt::format("operation=\"{}\"", operation_name(static_cast<Operation>(i)));
    requests_[i] = &context.registry.counter("s3_requests_total", "Requests by operation", label);
    errors_[i] = &context.registry.counter("s3_errors_total", "Requests answered with an error, by operation", label);
  }
}

std::string Handler::new_request_id() { return fmt::format("{:016X}", environment_.loop.rng().next()); }

Task<S3Result<Operation>> Handler::admit(Call& call) {
  CO_TRY(address_of(call));
  const Target target{.method = call.request.head().method_text,
                      .has_bucket = !call.bucket.empty(),
                      .has_key = !call.key.empty(),
                      .has_copy_source = call.request.headers().has("x-amz-copy-source")};
  // Who asks comes before what for: an unknown client learns nothing about what is there or possible.
  CO_TRY(co_await authenticator_.authenticate(call));
  auto operation = route(target, call.query);
  if (!operation && operation.error().code() == Code::MethodNotAllowed) {
    call.response.set_header("Allow", allowed_methods(target));
  }
  if (operation && !call.bucket.empty()) {
    CO_TRY(co_await check_bucket_owner(call, call.bucket, "x-amz-expected-bucket-owner"));
  }
  co_return operation;
}

Answer Handler::serve(Call& call) {
  const auto operation = co_await admit(call);
  if (!operation) {
    refused_.add();
    co_return operation.error();
  }
  const auto index = static_cast<size_t>(*operation);
  requests_[index]->add();
  auto done = co_await function_of(*operation)(call);
  if (!done) errors_[index]->add();
  co_return done;
}

// Whoever asks support about an answer names its id: every answer has one, also when there was no request to speak of.
Task<void> Handler::refuse(int status, std::string_view reason, http::ResponseWriter& response) {
  refused_.add();
  const std::string request_id = new_request_id();
  LOG(debug, "s3: {} refused with {}: {}", request_id, status, reason);
  response.set_status(status);
  response.set_header("x-amz-request-id", request_id);
  response.set_header("x-amz-id-2", settings_.host_id);
  response.set_header("Content-Type", "application/xml");
  if (status == 503) response.set_header("Retry-After", "1");
  const S3Error error(code_of_status(status), std::string(reason));
  (void)co_await response.send(render_error(error, "/", request_id, settings_.host_id));
}

Task<void> Handler::handle(http::Request& request, http::ResponseWriter& response) {
  Call call{.environment = environment_,
            .request = request,
            .response = response,
            .request_id = new_request_id(),
            .host_id = settings_.host_id};
  call.deadline = environment_.loop.now() + settings_.request_time;
  call.trace = trace_of(request, call.request_id);
  response.set_header("x-amz-request-id", call.request_id);
  response.set_header("x-amz-id-2", call.host_id);
  const auto done = co_await serve(call);
  if (!done) co_await answer_error(call, done.error());
}

}  // namespace cairn::s3
