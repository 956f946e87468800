#include <algorithm>
#include <array>

#include "gateway/http/response.h"

namespace cairn::http {
namespace {

struct Phrase {
  int status;
  std::string_view text;
};

// RFC 9110 section 15, and 507 of RFC 4918. Sorted by status.
constexpr std::array kPhrases = {
    Phrase{100, "Continue"},
    Phrase{200, "OK"},
    Phrase{201, "Created"},
    Phrase{202, "Accepted"},
    Phrase{204, "No Content"},
    Phrase{206, "Partial Content"},
    Phrase{301, "Moved Permanently"},
    Phrase{302, "Found"},
    Phrase{303, "See Other"},
    Phrase{304, "Not Modified"},
    Phrase{307, "Temporary Redirect"},
    Phrase{400, "Bad Request"},
    Phrase{401, "Unauthorized"},
    Phrase{403, "Forbidden"},
    Phrase{404, "Not Found"},
    Phrase{405, "Method Not Allowed"},
    Phrase{406, "Not Acceptable"},
    Phrase{408, "Request Timeout"},
    Phrase{409, "Conflict"},
    Phrase{410, "Gone"},
    Phrase{411, "Length Required"},
    Phrase{412, "Precondition Failed"},
    Phrase{413, "Content Too Large"},
    Phrase{414, "URI Too Long"},
    Phrase{415, "Unsupported Media Type"},
    Phrase{416, "Range Not Satisfiable"},
    Phrase{417, "Expectation Failed"},
    Phrase{422, "Unprocessable Content"},
    Phrase{426, "Upgrade Required"},
    Phrase{429, "Too Many Requests"},
    Phrase{431, "Request Header Fields Too Large"},
    Phrase{500, "Internal Server Error"},
    Phrase{501, "Not Implemented"},
    Phrase{502, "Bad Gateway"},
    Phrase{503, "Service Unavailable"},
    Phrase{504, "Gateway Timeout"},
    Phrase{505, "HTTP Version Not Supported"},
    Phrase{507, "Insufficient Storage"},
};
static_assert(std::ranges::is_sorted(kPhrases, {}, &Phrase::status));

}  // namespace

std::string_view reason_phrase(int status) noexcept {
  const auto found = std::ranges::lower_bound(kPhrases, status, {}, &Phrase::status);
  return found != kPhrases.end() && found->status == status ? found->text : std::string_view();
}

}  // namespace cairn::http
