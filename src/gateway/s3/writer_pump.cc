#include "gateway/s3/writer_pump.h"

#include "base/hex.h"
#include "gateway/s3/chain_aligner.h"

namespace cairn::s3 {
namespace {

// What is received before it is handed on: one block of the arena. The writer keeps its own window beyond.
constexpr size_t kPiece = mem::kMaxBlock;

}  // namespace

object::CallContext stream_context(const Call& call) {
  return {call.environment.loop.now() + kStreamTime, call.request.cancel()};
}

Task<S3Result<void>> pump_payload(Payload& payload, object::Writer& writer) {
  for (;;) {
    CO_TRY(mem::BufChain chain, co_await payload.read(kPiece));
    if (chain.empty()) co_return S3Result<void>();
    const auto written = co_await writer.write(std::move(chain));
    if (!written) co_return to_s3_error(written.error());
  }
}

Task<S3Result<Copied>> pump_object(Call& call, object::Reader& reader, object::Writer& writer,
                                   std::optional<ChecksumKind> kind) {
  ChainAligner aligner(call.request.pool());
  Digest md5(DigestKind::md5);
  const auto checksum = kind ? ChecksumStream::create(*kind) : nullptr;
  const auto hash = [&](std::span<const std::byte> bytes) {
    md5.update(bytes);
    if (checksum) checksum->update(bytes);
  };
  for (bool ended = false; !ended;) {
    auto piece = co_await reader.next();
    if (!piece) co_return to_s3_error(piece.error());
    ended = piece->empty();
    piece->for_each(hash);
    mem::BufChain out;
    if (ended) {
      out = aligner.finish();
    } else {
      auto aligned = co_await aligner.push(*std::move(piece), call.request.cancel());
      if (!aligned) co_return to_s3_error(aligned.error());
      out = *std::move(aligned);
    }
    if (out.empty()) continue;
    const auto written = co_await writer.write(std::move(out));
    if (!written) co_return to_s3_error(written.error());
  }
  const std::string raw = md5.finish();
  Copied copied{to_hex(std::as_bytes(std::span(raw))), std::nullopt};
  if (kind) copied.checksum = object::Checksum{std::string(checksum_info(*kind).name), checksum->finish(), true};
  co_return copied;
}

}  // namespace cairn::s3
