#include "object/data_sink.h"

#include <algorithm>

#include "base/log.h"

namespace cairn::object {
namespace {

// A lost connection leaves open whether the write took effect. Nobody writes other bytes there, so it may be repeated.
constexpr int kWriteTries = 4;

}  // namespace

DataSink::DataSink(Core& core, Session& session, DataId id, CallContext context)
    : state_(std::make_shared<State>(core, session, id)), context_(context) {}

DataSink::~DataSink() {
  if (state_ == nullptr || state_->size == 0) return;
  Scope& background = state_->core.background;
  background.spawn(&DataSink::delete_all, std::move(state_));
}

DataRef DataSink::data() const { return {.id = state_->id, .size = state_->size}; }

void DataSink::keep() { state_.reset(); }

void DataSink::abandon() {
  state_->core.metrics.unknown_outcomes.add();
  state_->session.leaked();
  state_.reset();
}

Task<Result<void>> DataSink::write(mem::BufChain data) {
  ASSERT(state_ != nullptr);
  // Only the last write may end inside a page: the next one would have to start there.
  ASSERT(state_->size % engine::kPageBytes == 0);
  while (!data.empty()) {
    const Piece piece = piece_at(state_->id, state_->size, data.size());
    CO_TRY(co_await state_->window.take(piece.length, context_.cancel));
    if (state_->error) {
      state_->window.give(piece.length);
      co_return *state_->error;
    }
    state_->size += piece.length;
    state_->core.background.spawn(&DataSink::write_piece, state_, piece, data.split_front(piece.length),
                                  context_.deadline);
  }
  co_return Result<void>{};
}

Task<void> DataSink::write_piece(std::shared_ptr<State> state, Piece piece, mem::BufChain data, Time deadline) {
  for (int attempt = 1;; ++attempt) {
    // Not the caller's token: it may be gone before this ends, and what was sent is better waited for.
    const Result<void> written =
        co_await state->core.client.chunk_write(piece.chunk, piece.offset, data, {.deadline = deadline});
    if (written.code() == Errc::closed && attempt < kWriteTries && !state->core.background.token().cancelled())
      continue;
    if (!written && !state->error) state->error = written.error();
    break;
  }
  // Before whoever waits for the window goes on to allocate the next piece.
  data.clear();
  state->window.give(piece.length);
}

Task<Result<void>> DataSink::flush() {
  ASSERT(state_ != nullptr);
  CO_TRY(co_await state_->window.take(kWindowBytes, context_.cancel));
  state_->window.give(kWindowBytes);
  if (state_->error) co_return *state_->error;
  co_return Result<void>{};
}

Task<void> DataSink::discard() {
  if (state_ == nullptr || state_->size == 0) co_return;
  co_await delete_all(std::move(state_));
}

Task<void> DataSink::delete_all(std::shared_ptr<State> state) {
  // Writes under way first: a write that overtakes its delete would stay forever.
  (void)co_await state->window.take(kWindowBytes);
  state->window.give(kWindowBytes);
  const bool unsure = state->error && client::outcome_unknown(state->error->code());
  const Result<void> deleted = co_await delete_chunks(state->core, {.id = state->id, .size = state->size});
  if (!deleted || unsure) {
    LOG(debug, "data of an uncommitted writer stays for a sweep: {}",
        deleted ? state->error->to_string() : deleted.error().to_string());
    state->session.leaked();
  }
  state->core.metrics.discarded.add();
}

Task<Result<void>> delete_chunks(const Base& base, DataRef data) {
  for (uint32_t number = 0; number < data.chunk_count(); ++number) {
    CO_TRY(co_await base.client.chunk_delete(data.id.chunk(number), base.background_call()));
  }
  co_return Result<void>{};
}

}  // namespace cairn::object
