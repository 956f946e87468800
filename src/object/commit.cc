#include "object/commit.h"

#include <charconv>

namespace cairn::object {

Task<Result<std::optional<Guard>>> Commit::run(client::Client& client, engine::GroupId group, mem::Purpose purpose,
                                               Time deadline) {
  const Result<void> done = co_await client.kv_batch(group, std::move(batch_), purpose, {.deadline = deadline});
  if (done) co_return std::optional<Guard>();
  if (done.code() != Errc::condition_failed) co_return done.error();
  const std::string& text = done.error().message();
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number >= guards_.size()) {
    co_return Error(Errc::protocol_error, "a failed condition without a number: " + text);
  }
  co_return std::optional<Guard>(guards_[number]);
}

}  // namespace cairn::object
