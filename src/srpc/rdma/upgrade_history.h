// UpgradeHistory: what came of the attempts to go over to RDMA, of one channel or of the clients of one poll group. It
// outlives connections, so that one that is lost and comes back neither repeats what was said nor what just failed.
//
// What doesn't work is said once, in one line, and again only when it is something else or has worked in between.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace cairn::srpc::rdma {

struct RetryOptions {
  Duration first = seconds(10);  // then twice as long each time
  Duration most = seconds(300);
};

class UpgradeHistory {
 public:
  // `whom`: "10.0.0.7:7400", "clients of poll group 0".
  // What doesn't work is a warning where RDMA is `expected`.
  UpgradeHistory(std::string whom, RetryOptions retry, bool expected)
      : whom_(std::move(whom)), retry_(retry), expected_(expected), wait_(retry.first) {}

  // The earliest time for the next attempt.
  Time next_attempt() const { return next_attempt_; }

  // That this keeps it with TCP was said elsewhere.
  void said(std::string problem) { said_ = std::move(problem); }
  // It stays with TCP, for the time being.
  void failed(Time now, std::string_view problem);
  // It never will be more than TCP; nothing to worry about.
  void impossible(std::string_view why);
  void succeeded(std::string_view rail);
  // A link that had carried messages for `lived`. One that lived long is worth another attempt at once.
  void broke(Time now, Duration lived, std::string_view problem);

 private:
  void back_off(Time now);
  // False when that was said already.
  bool is_news(std::string_view line);

  std::string whom_;
  RetryOptions retry_;
  bool expected_;
  Duration wait_;
  Time next_attempt_;
  std::string said_;  // the problem that was said last; empty: it works, or nothing was tried
  bool worked_ = false;
};

}  // namespace cairn::srpc::rdma
