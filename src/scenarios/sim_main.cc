// cairn-sim: runs scenarios in the simulator over many seeds.
//
// Exit code: 0 all seeds passed, 1 a promise was broken, 2 wrong usage; a seed that trips an assertion or crashes ends
// the program by that signal, after saying which seed it was.
#include <fmt/core.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "scenarios/processes.h"
#include "scenarios/runner.h"

namespace {

using namespace cairn;
using namespace cairn::scenarios;

// What to print when the process dies. Written before each seed; a signal handler can only write(2), and has no other
// way to learn which seed was running.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::array<char, 512> last_words;
volatile sig_atomic_t last_words_size = 0;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

extern "C" void on_fatal_signal(int signal_number) {
  (void)!::write(STDERR_FILENO, last_words.data(), static_cast<size_t>(last_words_size));
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

void set_last_words(std::string_view scenario, uint64_t seed) {
  const std::string text = fmt::format("\ncairn-sim: seed {} of scenario {} died. To repeat it:\n  {}\n", seed,
                                       scenario, repeat_command(scenario, seed));
  last_words_size = 0;
  const size_t n = std::min(text.size(), last_words.size());
  std::memcpy(last_words.data(), text.data(), n);
  last_words_size = static_cast<sig_atomic_t>(n);
}

// One line on a terminal, rewritten; elsewhere a line now and then.
class Progress {
 public:
  Progress(std::string_view scenario, uint64_t total, bool quiet)
      : scenario_(scenario), total_(total), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

  void show(uint64_t done) {
    const Time now = clock_.now();
    const Duration interval = terminal_ ? milliseconds(200) : seconds(10);
    if (quiet_ || done == 0 || now - shown_ < interval) return;
    shown_ = now;
    const double elapsed = (now - start_).seconds();
    const double rate = static_cast<double>(done) / elapsed;
    const double left = static_cast<double>(total_ - done) / rate;
    fmt::print(stderr, "{}{}: {} of {} seeds, {:.0f}/s, {:.0f} s left{}", terminal_ ? "\r\x1b[K" : "", scenario_, done,
               total_, rate, left, terminal_ ? "" : "\n");
    std::fflush(stderr);
  }
  void clear() {
    if (terminal_ && !quiet_) fmt::print(stderr, "\r\x1b[K");
  }
  double elapsed_s() const { return (clock_.now() - start_).seconds(); }

 private:
  SystemClock clock_;
  std::string_view scenario_;
  uint64_t total_;
  bool quiet_;
  bool terminal_;
  Time start_ = clock_.now();
  Time shown_ = start_;
};

void print_result(const RunnerResult& result, double seconds) {
  fmt::print("{}: {} seeds from {} in {:.1f} s ({:.0f}/s), {} of them twice; {} events, {:.0f} s simulated\n",
             result.scenario, result.seeds_run, result.first_seed, seconds,
             static_cast<double>(result.seeds_run) / seconds, result.seeds_run_twice, result.events,
             static_cast<double>(result.simulated_ns) / 1e9);
  for (const auto& [name, count] : result.coverage.counts()) fmt::print("  {:<40} {:>12}\n", name, count);
  for (const SeedFailure& failure : result.failures) {
    fmt::print("FAILED seed {}: {}\n  faults: {}\n  repeat: {}\n", failure.seed, failure.message, failure.plan,
               repeat_command(result.scenario, failure.seed));
  }
}

struct Arguments {
  RunnerOptions runner;
  std::vector<std::string> scenarios;
  unsigned jobs = 0;
  bool trace = false;
  bool json = false;
  bool quiet = false;
};

// The program's exit code, or -1 to go on.
int parse(int argc, char** argv, Arguments& out) {
  CLI::App app("Runs Cairn's storage code in a simulated world that crashes and fails, over many seeds.");
  std::string names;
  for (const Scenario& scenario : all_scenarios()) {
    names += fmt::format("\n  {:<10} {}", scenario.name, scenario.description);
  }
  app.footer("Scenarios:" + names);
  app.add_option("--seeds", out.runner.seeds, "How many seeds")->capture_default_str();
  app.add_option("--from", out.runner.first_seed, "The first seed")->capture_default_str();
  app.add_option("--scenario", out.scenarios, "Which scenario; may be given several times (default: all)");
  app.add_option("--twice-every", out.runner.twice_every, "Run every Nth seed twice and compare the traces; 0: never")
      ->capture_default_str();
  app.add_option("--jobs", out.jobs, "How many processes; the result doesn't depend on it (default: one per CPU)");
  app.add_flag("--keep-going", out.runner.keep_going, "Run all seeds even if some fail");
  app.add_flag("--trace", out.trace, "Print every event");
  app.add_flag("--json", out.json, "Print the summary as JSON: a list, one object per scenario");
  app.add_flag("--quiet", out.quiet, "No progress");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const std::string& name : out.scenarios) {
    if (find_scenario(name) == nullptr) {
      fmt::print(stderr, "cairn-sim: there is no scenario '{}'; see --help\n", name);
      return 2;
    }
  }
  if (out.scenarios.empty()) {
    for (const Scenario& scenario : all_scenarios()) out.scenarios.emplace_back(scenario.name);
  }
  if (out.trace) out.runner.trace = stdout;
  if (out.jobs == 0) out.jobs = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  // A single seed, and one that is looked at, is easier to follow in this process.
  if (out.trace || out.runner.seeds == 1) out.jobs = 1;
  return -1;
}

Result<RunnerResult> run(const Scenario& scenario, const Arguments& arguments, Progress& progress) {
  const SeedListener announce = [&](uint64_t seed, uint64_t) { set_last_words(scenario.name, seed); };
  const SeedListener show = [&](uint64_t, uint64_t done) { progress.show(done); };
  if (arguments.jobs > 1) return run_seeds_in_processes(scenario, arguments.runner, arguments.jobs, announce, show);
  TRY(mem::Arena arena, mem::Arena::create(kArenaBytes));
  return run_seeds(scenario, arguments.runner, arena, [&](uint64_t seed, uint64_t done) {
    announce(seed, done);
    show(seed, done);
  });
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (const int code = parse(argc, argv, arguments); code >= 0) return code;
  // Seeds allocate and free the same amounts over and over; handing memory back to the kernel in between costs more
  // than the simulation.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, -1);
  log::setup(arguments.trace ? log::Level::debug : log::Level::off, log::Format::text);
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) ::signal(number, &on_fatal_signal);

  bool failed = false;
  std::string json;
  for (const std::string& name : arguments.scenarios) {
    Progress progress(name, arguments.runner.seeds, arguments.quiet || arguments.trace);
    const Result<RunnerResult> result = run(*find_scenario(name), arguments, progress);
    progress.clear();
    if (!result) {
      fmt::print(stderr, "cairn-sim: {}\n", result.error().to_string());
      return 2;
    }
    failed |= !result->failures.empty();
    if (arguments.json) {
      json += (json.empty() ? "[" : ",\n") + to_json(*result, progress.elapsed_s());
    } else {
      print_result(*result, progress.elapsed_s());
    }
  }
  if (arguments.json) fmt::print("{}]\n", json);
  return failed ? 1 : 0;
}
