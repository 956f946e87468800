#include "scenarios/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/fd.h"

namespace cairn::scenarios {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// One line per seed, between processes of the same program.
std::string to_line(const RunnerResult& one) {
  nlohmann::json json = {{"twice", one.seeds_run_twice}, {"events", one.events}, {"ns", one.simulated_ns}};
  for (const auto& [name, count] : one.coverage.counts()) json["coverage"][name] = count;
  for (const SeedFailure& failure : one.failures) json["failure"] = {{"text", failure.message}, {"plan", failure.plan}};
  // A message may hold any bytes.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

RunnerResult from_line(std::string_view line, uint64_t seed) {
  const auto json = nlohmann::json::parse(line);
  RunnerResult one{
      .seeds_run = 1, .seeds_run_twice = json.at("twice"), .events = json.at("events"), .simulated_ns = json.at("ns")};
  if (json.contains("coverage")) {
    for (const auto& [name, count] : json["coverage"].items()) {
      one.coverage.expect(name);
      one.coverage.hit(name, count.get<uint64_t>());
    }
  }
  if (json.contains("failure")) {
    one.failures.push_back({.seed = seed, .message = json["failure"]["text"], .plan = json["failure"]["plan"]});
  }
  return one;
}

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)wait();
  }

  // `work` runs in the new process and writes lines to the file it is given; then the process ends.
  template <typename Work>
  Result<void> start(const Work& work) {
    std::array<int, 2> ends;
    if (::pipe2(ends.data(), O_CLOEXEC) < 0) return error_from_errno(errno, "make a pipe");
    Fd reader(ends[0]);
    Fd writer(ends[1]);
    pid_ = ::fork();
    if (pid_ < 0) return error_from_errno(errno, "make a process");
    if (pid_ == 0) {
      reader = Fd();
      std::FILE* out = ::fdopen(writer.release(), "w");
      // Without destructors: this process is a copy, and what it holds belongs to the original.
      ::_exit(out != nullptr && work(out) && std::fflush(out) == 0 ? 0 : 2);
    }
    lines_.reset(::fdopen(reader.get(), "r"));
    if (lines_ == nullptr) return error_from_errno(errno, "read from a process");
    (void)reader.release();
    return {};
  }

  // None when the process has ended.
  std::optional<std::string> next_line() {
    std::string line;
    for (int c; (c = std::fgetc(lines_.get())) != EOF;) {
      if (c == '\n') return line;
      line += static_cast<char>(c);
    }
    return std::nullopt;
  }
  // What waitpid() says.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  File lines_;
};

}  // namespace

Result<RunnerResult> run_seeds_in_processes(const Scenario& scenario, const RunnerOptions& options, unsigned processes,
                                            const SeedListener& before_seed, const SeedListener& progress) {
  ASSERT(processes > 0 && options.trace == nullptr);
  std::vector<Worker> workers(processes);
  for (unsigned first = 0; first < processes; ++first) {
    TRY(workers[first].start([&](std::FILE* out) {
      auto arena = mem::Arena::create(kArenaBytes);
      if (!arena) return false;
      for (uint64_t i = first; i < options.seeds; i += processes) {
        before_seed(options.first_seed + i, i);
        const std::string line = to_line(run_seed(scenario, options, i, *arena));
        if (std::fwrite(line.data(), 1, line.size(), out) != line.size() || std::fflush(out) != 0) return false;
      }
      return true;
    }));
  }
  RunnerResult result{.scenario = std::string(scenario.name), .first_seed = options.first_seed};
  for (uint64_t i = 0; i < options.seeds; ++i) {
    progress(options.first_seed + i, i);
    Worker& worker = workers[i % processes];
    const auto line = worker.next_line();
    if (!line) {
      const int status = worker.wait();
      workers.clear();
      if (WIFSIGNALED(status)) {
        ::signal(WTERMSIG(status), SIG_DFL);
        ::raise(WTERMSIG(status));
      }
      return Error(Errc::io_error, "a process that ran seeds has ended too early");
    }
    result.add(from_line(*line, options.first_seed + i));
    if (!result.failures.empty() && !options.keep_going) break;
  }
  return result;
}

}  // namespace cairn::scenarios
