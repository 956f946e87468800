// The admin API, version 1: what each path does. docs/admin-api.md describes it for those who call it.
//
// One instance per node, on the reactor that has the admin listener.
#pragma once

#include <string>

#include "admin/message.h"
#include "admin/node_view.h"
#include "base/rng.h"
#include "base/time.h"
#include "object/object_store.h"
#include "reactor/task.h"

namespace cairn::admin {

class Api {
 public:
  // Bodies beyond this are refused (413) before they are read.
  static constexpr size_t kMaxBodyBytes = 64 * 1024;

  struct Context {
    NodeView& node;
    object::ObjectStore& objects;
    Clock& clock;
    const WallClock& wall_clock;
    Rng& rng;
  };

  // Every path under /v1 asks for `token` as bearer.
  Api(Context context, std::string token) : context_(context), token_(std::move(token)) {}

  Task<Response> handle(Request request);

 private:
  struct Call;
  struct Route;
  static const Route kRoutes[];

  bool authorized(const Request& request) const;
  object::CallContext call_context() const;

  Task<Response> healthz(const Call& call);
  Task<Response> readyz(const Call& call);
  Task<Response> metrics(const Call& call);
  Task<Response> status(const Call& call);
  Task<Response> config(const Call& call);
  Task<Response> checkpoint(const Call& call);
  Task<Response> check_orphans(const Call& call);
  Task<Response> list_buckets(const Call& call);
  Task<Response> create_bucket(const Call& call);
  Task<Response> show_bucket(const Call& call);
  Task<Response> delete_bucket(const Call& call);
  Task<Response> list_keys(const Call& call);
  Task<Response> create_key(const Call& call);
  Task<Response> delete_key(const Call& call);

  Context context_;
  std::string token_;
};

}  // namespace cairn::admin
