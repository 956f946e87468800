// Call: one S3 request on its way through the gateway: who asks, for what, and where the answer goes. Operations take a
// Call& and either answer or return an error, which the handler turns into XML.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "gateway/http/request.h"
#include "gateway/http/response.h"
#include "gateway/s3/error.h"
#include "gateway/s3/sigv4.h"
#include "gateway/s3/uri.h"
#include "object/object_store.h"
#include "reactor/loop.h"
#include "reactor/task.h"

namespace cairn::s3 {

struct Settings {
  std::string region = "us-east-1";
  // Buckets may be named by the host: bucket.DOMAIN.
  std::vector<std::string> domains{};
  // What a proxy in front of us is called: accepted in place of Host in signatures.
  std::vector<std::string> public_hosts{};
  std::string host_id = "cairn";  // <HostId> of errors
  // Clients and proxies give up on a silent connection after a minute or so: what takes longer than this answers 200
  // and blanks at once, and the outcome later.
  Duration patience = seconds(5);
  Duration request_time = seconds(3600);  // deadline of a whole request
};

// What every call on a reactor shares.
struct Environment {
  Loop& loop;
  const WallClock& wall_clock;
  object::ObjectStore& store;
  const Settings& settings;
};

struct Call {
  Environment& environment;
  http::Request& request;
  http::ResponseWriter& response;

  std::string request_id;
  std::string host_id;
  // Set by address_of().
  std::string bucket{};  // decoded; empty: the service
  std::string key{};     // decoded; empty: the bucket
  QueryParameters query{};
  // Set by the authenticator; nothing runs without.
  Authorization authorization{};
  Sha256 signing_key{};
  Time deadline = Time::never();
  Trace trace{};

  object::ObjectStore& store() { return environment.store; }
  const std::string& owner() const { return authorization.access_key; }
  object::CallContext context() const { return {deadline, request.cancel(), trace}; }
  std::string resource() const { return key.empty() ? "/" + bucket : "/" + bucket + "/" + key; }
};

// An operation's own errors are answers. A client that is gone is no error: there is nobody to tell.
using Answer = Task<S3Result<void>>;

// Fills bucket, key and query from the request's target and host. Errors: InvalidURI.
S3Result<void> address_of(Call& call);

// A client that says in this header whose bucket it means isn't given somebody else's: AccessDenied. A bucket that
// doesn't exist is the operation's affair.
Answer check_bucket_owner(Call& call, const std::string& bucket, std::string_view header);

// What an error of the layers below means to an S3 client.
S3Error to_s3_error(const Error& error);

Answer send_xml(Call& call, std::string body, int status = 200);
Answer send_nothing(Call& call, int status = 204);

}  // namespace cairn::s3
