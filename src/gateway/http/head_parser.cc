#include "gateway/http/head_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <charconv>

namespace cairn::http {
namespace {

namespace beast = boost::beast::http;

constexpr std::string_view view(boost::string_view text) { return {text.data(), text.size()}; }

constexpr struct {
  std::string_view text;
  Method method;
} kMethods[] = {
    {"GET", Method::get},   {"HEAD", Method::head},  {"PUT", Method::put},
    {"POST", Method::post}, {"DELETE", Method::del}, {"OPTIONS", Method::options},
};

Method method_of(std::string_view text) {
  for (const auto& entry : kMethods) {
    if (entry.text == text) return entry.method;
  }
  return Method::other;
}

// Collects views only. Beast's own decisions on framing aren't used: frame() below decides by stricter rules.
class Collector final : public beast::basic_parser<true> {
 public:
  Collector(RequestHead& head, size_t max_fields) : head_(head), max_fields_(max_fields) {}
  bool too_many_fields() const { return too_many_; }

 private:
  using Code = boost::beast::error_code;
  using View = boost::beast::string_view;

  void on_request_impl(beast::verb, View method, View target, int version, Code&) override {
    head_.method_text = view(method);
    head_.method = method_of(head_.method_text);
    head_.target = view(target);
    head_.minor_version = version % 10;
  }
  void on_field_impl(beast::field, View name, View value, Code& code) override {
    if (head_.headers.size() == max_fields_) {
      too_many_ = true;
      code = beast::error::header_limit;
      return;
    }
    head_.headers.add(view(name), trim(view(value)));
  }
  void on_response_impl(int, View, int, Code&) override {}
  void on_header_impl(Code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, Code&) override {}
  size_t on_body_impl(View, Code&) override { return 0; }
  void on_chunk_header_impl(uint64_t, View, Code&) override {}
  size_t on_chunk_body_impl(uint64_t, View, Code&) override { return 0; }
  void on_finish_impl(Code&) override {}

