#include "object/janitor.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace cairn::object {

Janitor::Janitor(Context context, Options options)
    : metrics_(context.registry),
      options_(std::move(options)),
      scope_(context.loop),
      base_{.loop = context.loop, .client = context.client, .wall = context.wall, .background = scope_},
      turns_(context.loop, options_.deletes_at_a_time) {}

void Janitor::start() {
  for (const engine::GroupId group : options_.groups) {
    reapers_.push_back(std::make_unique<Reaper>(base_, metrics_, turns_, group));
    scope_.spawn(&Reaper::run, reapers_.back().get());
  }
  if (options_.sweeps) scope_.spawn(&Janitor::sweep, this);
}

Task<void> Janitor::sweep() {
  for (Duration pause = seconds(1);; pause = std::min(pause * 2, seconds(60))) {
    Sweep sweep(base_, metrics_);
    const Result<void> done =
        co_await sweep.run(options_.identity, {.deadline = Time::never(), .cancel = scope_.token()});
    if (done) break;
    if (scope_.token().cancelled()) co_return;
    LOG(warn, "what earlier starts left behind isn't cleaned up yet, trying again in {} s: {}",
        pause.ns / seconds(1).ns, done.error().to_string());
    if (!co_await base_.loop.sleep(pause, scope_.token())) co_return;
  }
  swept_ = true;
}

Task<void> Janitor::close() { co_await scope_.close(); }

Task<Result<OrphanReport>> Janitor::check_orphans(CallContext context) {
  Sweep sweep(base_, metrics_);
  co_return co_await sweep.check(options_.identity, base_.call(context));
}

}  // namespace cairn::object
