// DataSink: writes one run of data into chunks, a bounded window ahead of the caller.
//
// What it wrote is garbage until a record refers to it. When the sink dies before keep() or abandon(), it deletes it in
// the background, after the writes under way have ended.
#pragma once

#include <memory>
#include <optional>

#include "object/core.h"
#include "object/data_id.h"
#include "object/layout.h"
#include "object/session.h"
#include "reactor/sync.h"

namespace cairn::object {

class DataSink {
 public:
  // In flight at a time.
  static constexpr uint64_t kWindowBytes = 4 * uint64_t{kPieceBytes};

  // `context.cancel` outlives the sink.
  DataSink(Core& core, Session& session, DataId id, CallContext context);
  DataSink(const DataSink&) = delete;
  DataSink& operator=(const DataSink&) = delete;
  ~DataSink();

  // See Writer::write.
  Task<Result<void>> write(mem::BufChain data);
  // Everything that was written is durable.
  Task<Result<void>> flush();

  DataRef data() const;
  // A record refers to the data now.
  void keep();
  // Nobody knows whether one does: the data stays, and a sweep will decide.
  void abandon();
  // Deletes it now. Nothing may be written afterwards.
  Task<void> discard();

 private:
  // Shared with the writes under way.
  struct State {
    State(Core& c, Session& s, DataId data_id) : core(c), session(s), id(data_id), window(c.loop, kWindowBytes) {}
    Core& core;
    Session& session;
    DataId id;
    uint64_t size = 0;  // handed over, whether written or not
    Semaphore window;
    std::optional<Error> error;  // the first
  };
  static Task<void> write_piece(std::shared_ptr<State> state, Piece piece, mem::BufChain data, Time deadline);
  static Task<void> delete_all(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;  // null: nothing to clean up
  CallContext context_;
};

// Deletes all chunks of the data. Errors: of the first that could not be.
Task<Result<void>> delete_chunks(const Base& base, DataRef data);

}  // namespace cairn::object
