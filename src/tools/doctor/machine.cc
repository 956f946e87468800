#include "tools/doctor/machine.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/fd.h"
#include "base/metrics.h"
#include "reactor/ring.h"
#include "tools/doctor/verbs_ports.h"

namespace cairn::srpc::doctor {
namespace {

namespace fs = std::filesystem;

Result<void> make_a_ring() {
  Registry registry;
  TRY(auto ring, Ring::create(1024, registry.counter("enters", "")));
  return ring->enable();
}

// In the child: nothing but system calls.
[[noreturn]] void become(int output, char* const* arguments) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  ::execvp(arguments[0], arguments);
  ::_exit(127);
}

std::optional<std::string> run_program(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const Fd input(ends[0]);
  Fd output(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) become(output.get(), arguments.data());
  output.reset();
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(input.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

fs::path below(const fs::path& root, const std::string& path) { return root / fs::path(path).relative_path(); }

}  // namespace

std::optional<std::string> Machine::read(const std::string& path) const {
  std::ifstream file(below(root, path), std::ios::binary);
  if (!file) return std::nullopt;
  // Some files of /sys open and can't be read: that of a port's speed while it is down.
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::optional<uint64_t> Machine::read_number(const std::string& path) const {
  const auto text = read(path);
  if (!text) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::vector<std::string> Machine::list(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(below(root, path), failed), end; !failed && it != end; it.increment(failed)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

bool Machine::exists(const std::string& path) const {
  std::error_code failed;
  return fs::exists(below(root, path), failed);
}

std::optional<std::string> Machine::link_name(const std::string& path) const {
  std::error_code failed;
  const fs::path target = fs::read_symlink(below(root, path), failed);
  if (failed) return std::nullopt;
  return target.filename().string();
}

Machine this_machine() {
  return {.root = "/", .rdma_ports = &verbs_ports, .try_io_uring = &make_a_ring, .run = &run_program};
}

std::optional<std::string> value_of(const std::string& text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    line.remove_prefix(key.size() + 1);
    const size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string() : std::string(line.substr(first));
  }
  return std::nullopt;
}

}  // namespace cairn::srpc::doctor