  RequestHead& head_;
  size_t max_fields_;
  bool too_many_ = false;
};

// Digits only: no sign, no list, no space.
bool parse_length(std::string_view text, uint64_t& out) {
  if (text.empty() || text.size() > 19 || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  return std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc();
}

std::optional<HeadError> frame(RequestHead& head) {
  const size_t lengths = head.headers.count("content-length");
  const size_t encodings = head.headers.count("transfer-encoding");
  if (lengths > 1) return HeadError{400, "more than one Content-Length"};
  if (encodings > 0) {
    if (lengths > 0) return HeadError{400, "both Content-Length and Transfer-Encoding"};
    if (head.minor_version == 0) return HeadError{400, "Transfer-Encoding in HTTP/1.0"};
    if (encodings > 1 || !equals_ignoring_case(head.headers.value("transfer-encoding"), "chunked")) {
      return HeadError{501, "a Transfer-Encoding other than chunked is not supported"};
    }
    head.framing = RequestHead::Framing::chunked;
  } else if (lengths == 1) {
    if (!parse_length(head.headers.value("content-length"), head.content_length)) {
      return HeadError{400, "Content-Length is not a number"};
    }
    head.framing = RequestHead::Framing::length;
  }
  return std::nullopt;
}

std::optional<HeadError> settle_target(RequestHead& head) {
  // Only origin form, absolute form and "*" for OPTIONS: this is no proxy.
  for (const std::string_view scheme : {std::string_view("http://"), std::string_view("https://")}) {
    if (head.target.size() < scheme.size() || !equals_ignoring_case(head.target.substr(0, scheme.size()), scheme))
      continue;
    const std::string_view rest = head.target.substr(scheme.size());
    const size_t slash = rest.find_first_of("/?");
    if (slash == std::string_view::npos || rest[slash] != '/') {
      return HeadError{400, "an absolute request target needs a path"};
    }
    head.host = rest.substr(0, slash);
    head.target = rest.substr(slash);
  }
  if (head.target.starts_with('/') || (head.target == "*" && head.method == Method::options)) return std::nullopt;
  return HeadError{400, "the request target must begin with a slash"};
}

std::optional<HeadError> settle(RequestHead& head) {
  const size_t hosts = head.headers.count("host");
  if (hosts > 1) return HeadError{400, "more than one Host field"};
  if (hosts == 0 && head.minor_version >= 1) return HeadError{400, "HTTP/1.1 requires a Host field"};
  head.host = head.headers.value("host");
  if (auto error = settle_target(head)) return error;
  if (auto error = frame(head)) return error;

  const std::string_view connection = head.headers.value("connection");
  head.keep_alive =
      head.minor_version >= 1 ? !list_has_token(connection, "close") : list_has_token(connection, "keep-alive");
  if (const auto expect = head.headers.get("expect"); expect && head.minor_version >= 1) {
    if (!equals_ignoring_case(*expect, "100-continue")) return HeadError{417, "unknown expectation"};
    head.expects_continue = true;
  }
  return std::nullopt;
}

// Whether a request line is well-formed but for the version's number.
bool names_version(std::string_view line) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const size_t blank = line.rfind(' ');
  const std::string_view version = line.substr(blank + 1);
  return std::ranges::count(line, ' ') == 2 && version.size() == 8 && version.starts_with("HTTP/") &&
         digit(version[5]) && version[6] == '.' && digit(version[7]);
}

}  // namespace

HeadScan scan_head(std::string_view bytes, size_t from) noexcept {
  // Empty lines before a request line are tolerated (RFC 9112 section 2.2), by the caller.
  for (size_t i = bytes.find('\n', from); i != std::string_view::npos; i = bytes.find('\n', i + 1)) {
    if (i == 0 || bytes[i - 1] != '\r') return {HeadScan::State::malformed, 0, "a line ends with LF instead of CRLF"};
    if (i >= 3 && bytes[i - 2] == '\n') return {HeadScan::State::complete, i + 1, {}};
    if (i + 1 < bytes.size() && (bytes[i + 1] == ' ' || bytes[i + 1] == '\t')) {
      return {HeadScan::State::malformed, 0, "folded header lines are not accepted"};
    }
  }
  return {};
}

std::optional<HeadError> parse_head(std::span<char> buffer, const HeadLimits& limits, RequestHead& head) {
  const std::string_view bytes(buffer.data(), buffer.size());
  head = RequestHead();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    if (c == '\r' && i + 1 < bytes.size() && bytes[i + 1] == '\n') continue;
    if (c == '\n' && i > 0 && bytes[i - 1] == '\r') {
      if (i + 1 < bytes.size() && (bytes[i + 1] == ' ' || bytes[i + 1] == '\t')) {
        return HeadError{400, "folded header lines are not accepted"};
      }
      continue;
    }
    if ((c < 0x20 && c != '\t') || c == 0x7f) return HeadError{400, "a control character in the head"};
  }
  // The request line's target is bounded before it is parsed, to tell 414 from 431.
  const std::string_view line = bytes.substr(0, bytes.find('\r'));
  if (line.size() > limits.max_target_bytes + 32) return HeadError{414, "the request target is too long"};

  Collector parser(head, limits.max_fields);
  parser.header_limit(static_cast<uint32_t>(std::min<size_t>(bytes.size() + 1, UINT32_MAX)));
  // Not boost::none: 1.74 compares it as less than every length.
  parser.body_limit(UINT64_MAX);
  boost::beast::error_code code;
  const size_t used = parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), code);
  if (parser.too_many_fields()) return HeadError{431, "too many header fields"};
  // An upgrade to HTTP/2 or a foreign protocol ends here as well.
  if (code == beast::error::bad_version && names_version(line)) {
    return HeadError{505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  }
  // Beast refuses some framings in its own words; ours are told below with the same verdict.
  const bool framing = code == beast::error::bad_content_length || code == beast::error::bad_transfer_encoding;
  if (code && !framing) return HeadError{400, "malformed head: " + code.message()};
  if (!code && (!parser.is_header_done() || used != bytes.size())) return HeadError{400, "malformed head"};
  // The names are views into `buffer`, which is ours to write to: everybody above compares lower-case names only.
  for (const Headers::Field& field : head.headers) {
    char* name = buffer.data() + (field.name.data() - bytes.data());
    for (size_t i = 0; i < field.name.size(); ++i) {
      if (name[i] >= 'A' && name[i] <= 'Z') name[i] = static_cast<char>(name[i] + 32);
    }
  }
  if (auto error = settle(head)) return error;
  if (framing) return HeadError{400, "malformed or contradictory Content-Length and Transfer-Encoding"};
  return std::nullopt;
}

}  // namespace cairn::http
