#include "reactor/reactor.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <string_view>

#include "reactor/ring.h"
#include "reactor/wake_cost.h"

namespace cairn {
namespace {

struct PostedFunction final : RemoteWork {
  PostedFunction(Reactor& r, std::move_only_function<void()> f)
      : RemoteWork(&run_and_free), reactor(r), function(std::move(f)) {}
  static void run_and_free(RemoteWork& work) {
    const std::unique_ptr<PostedFunction> self(static_cast<PostedFunction*>(&work));
    self->reactor.hops().add();
    self->function();
  }
  Reactor& reactor;
  std::move_only_function<void()> function;
};

Counter& wake_ups(Registry& registry, std::string_view by) {
  return registry.counter("reactor_wakeups_total", "Ends of a sleep, by what ended it", fmt::format("by=\"{}\"", by));
}

int64_t involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

// The multishot poll on the remote queue's eventfd that ends a sleep. Edge-triggered: each write completes it anew.
class Reactor::WakeUps final : public RingOp {
 public:
  WakeUps(Ring& ring, int fd) : RingOp(&on_event), ring_(ring), fd_(fd) {}

  void arm() {
    if (armed_) return;
    armed_ = true;
    ring_.submit(this, [this](io_uring_sqe& sqe) { io_uring_prep_poll_multishot(&sqe, fd_, POLLIN); });
  }

 private:
  static void on_event(RingOp& op, int32_t, uint32_t flags) {
    if ((flags & IORING_CQE_F_MORE) == 0) static_cast<WakeUps&>(op).armed_ = false;
  }

