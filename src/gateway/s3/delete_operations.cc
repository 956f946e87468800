#include "gateway/s3/delete_operations.h"

#include "gateway/s3/conditions.h"
#include "gateway/s3/list_parameters.h"
#include "gateway/s3/names.h"
#include "gateway/s3/payload.h"
#include "gateway/s3/put_operations.h"
#include "gateway/s3/xml_request.h"
#include "gateway/s3/xml_response.h"
#include "reactor/scope.h"

namespace cairn::s3 {
namespace {

// How many deletes of one request run at once: enough to share journal writes, few enough to leave room for others.
constexpr size_t kParallelDeletes = 32;

// State of one DeleteObjects, shared by its workers.
struct Batch {
  Call& call;
  std::vector<DeleteBody::Item> items;
  std::vector<DeleteOutcome> outcomes;
  size_t next = 0;
};

Task<void> delete_one(Batch& batch, size_t index) {
  const DeleteBody::Item& item = batch.items[index];
  DeleteOutcome& outcome = batch.outcomes[index];
  outcome.key = item.key;
  if (auto key = check_key(item.key); !key) {
    outcome.error = key.error();
    co_return;
  }
  if (auto version = check_version_id(item.version_id.value_or("")); !version) {
    outcome.error = version.error();
    co_return;
  }
  object::WriteConditions conditions;
  conditions.if_match = item.etag;
  auto removed = co_await batch.call.store().remove(batch.call.bucket, item.key, conditions, batch.call.context());
  if (!removed) outcome.error = to_s3_error(removed.error());
}

Task<void> delete_next(Batch* batch) {
  while (batch->next < batch->items.size()) {
    const size_t index = batch->next++;
    co_await delete_one(*batch, index);
  }
}

}  // namespace

Answer delete_object(Call& call) {
  CO_TRY(check_key(call.key));
  CO_TRY(check_version_id(parameter(call.query, "versionId")));
  CO_TRY(check_unsupported_headers(call.request.headers()));
  CO_TRY(auto conditions, write_conditions(call.request.headers()));
  auto removed = co_await call.store().remove(call.bucket, call.key, std::move(conditions), call.context());
  if (!removed) co_return to_s3_error(removed.error());
  co_return co_await send_nothing(call);
}

Answer delete_objects(Call& call) {
  CO_TRY(auto body, co_await read_document(call, kMaxXmlBody, {.etag = false, .needs_integrity = true}));
  CO_TRY(auto request, parse_delete(body));
  auto bucket = co_await call.store().head_bucket(call.bucket, call.context());
  if (!bucket) co_return to_s3_error(bucket.error());

  Batch batch{call, std::move(request.items), {}};
  batch.outcomes.resize(batch.items.size());
  Scope scope(call.environment.loop);
  for (size_t i = 0; i < std::min(kParallelDeletes, batch.items.size()); ++i) scope.spawn(&delete_next, &batch);
  co_await scope.join();
  co_return co_await send_xml(call, render_delete(batch.outcomes, request.quiet));
}

}  // namespace cairn::s3
