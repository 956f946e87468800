// Percent-encoding as S3 does it, and query strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::s3 {

// Encodes every byte but the unreserved ones (RFC 3986 section 2.3) with upper-case digits; "/" too unless kept. This
// is UriEncode of the signature's definition, and the encoding-type=url of listings.
std::string uri_encode(std::string_view text, bool keep_slash);
// None when a "%" isn't followed by two digits. "+" becomes a space only where asked (query strings, not paths).
std::optional<std::string> uri_decode(std::string_view text, bool plus_is_space);

// Decoded names and values in the order they came; a parameter without "=" has an empty value.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;
// None for a malformed percent-encoding.
std::optional<QueryParameters> parse_query(std::string_view query);

}  // namespace cairn::s3
