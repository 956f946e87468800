// How a command ends: its exit code, and for people a sentence.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace cairn::cli {

// Part of the interface; documented in cairn(1).
enum class Exit : int {
  ok = 0,
  error = 1,         // the node answered with an error, or something local failed
  usage = 2,         // wrong arguments
  unreachable = 3,   // no node answers at the endpoint
  not_found = 4,     // no such bucket, key, ...
  conflict = 5,      // exists already, or isn't empty
  unauthorized = 6,  // the token is missing or wrong
};

struct Failure {
  Exit exit = Exit::error;
  std::string code;     // the API's error code, such as "not_found"
  std::string message;  // one sentence, with the cure where there is one
};

}  // namespace cairn::cli
