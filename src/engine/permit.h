// Permit: what one entry will need of a shard (allocation units, journal bytes), taken before the entry gets its index
// and given back by itself when the entry is never appended.
#pragma once

#include <cstdint>
#include <utility>

namespace cairn::engine {

struct Need {
  uint64_t units = 0;
  uint64_t journal_bytes = 0;
};

class PermitOwner {
 public:
  virtual void give_back(Need need) = 0;

 protected:
  ~PermitOwner() = default;
};

// Dies before its shard.
class Permit {
 public:
  Permit() = default;
  Permit(PermitOwner& owner, Need need) : owner_(&owner), need_(need) {}
  Permit(Permit&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), need_(other.need_) {}
  Permit& operator=(Permit&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(need_, other.need_);
    return *this;
  }
  ~Permit() {
    if (owner_ != nullptr) owner_->give_back(need_);
  }

  explicit operator bool() const { return owner_ != nullptr; }
  const PermitOwner* owner() const { return owner_; }
  // For the owner, which then accounts for the need itself.
  Need spend() {
    owner_ = nullptr;
    return std::exchange(need_, {});
  }

 private:
  PermitOwner* owner_ = nullptr;
  Need need_;
};

}  // namespace cairn::engine
