#include "node/device_setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace cairn::node {
namespace {

bool knows(const DataDirectory& directory, Id128 device) {
  return std::ranges::any_of(directory.devices(), [&](const KnownDevice& known) { return known.id == device; });
}

}  // namespace

Task<Result<engine::DeviceInfo>> set_up_device(engine::DeviceContext context, const DataDirectory& directory,
                                               std::string path, uint32_t shards, Rng& rng) {
  const auto in_words = [&path](Error error) { return std::move(error).with_context(fmt::format("device {}", path)); };
  auto opened = co_await engine::open_device(context);
  const bool blank = opened.code() == Errc::not_found || opened.code() == Errc::unavailable;
  if (!opened && !blank) co_return in_words(std::move(opened.error()));

  if (blank) {
    if (!directory.devices().empty()) {
      co_return Error(Errc::corrupt,
                      fmt::format("device {} is blank, but this node keeps its data on device {} ({}): attach the "
                                  "right one, or set device.path",
                                  path, directory.devices().front().id.to_string(), directory.devices().front().path));
    }
    LOG(info, "formatting device {}", path);
    auto formatted =
        co_await engine::format_device(context, {.cluster = directory.identity().cluster_id, .shards = shards}, rng);
    if (!formatted) co_return in_words(std::move(formatted.error()));
    co_return *std::move(formatted);
  }
  if (opened->cluster != directory.identity().cluster_id) {
    co_return Error(
        Errc::already_exists,
        fmt::format("device {} belongs to another cluster ({}), not to that of {} ({}): use its own data "
                    "directory, or clear its first MiB to give up what is on it",
                    path, opened->cluster.to_string(), directory.path(), directory.identity().cluster_id.to_string()));
  }
  if (!directory.devices().empty() && !knows(directory, opened->device)) {
    co_return Error(Errc::corrupt,
                    fmt::format("device {} is not the one that this node keeps its data on, {} ({}): set device.path",
                                path, directory.devices().front().id.to_string(), directory.devices().front().path));
  }
  co_return *std::move(opened);
}

}  // namespace cairn::node
