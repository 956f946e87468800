// Handler: the S3 gateway of one reactor. Each request becomes a Call: addressed, routed, authenticated, carried out;
// what goes wrong on the way is answered with S3's error document.
//
//   s3::Handler s3({.loop = reactor, .wall_clock = clock, .store = store, .registry = registry}, settings);
//   http::Server server({...}, {.metrics_label = "listener=\"s3\""}, s3);
#pragma once

#include <array>
#include <string>

#include "base/metrics.h"
#include "base/rng.h"
#include "gateway/http/handler.h"
#include "gateway/s3/authenticator.h"
#include "gateway/s3/call.h"
#include "gateway/s3/operation.h"

namespace cairn::s3 {

class Handler final : public http::Handler {
 public:
  struct Context {
    Loop& loop;
    const WallClock& wall_clock;
    object::ObjectStore& store;
    Registry& registry;
  };
  // What `context` refers to outlives the handler.
  Handler(const Context& context, Settings settings);

  Task<void> handle(http::Request& request, http::ResponseWriter& response) override;
  Task<void> refuse(int status, std::string_view reason, http::ResponseWriter& response) override;

 private:
  static constexpr size_t kOperations = static_cast<size_t>(Operation::object_subresource) + 1;

  // Addressed, authenticated, routed.
  Task<S3Result<Operation>> admit(Call& call);
  Answer serve(Call& call);
  std::string new_request_id();

  Settings settings_;
  Environment environment_;
  Authenticator authenticator_;
  std::array<Counter*, kOperations> requests_{};
  std::array<Counter*, kOperations> errors_{};
  Counter& refused_;  // no operation was chosen
};

}  // namespace cairn::s3
