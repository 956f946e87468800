// ObjectWorkload: clients that put, overwrite, read, list and delete objects, in one piece and in parts, and check each
// answer against the model. Each client changes only its own keys, so that it always knows what they may hold; it reads
// everybody's. Races for one key are separate: several clients create it under a condition, and one must win.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "reactor/scope.h"
#include "scenarios/node_world.h"
#include "scenarios/object_model.h"

namespace cairn::scenarios {

class ObjectWorkload {
 public:
  explicit ObjectWorkload(NodeWorld& world);

  // Tries until it stands.
  Task<void> make_bucket();
  void start();
  void stop() { stop_->cancel(); }
  // Before calls outside start() and stop().
  void reset_stop() { stop_ = std::make_unique<CancelSource>(); }
  void join();

  // With nothing else going on: every key is what it may be, the listing is exactly what the keys are, and from then on
  // the model knows what it was unsure of.
  Task<void> check_everything();
  // One object and one delete for each key, without faults.
  Task<void> everything_works();
  Task<void> delete_everything();

 private:
  using Step = Task<void> (ObjectWorkload::*)(SeededRng& rng, uint32_t client);
  static Task<void> client(ObjectWorkload* self, uint32_t number, uint64_t seed);

  Task<void> put(SeededRng& rng, uint32_t client);
  Task<void> put_in_parts(SeededRng& rng, uint32_t client);
  Task<void> get(SeededRng& rng, uint32_t client);
  Task<void> remove(SeededRng& rng, uint32_t client);
  Task<void> list(SeededRng& rng, uint32_t client);
  Task<void> race(SeededRng& rng, uint32_t client);

  struct Attempt {
    uint64_t version = 0;
    Errc result = Errc::unknown;
    // The change was begun: after an error of the unknown kind it may have taken effect.
    bool committed = false;
  };
  Task<void> attempt_put(std::string key, uint64_t size, object::WriteConditions conditions, Attempt* attempt);
  Task<Result<void>> write_pieces(object::Writer& writer, uint64_t version, uint64_t size);
  Task<void> checked_get(std::string key, std::optional<object::ByteRange> range);
  Task<Result<void>> remove_key(std::string key);
  // What a change came to: the model learns it, and the error must have a cause.
  void conclude(const std::string& key, const Attempt& attempt);
  void check_error(Errc code, const std::string& what);
  void check_bytes(const std::string& key, const ObjectContent& content, uint64_t offset, const mem::BufChain& data);

  std::string own_key(SeededRng& rng, uint32_t client) const;
  std::string any_key(SeededRng& rng) const;
  object::CallContext context();

  NodeWorld& world_;
  uint32_t clients_;
  uint32_t keys_per_client_;
  bool small_objects_only_;
  Scope scope_;
  std::unique_ptr<CancelSource> stop_;
  ObjectModel model_;
  uint64_t races_ = 0;
};

}  // namespace cairn::scenarios
