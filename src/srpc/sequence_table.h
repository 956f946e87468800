// SequenceTable: what a server knows of calls that must not be executed twice: those that run, and the answers of those
// that have ended, until their client has them or has given them up.
//
// A call with a sequence (extensions.h) is one of a channel's numbered calls. What becomes of it when it arrives:
//
//   its number is          | then
//   -----------------------|---------------------------------------------------------------------------
//   running                | it waits for the answer of the execution that runs
//   answered, and kept     | it is given that answer
//   below the channel's floor | it is refused: it was answered, or given up by its client, and is forgotten
//   none of these          | it is executed
//
// Invariants, which together make a second execution impossible:
//   - all numbers below a channel's floor that are not in `records` are never executed (again); forgetting an answer
//     raises the floor above it
//   - a channel is forgotten whole only when nothing of it runs and no connection of it is open; for a channel that
//     isn't known the table takes a call only if it has forgotten none since that call was first sent, or since the
//     connection began on which it is sent for the first time. A repeat that it can't judge is refused.
//
// Bounded in answers and bytes for each channel, in bytes and channels altogether, and in time. Who acknowledges
// (Sequence::done_below) costs little more than what is under way.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/metrics.h"
#include "base/time.h"
#include "mem/buf_chain.h"
#include "reactor/loop.h"
#include "srpc/extensions.h"

namespace cairn::srpc {

class ServerCall;

struct SequenceLimits {
  uint32_t answers = 1024;                     // of one channel
  uint64_t channel_bytes = uint64_t{1} << 20;  // of these
  uint64_t bytes = uint64_t{16} << 20;         // of all; and an eighth of the pool at most
  uint32_t channels = 8192;                    // that have made such calls of late
  Duration keep = seconds(60);  // an answer, after it was given; what runs, after its connection was lost
};

struct SequenceMetrics {
  explicit SequenceMetrics(Registry& registry);

  Counter& repeats;    // that came; executed, answered or refused
  Counter& refused;    // of them: could have been executed before, and nobody knows
  Counter& forgotten;  // answers that made place or grew too old before their client acknowledged them
  Gauge& answers;
  Gauge& bytes;
};

class SequenceTable {
 public:
  class Channel;

  // The answer of a call, as often as it is asked for.
  struct Answer {
    uint16_t status = 0;
    uint32_t time_us = 0;
    std::vector<std::byte> metadata;
    mem::BufChain data;
  };

  struct Record {
    Record(Channel& its_channel, uint64_t its_number, MethodId its_method)
        : channel(its_channel), number(its_number), method(its_method) {}
    Channel& channel;
    const uint64_t number;
    const MethodId method;
    ServerCall* running = nullptr;     // null: answered
    std::vector<ServerCall*> waiting;  // repeats, for the answer of `running`
    Answer answer;
    size_t bytes = 0;  // that the answer costs
    Time answered;
    Record* older = nullptr;  // answered ones of all channels
    Record* newer = nullptr;
  };

  // One channel of a client.
  class Channel {
   public:
    explicit Channel(const Id128& id) : id_(id) {}
    const Id128& id() const { return id_; }

   private:
    friend class SequenceTable;
    const Id128 id_;
    std::map<uint64_t, Record> records_;
    uint64_t floor_ = 0;
    size_t connections_ = 0;
    size_t running_ = 0;
    size_t answers_ = 0;
    uint64_t bytes_ = 0;
    Time last_used_;
  };

  SequenceTable(Loop& loop, Registry& registry, const SequenceLimits& limits, size_t pool_bytes);
  SequenceTable(const SequenceTable&) = delete;
  SequenceTable& operator=(const SequenceTable&) = delete;
  // Nothing runs any more.
  ~SequenceTable();

  // For a connection that began at `began` and makes the first such call now. Null: it can't be taken, because the
  // channel may have been forgotten (`unknown`), or there are too many.
  Channel* join(const Sequence& sequence, Time began, bool& unknown);
  void leave(Channel& channel);

  // The record of a call that runs or whose answer is kept. Null, with `forgotten`: it must not be executed.
  Record* find(Channel& channel, const Sequence& sequence, bool& forgotten);
  // One that find() didn't know is executed now.
  Record& begin(Channel& channel, uint64_t number, MethodId method, ServerCall& call);
  // It has ended. The record may be gone afterwards.
  void end(Record& record, Answer&& answer);
  void count_refused() { metrics_.refused.add(); }

  // Forgets all answers, for good: the server ends.
  void clear();

  const SequenceLimits& limits() const { return limits_; }

 private:
  void acknowledge(Channel& channel, uint64_t done_below);
  void forget(Record& record);
  void drop(Record& record);
  bool forget_idle_channel();
  void forget_channel(std::map<Id128, Channel>::iterator at);
  void make_place(Channel& channel);
  static void on_timer(void* self) { static_cast<SequenceTable*>(self)->sweep(); }
  void sweep();

  Loop& loop_;
  const SequenceLimits limits_;
  SequenceMetrics metrics_;
  // By id, so that walking it doesn't follow addresses.
  std::map<Id128, Channel> channels_;
  // A channel was forgotten then: calls that could have been its must prove to be younger.
  Time last_forgotten_ = Time{INT64_MIN};
  Record* oldest_ = nullptr;  // of the answered ones
  Record* newest_ = nullptr;
  uint64_t bytes_ = 0;
  Timer timer_;
};

}  // namespace cairn::srpc
