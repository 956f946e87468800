// srpc-doctor: is this machine fit for SRPC, and what is there to fix.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "base/version.h"
#include "tools/doctor/checks.h"

namespace cairn::srpc::doctor {
namespace {

constexpr const char* kFooter = R"text(
Examples:
  srpc-doctor                       what is there, how it is, what to fix
  srpc-doctor --problems            only what should be better
  srpc-doctor --problems --json     the same for programs
  srpc-doctor --json | jq '.findings[] | select(.level == "error")'
  sudo -u cairn srpc-doctor         as the user that will serve: limits are those of the process

It looks at RDMA devices and their ports (state, GIDs and which of them SRPC takes, MTU), ECN, PFC and DSCP, limits
of locked memory and descriptors, huge pages, shared memory, io_uring, cores and control groups. It changes nothing and
sends nothing. "unknown" means that neither the kernel nor a tool tells, not that something is wrong.

Exit codes: 0 fit, 1 something doesn't work (error), 2 wrong usage, 3 something works worse than it should (warning).)text";

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;
constexpr int kExitWarning = 3;

void print_text(const Findings& findings, bool only_problems) {
  size_t shown = 0;
  for (const Finding& finding : findings.list()) {
    if (only_problems && finding.level < Level::note) continue;
    ++shown;
    fmt::print("{:8} {:14} {}\n", level_name(finding.level), finding.subject, finding.text);
    if (!finding.fix.empty()) fmt::print("{:8} {:14} -> {}\n", "", "", finding.fix);
  }
  if (shown == 0) fmt::print("nothing to fix\n");
}

void print_json(const Findings& findings, bool only_problems) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings.list()) {
    if (only_problems && finding.level < Level::note) continue;
    list.push_back({{"level", level_name(finding.level)},
                    {"subject", finding.subject},
                    {"text", finding.text},
                    {"fix", finding.fix}});
  }
  const nlohmann::ordered_json document = {{"worst", level_name(findings.worst())}, {"findings", list}};
  fmt::print("{}\n", document.dump(2));
}

int run(int argc, char** argv) {
  CLI::App app("srpc-doctor: is this machine fit for SRPC, and what is there to fix", "srpc-doctor");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("srpc-doctor {}", kVersion));
  bool json = false;
  bool only_problems = false;
  app.add_flag("--json", json, "print JSON");
  app.add_flag("--problems", only_problems, "leave out what is well and what is unknown");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const Findings findings = examine(this_machine());
  json ? print_json(findings, only_problems) : print_text(findings, only_problems);
  switch (findings.worst()) {
    case Level::error:
      return kExitError;
    case Level::warning:
      return kExitWarning;
    default:
      return 0;
  }
}

}  // namespace
}  // namespace cairn::srpc::doctor

int main(int argc, char** argv) { return cairn::srpc::doctor::run(argc, argv); }
