#include "tools/srpc/child_server.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "base/fd.h"
#include "tools/srpc/target.h"

namespace cairn::srpc::tools {
namespace {

// In the child: nothing but system calls.
[[noreturn]] void become_server(int output, pid_t parent, char* const* arguments) {
  // The parent may have gone between the fork and the first call.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(output, STDOUT_FILENO);
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

// The first line that the server prints: its address.
Result<std::string> read_line(const Fd& from) {
  std::string line;
  for (;;) {
    char c = 0;
    const ssize_t n = ::read(from.get(), &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Error(Errc::closed, "the server of srpc-perf's own ended before it listened");
    if (c == '\n') return line;
    line += c;
  }
}

}  // namespace

Result<std::unique_ptr<ChildServer>> ChildServer::start(Mode mode, uint32_t poll_groups, const std::string& key_file,
                                                        bool tls) {
  int ends[2];
  if (::pipe(ends) != 0) return error_from_errno(errno, "pipe");
  const Fd input(ends[0]);
  Fd output(ends[1]);
  std::vector<std::string> words = {"srpc-perf",      "server",
                                    "--listen",       "127.0.0.1:0",
                                    "--mode",         std::string(mode_name(mode)),
                                    "--poll-groups",  fmt::format("{}", poll_groups),
                                    "--print-address"};
  if (!key_file.empty()) words.insert(words.end(), {"--key-file", key_file});
  if (tls) words.emplace_back("--tls");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return error_from_errno(errno, "fork");
  if (pid == 0) become_server(output.get(), parent, arguments.data());
  std::unique_ptr<ChildServer> self(new ChildServer(pid));
  output.reset();
  TRY(self->address_, read_line(input));
  return self;
}

ChildServer::~ChildServer() {
  ::kill(pid_, SIGTERM);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace cairn::srpc::tools
