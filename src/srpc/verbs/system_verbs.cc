#include "srpc/verbs/system_verbs.h"

#include <fcntl.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "srpc/verbs/port_facts.h"

namespace cairn::srpc::rdma {
namespace {

constexpr uint8_t kHopLimit = 64;
constexpr uint8_t kMinRnrTimer = 12;  // 0.64 ms until a peer that found no receive tries again

static_assert(static_cast<int>(CompletionStatus::flushed) == IBV_WC_WR_FLUSH_ERR);
static_assert(static_cast<int>(CompletionStatus::remote_access) == IBV_WC_REM_ACCESS_ERR);
static_assert(static_cast<int>(CompletionStatus::retries_exceeded) == IBV_WC_RETRY_EXC_ERR);
static_assert(static_cast<int>(CompletionStatus::general) == IBV_WC_GENERAL_ERR);

// Of calls that give an object or null.
std::unexpected<VerbError> last_error(Verb verb) { return std::unexpected(VerbError{verb, errno == 0 ? EIO : errno}); }

// Of calls that return an errno, or -1 and set it.
VerbResult<void> outcome(Verb verb, int result) {
  if (result == 0) return {};
  if (result < 0) return last_error(verb);
  return std::unexpected(VerbError{verb, result});
}

void stop_blocking(int fd) { (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

void complain(Verb verb, int result) {
  if (result != 0) LOG(error, "srpc: {}: {}", verb_name(verb), std::strerror(result < 0 ? errno : result));
}

unsigned flags_of(Access access) {
  unsigned flags = IBV_ACCESS_LOCAL_WRITE;
  if (access.remote_read) flags |= IBV_ACCESS_REMOTE_READ;
  if (access.remote_write) flags |= IBV_ACCESS_REMOTE_WRITE;
  return flags;
}

// 256 is IBV_MTU_256, 1, and each after it is twice the one before.
ibv_mtu mtu_of(uint32_t bytes) { return static_cast<ibv_mtu>(std::bit_width(std::clamp(bytes, 256U, 4096U) / 256)); }
static_assert(IBV_MTU_256 == 1 && IBV_MTU_4096 == 5);

ibv_sge sge_of(std::span<std::byte> bytes, uint32_t key) {
  return {
      .addr = reinterpret_cast<uintptr_t>(bytes.data()), .length = static_cast<uint32_t>(bytes.size()), .lkey = key};
}

class SystemMemory final : public VerbsMemory {
 public:
  explicit SystemMemory(ibv_mr* region) : region_(region) {}
  ~SystemMemory() override { complain(Verb::reg_mr, ibv_dereg_mr(region_)); }
  uint32_t local_key() const override { return region_->lkey; }
  uint32_t remote_key() const override { return region_->rkey; }

 private:
  ibv_mr* region_;
};

class SystemDomain final : public VerbsDomain {
 public:
  explicit SystemDomain(ibv_pd* domain) : domain_(domain) {}
  ~SystemDomain() override { complain(Verb::alloc_pd, ibv_dealloc_pd(domain_)); }
  VerbResult<std::unique_ptr<VerbsMemory>> register_memory(std::span<std::byte> memory, Access access) override {
    ibv_mr* region = ibv_reg_mr(domain_, memory.data(), memory.size(), flags_of(access));
    if (region == nullptr) return last_error(Verb::reg_mr);
    return std::make_unique<SystemMemory>(region);
  }
  ibv_pd* get() const { return domain_; }

 private:
  ibv_pd* domain_;
};

class SystemChannel final : public VerbsChannel {
 public:
  explicit SystemChannel(ibv_comp_channel* channel) : channel_(channel) { stop_blocking(channel_->fd); }
  ~SystemChannel() override { complain(Verb::create_comp_channel, ibv_destroy_comp_channel(channel_)); }
  int fd() const override { return channel_->fd; }
  VerbResult<bool> take_event() override {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(channel_, &queue, &context) != 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      return last_error(Verb::get_cq_event);
    }
    ibv_ack_cq_events(queue, 1);
    return true;
  }
  ibv_comp_channel* get() const { return channel_; }

 private:
  ibv_comp_channel* channel_;
};

class SystemCq final : public VerbsCq {
 public:
  explicit SystemCq(ibv_cq* queue) : queue_(queue) {}
  ~SystemCq() override { complain(Verb::create_cq, ibv_destroy_cq(queue_)); }
  VerbResult<size_t> poll(std::span<WorkCompletion> out) override {
    std::array<ibv_wc, 64> found;
    const int most = static_cast<int>(std::min(out.size(), found.size()));
    const int n = ibv_poll_cq(queue_, most, found.data());
    if (n < 0) return std::unexpected(VerbError{Verb::poll_cq, EIO});
    for (int i = 0; i < n; ++i) {
      const ibv_wc& from = found[static_cast<size_t>(i)];
      // Statuses of services that SRPC doesn't use are all the same to it.
      const auto status =
          from.status <= IBV_WC_GENERAL_ERR ? static_cast<CompletionStatus>(from.status) : CompletionStatus::general;
      out[static_cast<size_t>(i)] = {from.wr_id, status, from.byte_len};
    }
    return static_cast<size_t>(n);
  }
  VerbResult<void> request_notification() override {
    return outcome(Verb::req_notify_cq, ibv_req_notify_cq(queue_, 0));
  }
  ibv_cq* get() const { return queue_; }

 private:
  ibv_cq* queue_;
};

class SystemQp final : public VerbsQp {
 public:
  SystemQp(ibv_qp* qp, uint32_t inline_bytes) : qp_(qp), inline_bytes_(inline_bytes) {}
  ~SystemQp() override {
    if (qp_ != nullptr) complain(Verb::destroy_qp, ibv_destroy_qp(qp_));
  }
  uint32_t number() const override { return qp_->qp_num; }
  uint32_t inline_bytes() const override { return inline_bytes_; }

  VerbResult<void> to_init(uint8_t port, Access access) override {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = port;
    attributes.qp_access_flags = flags_of(access);
    return outcome(
        Verb::modify_qp_init,
        ibv_modify_qp(qp_, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  }

  VerbResult<void> to_rtr(const Path& path) override {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = mtu_of(path.mtu);
    attributes.dest_qp_num = path.remote_qpn;
    attributes.rq_psn = path.remote_psn;
    attributes.max_dest_rd_atomic = path.reads_answered;
    attributes.min_rnr_timer = kMinRnrTimer;
    ibv_ah_attr& to = attributes.ah_attr;
    to.port_num = path.port;
    to.sl = path.service_level;
    to.dlid = path.remote_lid;
    // RoCE is always routed by its GID; InfiniBand only where there is no other way.
    if (path.link_layer == LinkLayer::ethernet || path.remote_lid == 0) {
      to.is_global = 1;
      // cairn-allow(memcpy): an address
      std::memcpy(to.grh.dgid.raw, path.remote_gid.data(), path.remote_gid.size());
      to.grh.sgid_index = static_cast<uint8_t>(path.gid_index);
      to.grh.hop_limit = kHopLimit;
      to.grh.traffic_class = path.traffic_class;
    }
    return outcome(Verb::modify_qp_rtr,
                   ibv_modify_qp(qp_, &attributes,
                                 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
  }

  VerbResult<void> to_rts(const Sending& sending) override {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = sending.psn;
    attributes.timeout = sending.timeout;
    attributes.retry_cnt = sending.retries;
    attributes.rnr_retry = sending.rnr_retries;
    attributes.max_rd_atomic = sending.reads_issued;
    return outcome(Verb::modify_qp_rts, ibv_modify_qp(qp_, &attributes,
                                                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
  }

  VerbResult<void> to_error() override {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    return outcome(Verb::modify_qp_err, ibv_modify_qp(qp_, &attributes, IBV_QP_STATE));
  }

  VerbResult<void> post(const SendRequest& request) override {
    ibv_sge sge = sge_of(request.local, request.local_key);
    ibv_send_wr work{};
    work.wr_id = request.id;
    work.sg_list = &sge;
    work.num_sge = 1;
    work.opcode = request.kind == SendRequest::Kind::send   ? IBV_WR_SEND
                  : request.kind == SendRequest::Kind::read ? IBV_WR_RDMA_READ
                                                            : IBV_WR_RDMA_WRITE;
    if (request.signaled) work.send_flags |= IBV_SEND_SIGNALED;
    if (request.inlined) work.send_flags |= IBV_SEND_INLINE;
    work.wr.rdma.remote_addr = request.remote_address;
    work.wr.rdma.rkey = request.remote_key;
    ibv_send_wr* refused = nullptr;
    return outcome(Verb::post_send, ibv_post_send(qp_, &work, &refused));
  }

  VerbResult<void> post(const ReceiveRequest& request) override {
    ibv_sge sge = sge_of(request.local, request.local_key);
    ibv_recv_wr work{};
    work.wr_id = request.id;
    work.sg_list = &sge;
    work.num_sge = 1;
    ibv_recv_wr* refused = nullptr;
    return outcome(Verb::post_recv, ibv_post_recv(qp_, &work, &refused));
  }

  VerbResult<void> destroy() override {
    auto destroyed = outcome(Verb::destroy_qp, ibv_destroy_qp(qp_));
    if (destroyed) qp_ = nullptr;
    return destroyed;
  }

 private:
  ibv_qp* qp_;
  uint32_t inline_bytes_;
};

class SystemDevice final : public VerbsDevice {
 public:
  explicit SystemDevice(ibv_context* context) : context_(context) { stop_blocking(context_->async_fd); }
  ~SystemDevice() override { complain(Verb::open_device, ibv_close_device(context_)); }

  VerbResult<DeviceLimits> limits() override {
    ibv_device_attr attributes{};
    if (auto asked = outcome(Verb::query_device, ibv_query_device(context_, &attributes)); !asked) {
      return std::unexpected(asked.error());
    }
    return DeviceLimits{.queue_pair_depth = static_cast<uint32_t>(attributes.max_qp_wr),
                        .completion_queue_depth = static_cast<uint32_t>(attributes.max_cqe),
                        .reads_answered = static_cast<uint32_t>(attributes.max_qp_rd_atom),
                        .reads_issued = static_cast<uint32_t>(attributes.max_qp_init_rd_atom)};
  }

  VerbResult<Port> port(uint8_t port) override {
    ibv_port_attr attributes{};
    if (auto asked = outcome(Verb::query_port, ibv_query_port(context_, port, &attributes)); !asked) {
      return std::unexpected(asked.error());
    }
    return Port{port_facts(*context_, port, attributes), attributes.lid, attributes.max_msg_sz};
  }

  VerbResult<std::unique_ptr<VerbsDomain>> make_domain() override {
    ibv_pd* domain = ibv_alloc_pd(context_);
    if (domain == nullptr) return last_error(Verb::alloc_pd);
    return std::make_unique<SystemDomain>(domain);
  }

  VerbResult<std::unique_ptr<VerbsChannel>> make_channel() override {
    ibv_comp_channel* channel = ibv_create_comp_channel(context_);
    if (channel == nullptr) return last_error(Verb::create_comp_channel);
    return std::make_unique<SystemChannel>(channel);
  }

  VerbResult<std::unique_ptr<VerbsCq>> make_cq(uint32_t depth, VerbsChannel& channel) override {
    ibv_cq* queue =
        ibv_create_cq(context_, static_cast<int>(depth), nullptr, static_cast<SystemChannel&>(channel).get(), 0);
    if (queue == nullptr) return last_error(Verb::create_cq);
    return std::make_unique<SystemCq>(queue);
  }

  VerbResult<std::unique_ptr<VerbsQp>> make_qp(VerbsDomain& domain, VerbsCq& cq, const QpDepths& depths) override {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = static_cast<SystemCq&>(cq).get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {.max_send_wr = depths.sends,
                  .max_recv_wr = depths.receives,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = depths.inline_bytes};
    ibv_pd* in = static_cast<SystemDomain&>(domain).get();
    ibv_qp* qp = ibv_create_qp(in, &wanted);
    if (qp == nullptr && depths.inline_bytes > 0) {
      // There is no asking beforehand how much a device inlines.
      wanted.cap.max_inline_data = 0;
      qp = ibv_create_qp(in, &wanted);
    }
    if (qp == nullptr) return last_error(Verb::create_qp);
    return std::make_unique<SystemQp>(qp, wanted.cap.max_inline_data);
  }

  int async_fd() const override { return context_->async_fd; }

  VerbResult<AsyncNews> take_news() override {
    ibv_async_event event{};
    if (ibv_get_async_event(context_, &event) != 0) {
      if (errno == EAGAIN || errno == EINTR) return AsyncNews{};
      return last_error(Verb::get_async_event);
    }
    AsyncNews news{.event = AsyncEvent::other};
    switch (event.event_type) {
      case IBV_EVENT_PORT_ACTIVE:
        news = {AsyncEvent::port_active, static_cast<uint8_t>(event.element.port_num)};
        break;
      case IBV_EVENT_PORT_ERR:
        news = {AsyncEvent::port_error, static_cast<uint8_t>(event.element.port_num)};
        break;
      case IBV_EVENT_DEVICE_FATAL:
        news.event = AsyncEvent::device_fatal;
        break;
      default:
        break;
    }
    ibv_ack_async_event(&event);
    return news;
  }

 private:
  ibv_context* context_;
};

class SystemVerbs final : public Verbs {
 public:
  VerbResult<std::vector<Found>> devices() override {
    std::vector<Found> found;
    int count = 0;
    const auto list = list_devices(count);
    // A kernel without RDMA has no such call.
    if (list == nullptr && errno != ENOSYS) return last_error(Verb::get_device_list);
    for (int i = 0; i < count; ++i) {
      ibv_device* device = list.get()[i];
      const std::unique_ptr<ibv_context, int (*)(ibv_context*)> context(ibv_open_device(device), ibv_close_device);
      ibv_device_attr attributes{};
      // One that can't be asked is named all the same: opening it says why.
      const bool asked = context != nullptr && ibv_query_device(context.get(), &attributes) == 0;
      found.push_back({ibv_get_device_name(device), asked ? attributes.phys_port_cnt : uint8_t{1}});
    }
    return found;
  }

  VerbResult<std::unique_ptr<VerbsDevice>> open(const std::string& name) override {
    int count = 0;
    const auto list = list_devices(count);
    if (list == nullptr && errno != ENOSYS) return last_error(Verb::get_device_list);
    for (int i = 0; i < count; ++i) {
      if (name != ibv_get_device_name(list.get()[i])) continue;
      ibv_context* context = ibv_open_device(list.get()[i]);
      if (context == nullptr) return last_error(Verb::open_device);
      return std::make_unique<SystemDevice>(context);
    }
    return std::unexpected(VerbError{Verb::open_device, ENODEV});
  }

 private:
  using List = std::unique_ptr<ibv_device*, void (*)(ibv_device**)>;
  static List list_devices(int& count) { return {ibv_get_device_list(&count), ibv_free_device_list}; }
};

}  // namespace

std::unique_ptr<Verbs> system_verbs() { return std::make_unique<SystemVerbs>(); }

}  // namespace cairn::srpc::rdma
