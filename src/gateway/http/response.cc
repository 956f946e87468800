#include "gateway/http/response.h"

#include "base/assert.h"

namespace cairn::http {

void ResponseWriter::set_header(std::string_view name, std::string_view value) {
  ASSERT(!started());
  fields_ += name;
  fields_ += ": ";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7f) || byte == '\t') fields_ += c;
  }
  fields_ += "\r\n";
}

}  // namespace cairn::http
