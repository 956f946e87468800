// Moving bytes into an object::Writer: from a request's body, or from another object.
#pragma once

#include <memory>

#include "gateway/s3/call.h"
#include "gateway/s3/checksum.h"
#include "gateway/s3/payload.h"

namespace cairn::s3 {

// Streams copy for as long as they make progress; this only bounds what hangs.
inline constexpr Duration kStreamTime = seconds(24 * 3600);
object::CallContext stream_context(const Call& call);

// The payload into the writer, up to its proven end.
Task<S3Result<void>> pump_payload(Payload& payload, object::Writer& writer);

// What was computed over a copy's bytes.
struct Copied {
  std::string etag;
  std::optional<object::Checksum> checksum;
};
Task<S3Result<Copied>> pump_object(Call& call, object::Reader& reader, object::Writer& writer,
                                   std::optional<ChecksumKind> checksum);

}  // namespace cairn::s3
