#include "srpc/rdma/verbs.h"

#include <array>
#include <cstring>

namespace cairn::srpc::rdma {
namespace {

constexpr std::array<std::string_view, kVerbs> kVerbNames = {
    "ibv_get_device_list", "ibv_open_device",    "ibv_query_device",        "ibv_query_port",
    "ibv_alloc_pd",        "ibv_reg_mr",         "ibv_create_comp_channel", "ibv_create_cq",
    "ibv_req_notify_cq",   "ibv_create_qp",      "ibv_modify_qp(INIT)",     "ibv_modify_qp(RTR)",
    "ibv_modify_qp(RTS)",  "ibv_modify_qp(ERR)", "ibv_post_recv",           "ibv_post_send",
    "ibv_poll_cq",         "ibv_get_cq_event",   "ibv_get_async_event",     "ibv_destroy_qp",
};

}  // namespace

std::string_view verb_name(Verb verb) { return kVerbNames[static_cast<size_t>(verb)]; }

std::string VerbError::to_string() const {
  const char* text = strerrordesc_np(error);
  return std::string(verb_name(verb)) + ": " + (text == nullptr ? "errno " + std::to_string(error) : text);
}

std::string_view status_name(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::success:
      return "success";
    case CompletionStatus::local_length:
      return "local length error";
    case CompletionStatus::local_qp_operation:
      return "local queue pair operation error";
    case CompletionStatus::local_protection:
      return "local protection error";
    case CompletionStatus::flushed:
      return "flushed";
    case CompletionStatus::remote_invalid_request:
      return "remote invalid request error";
    case CompletionStatus::remote_access:
      return "remote access error";
    case CompletionStatus::remote_operation:
      return "remote operation error";
    case CompletionStatus::retries_exceeded:
      return "transport retry counter exceeded";
    case CompletionStatus::rnr_retries_exceeded:
      return "receiver not ready retry counter exceeded";
    case CompletionStatus::fatal:
      return "fatal error";
    case CompletionStatus::general:
      return "general error";
  }
  return "error";
}

}  // namespace cairn::srpc::rdma
