// Latches: let only one of several conflicting batches be under way at a time.
//
// A batch with conditions reads the applied state, is proposed, waits for the log and is applied; what its conditions
// said must still be true when it is. So it holds latches on its keys from before the first read until it is applied.
// A latch on a key has two independent parts:
//
//   check    nobody else may change the key      (a condition names it)
//   change   nobody else may check the key       (a mutation names it)
//
// so that two batches conflict only when one of them checks what the other changes. Many uploads into one bucket, each
// with "the bucket exists" as a condition, run in parallel; and so do many unconditional writes of one key.
//
//   held        check     change    both
//   wanted check   yes     wait      wait
//          change  wait    yes       wait
//          both    wait    wait      wait
//
// Order: first come, first served on each key; nobody overtakes, so a bucket's removal (which changes what everybody
// checks) isn't starved. A request queues on all its keys at once. Deadlock is impossible: a request waits only for
// earlier ones, on every key, so the earliest that is not done can always go on.
//
// One thread. Cancelable while waiting.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "reactor/cancel.h"
#include "reactor/loop.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn::kv {

class Latches {
 private:
  struct Request;
  struct Slot;

 public:
  struct Want {
    std::string key;
    bool check = false;
    bool change = false;
  };

  // Holds latches until destroyed or released. Outlived by its Latches.
  class Guard {
   public:
    Guard() = default;
    Guard(Guard&& other) noexcept;
    Guard& operator=(Guard&& other) noexcept;
    ~Guard();
    void release();

   private:
    friend class Latches;
    Guard(Latches* latches, std::unique_ptr<Request> request);
    Latches* latches_ = nullptr;
    std::unique_ptr<Request> request_;
  };

  // At most `max_waiting` requests wait at a time.
  Latches(Loop& loop, size_t max_waiting) : loop_(loop), max_waiting_(max_waiting) {}
  Latches(const Latches&) = delete;
  Latches& operator=(const Latches&) = delete;
  // Nothing is held and nobody waits.
  ~Latches();

  // A key may be named several times. Errors: the token's reason; busy when too many wait.
  Task<Result<Guard>> acquire(std::vector<Want> wants, CancelToken cancel = {});

  size_t waiting() const { return waiting_; }
  // Keys that somebody holds or waits for.
  size_t keys() const { return keys_.size(); }

 private:
  struct Key {
    uint32_t checks_held = 0;
    uint32_t changes_held = 0;
    std::list<Slot*> waiting;  // in order of arrival
  };
  using Keys = std::map<std::string, Key, std::less<>>;

  // One key of one request. Its iterators stay valid: maps and lists don't move their elements.
  struct Slot {
    Request* request;
    Keys::iterator key;
    bool check;
    bool change;
    bool granted = false;
    std::list<Slot*>::iterator place;  // in key->second.waiting, unless granted
  };
  struct Request {
    explicit Request(Loop& loop) : granted(loop) {}
    std::vector<Slot> slots;
    size_t ungranted = 0;
    Event granted;
  };

  static std::vector<Want> merged(std::vector<Want> wants);
  static bool compatible(const Key& key, const Slot& slot);
  void enqueue(Request& request, std::vector<Want> wants);
  // Gives the key to as many of those who wait for it, from the front, as go together.
  static void serve(Key& key);
  void remove(Request& request);

  Loop& loop_;
  size_t max_waiting_;
  size_t waiting_ = 0;
  Keys keys_;
};

}  // namespace cairn::kv
