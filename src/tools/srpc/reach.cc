#include "tools/srpc/reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/units.h"
#include "reactor/deadline.h"
#include "srpc/verbs/system_verbs.h"

namespace cairn::srpc::tools {
namespace {

struct Advice {
  bool reached;
  Errc code;
  Exit exit;
  std::string_view text;
};

// What is known by the stage and the code; the error itself stands before it.
constexpr Advice kAdvice[] = {
    {false, Errc::unavailable, Exit::unreachable,
     "is the server running, and does it listen on this address and port (by default only on loopback)?"},
    {false, Errc::timed_out, Exit::unreachable, "nobody answered: is that host up, and does a firewall drop the port?"},
    {false, Errc::permission_denied, Exit::unreachable, "a local rule (firewall, container) forbids the connection"},
    {true, Errc::timed_out, Exit::not_srpc,
     "somebody took the connection and didn't say hello: not an SRPC server, or one that is overloaded"},
    {true, Errc::protocol_error, Exit::not_srpc, "what answers there doesn't speak SRPC: is it the right port?"},
    {true, Errc::closed, Exit::not_srpc,
     "the other side ended the connection instead of saying hello: not an SRPC server, or one that is stopping"},
    {true, Errc::unsupported, Exit::not_srpc, "no version of SRPC that both sides speak: update the older one"},
    {true, Errc::unavailable, Exit::unreachable, "the server takes no connections now: it is stopping or full"},
    {true, Errc::invalid_argument, Exit::failed, "ask for a poll group below the number that the server has"},
};

constexpr std::string_view kNoKeyAdvice =
    "the server serves only those who know its cluster's key: name a file with it, --key-file FILE";
constexpr std::string_view kWrongKeyAdvice =
    "the keys in --key-file aren't the server's, or it has none: take the file of its cluster, or leave the option out";
// For RDMA where TCP would do: it comes within milliseconds, or not at all.
constexpr Duration kPatience = seconds(1);

constexpr std::string_view kTlsAdvice =
    "--tls and a --key-file are for servers that take TLS, and must be given where one takes nothing else";
constexpr std::string_view kShmAdvice =
    "shared memory needs a server on this machine, of the same user or root, that offers it: try --transport tcp";

}  // namespace

Failure explain(const Error& error, const Attempt& attempt) {
  std::string what = error.message();
  // The channel puts the stage and the address in front; a deadline alone says neither.
  if (error.code() == Errc::timed_out)
    what = fmt::format("no answer from {} within {}", attempt.where, format_duration(attempt.timeout));
  const std::string code(errc_name(error.code()));
  if (error.code() == Errc::unauthenticated) {
    return {Exit::failed, code, fmt::format("{}: {}", what, attempt.with_key ? kWrongKeyAdvice : kNoKeyAdvice)};
  }
  if (what.find(close_reason_name(CloseReason::tls_failed)) != std::string::npos) {
    return {Exit::failed, code, fmt::format("{}: {}", what, kTlsAdvice)};
  }
  if (!attempt.reached && attempt.way == Way::shm)
    return {Exit::unreachable, code, fmt::format("{}: {}", what, kShmAdvice)};
  for (const Advice& advice : kAdvice) {
    if (advice.reached == attempt.reached && advice.code == error.code()) {
      return {advice.exit, code, fmt::format("{}: {}", what, advice.text)};
    }
  }
  return {attempt.reached ? Exit::failed : Exit::unreachable, code, what};
}

Task<std::optional<Failure>> reach(Channel& channel, Way way, Duration timeout, bool with_key) {
  Deadline deadline(channel.loop(), channel.loop().now() + timeout);
  const auto attempted = co_await channel.wait_attempt(deadline.token());
  if (!attempted) {
    co_return explain(attempted.error(), {.where = channel.address(),
                                          .way = way,
                                          .timeout = timeout,
                                          .with_key = with_key,
                                          .reached = channel.reached_peer()});
  }
  if (way != Way::near && way != Way::rdma) co_return std::nullopt;
  const Duration patience = way == Way::rdma ? timeout : std::min(timeout, kPatience);
  Deadline over(channel.loop(), channel.loop().now() + patience);
  while (channel.connected() && channel.transport() != "rdma" && (channel.features() & kFeatureRdma) != 0) {
    if (!co_await channel.loop().sleep(milliseconds(1), over.token())) break;
  }
  if (way != Way::rdma || (channel.connected() && channel.transport() == "rdma")) co_return std::nullopt;
  co_return Failure{
      Exit::failed, std::string(errc_name(Errc::unavailable)),
      fmt::format("{} is reached over TCP, and not over RDMA: {}; --transport auto takes what works", channel.address(),
                  (channel.features() & kFeatureRdma) == 0 ? "one of the two has no RDMA device that works"
                                                           : "what stands in the way is in the lines before this one")};
}

rdma::Verbs& this_machine() {
  static const std::unique_ptr<rdma::Verbs> verbs = rdma::system_verbs();
  return *verbs;
}

std::optional<rdma::RdmaOptions> rdma_for(Way way) {
  if (way != Way::near && way != Way::rdma) return std::nullopt;
  return rdma::RdmaOptions{
      .verbs = &this_machine(), .roles = {.client = true, .server = false}, .upgrades = {.expected = way == Way::rdma}};
}

}  // namespace cairn::srpc::tools
