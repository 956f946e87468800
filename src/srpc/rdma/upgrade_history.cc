#include "srpc/rdma/upgrade_history.h"

#include <algorithm>

#include "base/log.h"

namespace cairn::srpc::rdma {

void UpgradeHistory::back_off(Time now) {
  next_attempt_ = now + wait_;
  wait_ = std::min(wait_ * 2, retry_.most);
}

bool UpgradeHistory::is_news(std::string_view line) {
  if (said_ == line) return false;
  said_ = line;
  return true;
}

void UpgradeHistory::failed(Time now, std::string_view problem) {
  back_off(now);
  if (!is_news(problem)) return;
  constexpr std::string_view kLine = "srpc: {}: TCP instead of RDMA: {}; RDMA is tried again later";
  if (expected_) {
    LOG(warn, kLine, whom_, problem);
  } else {
    LOG(info, kLine, whom_, problem);
  }
}

void UpgradeHistory::impossible(std::string_view why) {
  if (is_news(why)) LOG(info, "srpc: {}: TCP instead of RDMA: {}", whom_, why);
}

void UpgradeHistory::succeeded(std::string_view rail) {
  wait_ = retry_.first;
  if (!worked_ || !said_.empty()) LOG(info, "srpc: {}: over RDMA{}: {}", whom_, worked_ ? " again" : "", rail);
  worked_ = true;
  said_.clear();
}

void UpgradeHistory::broke(Time now, Duration lived, std::string_view problem) {
  // Else a way on which only small messages arrive would cost a connection each time.
  if (lived < retry_.first) back_off(now);
  if (is_news(problem)) LOG(warn, "srpc: {}: the RDMA link is lost: {}; on with TCP", whom_, problem);
}

}  // namespace cairn::srpc::rdma
