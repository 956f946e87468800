// A server as the command line names it, and the other words that both programs take.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "reactor/address.h"
#include "reactor/reactor.h"
#include "srpc/key_ring.h"
#include "srpc/reactor_host.h"

namespace cairn::srpc::tools {

// "127.0.0.1:7400", "[::1]:7400", "node1:7400"; without a port, `default_port`. Asks the system's resolver for names,
// and takes the first of several addresses. Errors: invalid_argument, not_found, ...
Result<Address> find_server(ReactorHost& host, const std::string& text, uint16_t default_port);

// The keys in a file; none when `path` is empty: only open servers and clients then.
Result<std::optional<KeyRing>> read_key_ring(const std::string& path);
// For ServerOptions and ChannelOptions.
inline const KeyRing* keys_of(const std::optional<KeyRing>& ring) { return ring ? &*ring : nullptr; }

// For ReactorHost::connector(): the keys, if TLS is wanted. Errors: invalid_argument (there are none).
Result<const KeyRing*> tls_keys_of(bool tls, const std::optional<KeyRing>& ring);

// "near" or "auto", "tcp", "shm", "rdma".
Result<Way> parse_way(std::string_view text);
std::string_view way_name(Way way);
// "performance", "economy", "automatic".
Result<Mode> parse_mode(std::string_view text);
std::string_view mode_name(Mode mode);

}  // namespace cairn::srpc::tools
