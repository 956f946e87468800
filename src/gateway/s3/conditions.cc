#include "gateway/s3/conditions.h"

#include "gateway/http/date.h"

namespace cairn::s3 {
namespace {

std::string_view unquote(std::string_view tag) {
  tag = http::trim(tag);
  if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') return tag.substr(1, tag.size() - 2);
  return tag;  // clients send bare ETags, too
}

// `list`: "*" or ETags. Weak comparison ignores W/, which strong comparison never matches.
bool matches(std::string_view list, std::string_view etag, bool weak) {
  if (http::trim(list) == "*") return true;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view item = http::trim(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    const bool is_weak = item.starts_with("W/");
    if (is_weak) item.remove_prefix(2);
    if ((weak || !is_weak) && unquote(item) == etag) return true;
  }
  return false;
}

std::optional<int64_t> date(const http::Headers& headers, std::string_view name) {
  const auto text = headers.get(name);
  return text ? http::parse_http_date(*text) : std::nullopt;
}

}  // namespace

ReadConditions ReadConditions::of_request(const http::Headers& headers) {
  return {headers.get("if-match"), headers.get("if-none-match"), date(headers, "if-modified-since"),
          date(headers, "if-unmodified-since")};
}

ReadConditions ReadConditions::of_copy_source(const http::Headers& headers) {
  return {headers.get("x-amz-copy-source-if-match"), headers.get("x-amz-copy-source-if-none-match"),
          date(headers, "x-amz-copy-source-if-modified-since"), date(headers, "x-amz-copy-source-if-unmodified-since")};
}

Verdict ReadConditions::judge(std::string_view etag, int64_t modified_unix_ns) const {
  // Dates have whole seconds, so a change within the second of the date counts as not after it.
  const int64_t modified = modified_unix_ns / 1'000'000'000;
  if (if_match) {
    if (!matches(*if_match, etag, false)) return Verdict::precondition_failed;
  } else if (if_unmodified_since && modified > *if_unmodified_since) {
    return Verdict::precondition_failed;
  }
  if (if_none_match) {
    if (matches(*if_none_match, etag, true)) return Verdict::not_modified;
  } else if (if_modified_since && modified <= *if_modified_since) {
    return Verdict::not_modified;
  }
  return Verdict::proceed;
}

S3Result<object::WriteConditions> write_conditions(const http::Headers& headers) {
  object::WriteConditions conditions;
  if (const auto none = headers.get("if-none-match")) {
    if (http::trim(*none) != "*") {
      return S3Error(Code::NotImplemented, "If-None-Match of a write takes \"*\" only.");
    }
    conditions.if_none_match_any = true;
  }
  if (const auto match = headers.get("if-match")) {
    if (conditions.if_none_match_any) {
      return S3Error(Code::InvalidRequest, "If-Match and If-None-Match can't be used together.");
    }
    conditions.if_match = std::string(unquote(*match));
  }
  return conditions;
}

bool range_applies(const http::Headers& headers, std::string_view etag, int64_t modified_unix_ns) {
  const auto condition = headers.get("if-range");
  if (!condition) return true;
  if (const auto since = http::parse_http_date(*condition)) return modified_unix_ns / 1'000'000'000 <= *since;
  return !condition->starts_with("W/") && unquote(*condition) == etag;
}

}  // namespace cairn::s3
