// How the programs end, for scripts.
#pragma once

#include <string>

namespace cairn::srpc::tools {

enum class Exit : int {
  ok = 0,
  failed = 1,       // a call failed, or something local
  usage = 2,        // wrong arguments
  unreachable = 3,  // nobody answers there
  not_srpc = 4,     // somebody answers, and isn't the server that is wanted
};

// Why a program ends early: a name for scripts, a sentence for people that says what to do.
struct Failure {
  Exit exit = Exit::failed;
  std::string code;
  std::string message;
};

// On standard error, as JSON when `json`. Gives the exit code.
int report(const char* program, const Failure& failure, bool json);

}  // namespace cairn::srpc::tools
