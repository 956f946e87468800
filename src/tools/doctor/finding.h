// What a check found out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::srpc::doctor {

enum class Level : uint8_t {
  ok,
  unknown,  // it can't be told here; nothing speaks against it
  note,     // works, and could be better
  warning,  // works worse than it should, or another way than it seems: TCP instead of RDMA
  error,    // SRPC doesn't work
};
std::string_view level_name(Level level);

struct Finding {
  Level level = Level::ok;
  std::string subject;  // "rdma", "memlock": stable, for scripts
  std::string text;
  std::string fix = "";  // one line; empty: nothing to do
};

class Findings {
 public:
  void add(Level level, std::string_view subject, std::string text, std::string fix = "") {
    list_.push_back({level, std::string(subject), std::move(text), std::move(fix)});
  }
  const std::vector<Finding>& list() const { return list_; }
  Level worst() const;

 private:
  std::vector<Finding> list_;
};

}  // namespace cairn::srpc::doctor
