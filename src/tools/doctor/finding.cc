#include "tools/doctor/finding.h"

#include <algorithm>

namespace cairn::srpc::doctor {

std::string_view level_name(Level level) {
  switch (level) {
    case Level::ok:
      return "ok";
    case Level::unknown:
      return "unknown";
    case Level::note:
      return "note";
    case Level::warning:
      return "warning";
    case Level::error:
      return "error";
  }
  return "?";
}

Level Findings::worst() const {
  Level worst = Level::ok;
  for (const Finding& finding : list_) worst = std::max(worst, finding.level);
  return worst;
}

}  // namespace cairn::srpc::doctor