  Ring& ring_;
  int fd_;
  bool armed_ = false;
};

Reactor::Metrics::Metrics(Registry& registry)
    : rounds(registry.counter("reactor_rounds_total", "Rounds of the reactor's loop")),
      work_ns(registry.counter("reactor_work_nanoseconds_total", "Time in rounds that found something to do")),
      spin_ns(registry.counter("reactor_spin_nanoseconds_total", "Time spent polling in vain")),
      sleep_ns(registry.counter("reactor_sleep_nanoseconds_total", "Time asleep")),
      sleeps(registry.counter("reactor_sleeps_total", "How often the reactor went to sleep and was woken")),
      performance_ns(registry.counter("reactor_performance_nanoseconds_total",
                                      "Time in which idle moments were polled through, work included")),
      economy_ns(registry.counter("reactor_economy_nanoseconds_total",
                                  "Time in which idle moments were slept through, work included")),
      mode_switches(registry.counter("reactor_mode_switches_total", "Switches between performance and economy")),
      woken_by_io(wake_ups(registry, "io")),
      woken_by_thread(wake_ups(registry, "thread")),
      woken_by_timer(wake_ups(registry, "timer")),
      woken_by_nothing(wake_ups(registry, "nothing")),
      preemptions(registry.counter("reactor_preemptions_total", "Involuntary context switches seen while polling")),
      hops(registry.counter("reactor_cross_thread_hops_total", "Pieces of work handed over by other threads")),
      spin_budget_us(registry.gauge("reactor_spin_budget_microseconds",
                                    "How long the reactor polls before it sleeps; -1: for ever")) {}

Result<std::unique_ptr<Reactor>> Reactor::create(Options options) {
  Counter& enters = options.registry.counter("reactor_io_uring_enters_total", "System calls on the reactor's ring");
  TRY(auto ring, Ring::create(kRingEntries, enters));
  TRY(auto event, RemoteQueue::make_event_fd());
  if (options.wake_cost.ns == 0) {
    options.wake_cost = options.mode == Mode::automatic ? measure_wake_cost() : microseconds(50);
  }
  return std::unique_ptr<Reactor>(new Reactor(options, std::move(ring), std::move(event)));
}

Reactor::Reactor(const Options& options, std::unique_ptr<Ring> ring, Fd event)
    : Loop(options.rng),
      index_(options.index),
      now_(clock_.now()),
      metrics_(options.registry),
      ring_(std::move(ring)),
      remote_(std::move(event)),
      wake_ups_(std::make_unique<WakeUps>(*ring_, remote_.event_fd())),
      spin_(options.mode, options.wake_cost),
      polls_(spin_.polls()),
      last_event_(now_) {}

Reactor::~Reactor() {
  ASSERT(pollers_.empty());
  // The ring first: then the kernel knows no pointer to what lingers.
  wake_ups_.reset();
  ring_.reset();
  while (lingering_ != nullptr) delete lingering_;
  remote_.fetch();
  while (RemoteWork* work = remote_.pop()) {
    if (work->run == &PostedFunction::run_and_free) delete static_cast<PostedFunction*>(work);
  }
}

void Reactor::bind_to_this_thread() {
  // What starts before the first round must not see the time of the last one, which may be long ago.
  now_ = clock_.now();
  if (thread_) {
    ASSERT(pthread_equal(*thread_, pthread_self()));
    return;
  }
  thread_ = pthread_self();
  const auto enabled = ring_->enable();
  ASSERT(enabled.has_value());
  involuntary_switches_ = involuntary_switches();
}

void Reactor::run() {
  bind_to_this_thread();
  now_ = clock_.now();
  last_event_ = now_;
  while (!stop_.load(std::memory_order_relaxed)) round();
  stop_.store(false, std::memory_order_relaxed);
}

void Reactor::stop() noexcept {
  stop_.store(true);
  remote_.wake();
}

void Reactor::linger(Lingering& object) {
  object.head_ = &lingering_;
  object.next_ = lingering_;
  if (lingering_ != nullptr) lingering_->previous_ = &object;
  lingering_ = &object;
}

Reactor::Lingering::~Lingering() {
  if (head_ == nullptr) return;
  (previous_ == nullptr ? *head_ : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

void Reactor::add_poller(Poller& poller) { pollers_.push_back(&poller); }

void Reactor::remove_poller(Poller& poller) {
  const auto found = std::ranges::find(pollers_, &poller);
  ASSERT(found != pollers_.end());
  pollers_.erase(found);
}

void Reactor::post_from_any_thread(std::move_only_function<void()> function) {
  remote_.push(*new PostedFunction(*this, std::move(function)));
}

void Reactor::round() {
  const Time before = now_;
  now_ = clock_.now();
  (was_busy_ ? metrics_.work_ns : metrics_.spin_ns).add(static_cast<uint64_t>((now_ - before).ns));
  count_mode_time(now_ - before);
  metrics_.rounds.add();
  turns_left_ = kTurns;

  size_t work = poll_sources();
  work += timers().fire_due(now_);
  work += run_ready();
  if (ring_->wants_enter()) {
    ring_->enter();
    if (ring_->has_completions()) ++work;
  }

  was_busy_ = work > 0;
  if (was_busy_) {
    spin_.idle_ended(now_ - last_event_, slept_);
    look_for_mode_switch();
    last_event_ = now_;
    slept_ = false;
    return;
  }
  if (spin_.budget().ns > (now_ - last_event_).ns) {
    __builtin_ia32_pause();
    look_for_preemption();
    return;
  }
  if (may_sleep()) sleep_until_event();
}

size_t Reactor::poll_sources() {
  size_t work = ring_->reap();
  work += poll_hot();
  for (size_t i = 0; i < pollers_.size(); ++i) work += pollers_[i]->poll();
  return work + run_remote();
}

size_t Reactor::poll_hot() {
  // A few sockets are tried several times: the rest of the round takes a good part of the time of a try, and what
  // arrives while a try holds the socket's lock is processed by the receiver, not the sender.
  size_t tries = 0;
  do {
    tries += hot_.size();
    if (const size_t succeeded = hot_.poll(now_); succeeded > 0) return succeeded;
  } while (hot_.size() > 0 && tries + hot_.size() <= kHotTries);
  return 0;
}

size_t Reactor::run_remote() {
  size_t count = 0;
  remote_.fetch();
  for (; RemoteWork* work = remote_.pop(); ++count) work->run(*work);
  return count;
}

bool Reactor::may_sleep() {
  // Cooling and arming come first: both may find that something has happened by now.
  hot_.cool_all();
  wake_ups_->arm();
  remote_.prepare_sleep();
  for (size_t i = 0; i < pollers_.size(); ++i) {
    if (pollers_[i]->arm()) continue;
    while (i-- > 0) pollers_[i]->disarm();
    remote_.end_sleep();
    return false;
  }
  if (remote_.empty() && !has_ready() && !ring_->has_completions() && !stop_.load()) return true;
  for (Poller* poller : pollers_) poller->disarm();
  remote_.end_sleep();
  return false;
}

void Reactor::sleep_until_event() {
  const Time awake_since = now_;
  const Time asleep = clock_.now();
  metrics_.spin_ns.add(static_cast<uint64_t>((asleep - now_).ns));
  ring_->wait(std::min(kSafetyNet, timers().next() - asleep));
  remote_.end_sleep();
  for (Poller* poller : pollers_) poller->disarm();
  now_ = clock_.now();
  count_mode_time(now_ - awake_since);
  count_wake_up();
  slept_ = true;
  metrics_.sleep_ns.add(static_cast<uint64_t>((now_ - asleep).ns));
  metrics_.sleeps.add();
  metrics_.spin_budget_us.set(spin_.budget() == Duration{INT64_MAX} ? -1 : spin_.budget().us());
}

void Reactor::count_wake_up() {
  // Work of another thread rings an eventfd, so it comes as a completion, too.
  if (!remote_.empty()) {
    metrics_.woken_by_thread.add();
  } else if (ring_->has_completions()) {
    metrics_.woken_by_io.add();
  } else if (timers().next() <= now_) {
    metrics_.woken_by_timer.add();
  } else {
    metrics_.woken_by_nothing.add();
  }
}

void Reactor::count_mode_time(Duration time) {
  (polls_ ? metrics_.performance_ns : metrics_.economy_ns).add(static_cast<uint64_t>(time.ns));
}

void Reactor::set_mode(Mode mode) {
  spin_.set_mode(mode);
  look_for_mode_switch();
}

void Reactor::look_for_mode_switch() {
  if (spin_.polls() == polls_) return;
  polls_ = spin_.polls();
  metrics_.mode_switches.add();
}

void Reactor::look_for_preemption() {
  // A system call, so not each round.
  if (mode() != Mode::automatic || now_ < next_preemption_look_) return;
  next_preemption_look_ = now_ + milliseconds(1);
  const int64_t switches = involuntary_switches();
  if (switches == involuntary_switches_) return;
  metrics_.preemptions.add(static_cast<uint64_t>(switches - involuntary_switches_));
  involuntary_switches_ = switches;
  spin_.preempted();
  look_for_mode_switch();
}

}  // namespace cairn
