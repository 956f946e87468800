// The seam just above the verbs that SRPC uses: as thin as it can be, so that the fake below it (testing/fake_verbs.h)
// sees what a device would see. system_verbs.h is the real one.
//
// An object is destroyed by its destructor, before what it was made from. Devices, domains and memory may be used by
// several threads; a queue pair, its completion queue and its channel belong to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "srpc/rdma/gid_choice.h"

namespace cairn::srpc::rdma {

enum class Verb : uint8_t {
  get_device_list,
  open_device,
  query_device,
  query_port,
  alloc_pd,
  reg_mr,
  create_comp_channel,
  create_cq,
  req_notify_cq,
  create_qp,
  modify_qp_init,
  modify_qp_rtr,
  modify_qp_rts,
  modify_qp_err,
  post_recv,
  post_send,
  poll_cq,
  get_cq_event,
  get_async_event,
  destroy_qp,
};
inline constexpr size_t kVerbs = 20;
std::string_view verb_name(Verb verb);  // "ibv_create_qp"

// A call that failed, and its errno.
struct VerbError {
  Verb verb;
  int error;
  std::string to_string() const;  // "ibv_create_qp: Cannot allocate memory"
};
template <typename T>
using VerbResult = std::expected<T, VerbError>;

struct DeviceLimits {
  uint32_t queue_pair_depth = 0;        // of either queue
  uint32_t completion_queue_depth = 0;  // of each
  uint32_t reads_answered = 0;          // at a time, by a queue pair
  uint32_t reads_issued = 0;
};

struct Port {
  PortFacts facts;
  uint16_t lid = 0;
  uint64_t max_message_bytes = 0;
};

enum class AsyncEvent : uint8_t { none, port_active, port_error, device_fatal, other };
struct AsyncNews {
  AsyncEvent event = AsyncEvent::none;
  uint8_t port = 0;
};

// As enum ibv_wc_status, whose values these are.
enum class CompletionStatus : uint8_t {
  success = 0,
  local_length = 1,
  local_qp_operation = 2,
  local_protection = 4,
  flushed = 5,
  remote_invalid_request = 9,
  remote_access = 10,
  remote_operation = 11,
  retries_exceeded = 12,
  rnr_retries_exceeded = 13,
  fatal = 19,
  general = 21,
};
std::string_view status_name(CompletionStatus status);  // "transport retry counter exceeded"

struct WorkCompletion {
  uint64_t id = 0;
  CompletionStatus status = CompletionStatus::success;
  uint32_t bytes = 0;  // of a receive
};

struct Access {
  bool remote_read = false;
  bool remote_write = false;
};

// Registered memory. It may always be written by the device for its owner.
class VerbsMemory {
 public:
  virtual ~VerbsMemory() = default;
  virtual uint32_t local_key() const = 0;
  virtual uint32_t remote_key() const = 0;
};

class VerbsDomain {
 public:
  virtual ~VerbsDomain() = default;
  virtual VerbResult<std::unique_ptr<VerbsMemory>> register_memory(std::span<std::byte> memory, Access access) = 0;
};

// Tells that a completion queue that was armed has got something.
class VerbsChannel {
 public:
  virtual ~VerbsChannel() = default;
  // Readable when there is an event; it doesn't block.
  virtual int fd() const = 0;
  // Takes one event and acknowledges it. False: there was none.
  virtual VerbResult<bool> take_event() = 0;
};

class VerbsCq {
 public:
  virtual ~VerbsCq() = default;
  // An error: the queue is broken.
  virtual VerbResult<size_t> poll(std::span<WorkCompletion> out) = 0;
  // One event for the next completion that is added from now on.
  virtual VerbResult<void> request_notification() = 0;
};

struct SendRequest {
  enum class Kind : uint8_t { send, read, write };
  Kind kind = Kind::send;
  uint64_t id = 0;
  std::span<std::byte> local;
  uint32_t local_key = 0;
  uint64_t remote_address = 0;  // of read and write
  uint32_t remote_key = 0;
  bool signaled = true;  // else there is a completion only when it fails
  bool inlined = false;  // the call copies the bytes
};

struct ReceiveRequest {
  uint64_t id = 0;
  std::span<std::byte> local;
  uint32_t local_key = 0;
};

// How a queue pair reaches the other one (INIT to RTR).
struct Path {
  uint8_t port = 1;
  LinkLayer link_layer = LinkLayer::ethernet;
  uint32_t gid_index = 0;  // the local one
  Gid::Bytes remote_gid = {};
  uint16_t remote_lid = 0;
  uint32_t remote_qpn = 0;
  uint32_t remote_psn = 0;
  uint32_t mtu = 1024;
  uint8_t traffic_class = 0;
  uint8_t service_level = 0;
  uint8_t reads_answered = 0;
};

// How it sends (RTR to RTS); see RailOptions.
struct Sending {
  uint32_t psn = 0;
  uint8_t timeout = 14;
  uint8_t retries = 7;
  uint8_t rnr_retries = 7;
  uint8_t reads_issued = 0;
};

class VerbsQp {
 public:
  // Destroys it, unless destroy() has succeeded.
  virtual ~VerbsQp() = default;
  virtual uint32_t number() const = 0;
  virtual uint32_t inline_bytes() const = 0;

  virtual VerbResult<void> to_init(uint8_t port, Access access) = 0;
  virtual VerbResult<void> to_rtr(const Path& path) = 0;
  virtual VerbResult<void> to_rts(const Sending& sending) = 0;
  // What is posted ends with `flushed`, and the peer reaches nothing any more.
  virtual VerbResult<void> to_error() = 0;

  virtual VerbResult<void> post(const SendRequest& request) = 0;
  virtual VerbResult<void> post(const ReceiveRequest& request) = 0;

  // When it fails the device may go on using the memory of what was posted.
  virtual VerbResult<void> destroy() = 0;
};

struct QpDepths {
  uint32_t sends = 0;
  uint32_t receives = 0;
  uint32_t inline_bytes = 0;  // wanted; the queue pair says how many it got
};

// An opened device.
class VerbsDevice {
 public:
  virtual ~VerbsDevice() = default;
  virtual VerbResult<DeviceLimits> limits() = 0;
  virtual VerbResult<Port> port(uint8_t port) = 0;
  virtual VerbResult<std::unique_ptr<VerbsDomain>> make_domain() = 0;
  virtual VerbResult<std::unique_ptr<VerbsChannel>> make_channel() = 0;
  virtual VerbResult<std::unique_ptr<VerbsCq>> make_cq(uint32_t depth, VerbsChannel& channel) = 0;
  // Both queues complete into `cq`.
  virtual VerbResult<std::unique_ptr<VerbsQp>> make_qp(VerbsDomain& domain, VerbsCq& cq, const QpDepths& depths) = 0;

  // Readable when there is news of the device or its ports; it doesn't block. Each opening of a device hears all.
  virtual int async_fd() const = 0;
  // Takes and acknowledges one; AsyncEvent::none when there is none.
  virtual VerbResult<AsyncNews> take_news() = 0;
};

class Verbs {
 public:
  virtual ~Verbs() = default;
  struct Found {
    std::string name;
    uint8_t ports = 1;
  };
  virtual VerbResult<std::vector<Found>> devices() = 0;
  // ENODEV when there is no such device.
  virtual VerbResult<std::unique_ptr<VerbsDevice>> open(const std::string& name) = 0;
};

}  // namespace cairn::srpc::rdma
