// Runs seeds in several processes at once. The result is the same as that of run_seeds(), whatever the number of
// processes and however fast each is: seed i runs in process i mod n, which reports it in one line, and the lines are
// read in the order of the seeds.
//
// Processes and not threads, because a seed that trips an assertion or crashes takes its process along.
#pragma once

#include "base/status.h"
#include "scenarios/runner.h"

namespace cairn::scenarios {

// Before any thread is made. `before_seed` is called in the process that runs the seed, `progress` in this one. A
// process that dies by a signal ends this one by the same signal. Errors: those of the system.
Result<RunnerResult> run_seeds_in_processes(const Scenario& scenario, const RunnerOptions& options, unsigned processes,
                                            const SeedListener& before_seed, const SeedListener& progress);

}  // namespace cairn::scenarios
