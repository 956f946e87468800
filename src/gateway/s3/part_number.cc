#include "gateway/s3/part_number.h"

#include <charconv>

#include "gateway/s3/list_parameters.h"
#include "gateway/s3/xml_request.h"

namespace cairn::s3 {

S3Result<std::optional<uint32_t>> part_number_of(const QueryParameters& query) {
  if (!has_parameter(query, "partNumber")) return std::optional<uint32_t>();
  const std::string_view text = parameter(query, "partNumber");
  uint32_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || number < 1 || number > kMaxPartNumber) {
    return S3Error(Code::InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive");
  }
  return std::optional(number);
}

}  // namespace cairn::s3
