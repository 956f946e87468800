#include "tools/srpc/target.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "reactor/offload.h"
#include "reactor/resolve.h"
#include "srpc/key_file.h"

namespace cairn::srpc::tools {
namespace {

constexpr std::array<std::pair<std::string_view, Way>, 5> kWays = {
    {{"near", Way::near}, {"auto", Way::near}, {"tcp", Way::tcp}, {"shm", Way::shm}, {"rdma", Way::rdma}}};
constexpr std::array<std::pair<std::string_view, Mode>, 3> kModes = {
    {{"performance", Mode::performance}, {"economy", Mode::economy}, {"automatic", Mode::automatic}}};

template <typename Table>
auto parse(const Table& table, std::string_view text, std::string_view what) -> Result<decltype(table[0].second)> {
  std::string known;
  for (const auto& [name, value] : table) {
    if (name == text) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  return Error(Errc::invalid_argument, fmt::format("'{}' is no {}: take one of {}", text, what, known));
}

template <typename Table, typename Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& [name, entry] : table) {
    if (entry == value) return name;
  }
  return "?";
}

Task<Result<std::vector<Address>>> look_up(OffloadPool* helpers, Reactor* reactor, std::string name) {
  co_return co_await resolve(*helpers, *reactor, std::move(name));
}

bool has_port(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  // The colons of an IPv6 address stand in brackets when a port follows.
  return text.find(':') == colon || text[colon - 1] == ']';
}

}  // namespace

Result<Address> find_server(ReactorHost& host, const std::string& text, uint16_t default_port) {
  std::string whole = text;
  if (!has_port(text)) {
    const bool bare_v6 = text.find(':') != std::string::npos && text.front() != '[';
    whole = fmt::format("{}{}{}:{}", bare_v6 ? "[" : "", text, bare_v6 ? "]" : "", default_port);
  }
  if (auto number = Address::parse(whole)) return number;
  OffloadPool helpers("resolve", 1);
  TRY(const auto addresses, host.run(&look_up, &helpers, &host.reactor(), whole));
  return addresses.front();
}

Result<std::optional<KeyRing>> read_key_ring(const std::string& path) {
  if (path.empty()) return std::optional<KeyRing>();
  auto keys = read_key_file(path);
  if (!keys) return std::move(keys).error().with_context("--key-file");
  return std::optional<KeyRing>(*std::move(keys));
}

Result<const KeyRing*> tls_keys_of(bool tls, const std::optional<KeyRing>& ring) {
  if (!tls) return nullptr;
  if (!ring) return Error(Errc::invalid_argument, "--tls goes by the cluster's key: name a file with it, --key-file");
  return &*ring;
}

Result<Way> parse_way(std::string_view text) { return parse(kWays, text, "transport"); }
std::string_view way_name(Way way) { return name_in(kWays, way); }
Result<Mode> parse_mode(std::string_view text) { return parse(kModes, text, "mode"); }
std::string_view mode_name(Mode mode) { return name_in(kModes, mode); }

}  // namespace cairn::srpc::tools
