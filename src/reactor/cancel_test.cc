#include "reactor/cancel.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "reactor/deadline.h"
#include "reactor/sync.h"
#include "reactor/testing/test_loop.h"

namespace cairn {
namespace {

struct Note {
  std::string* log;
  char letter;
  static void write(void* self) {
    auto& note = *static_cast<Note*>(self);
    note.log->push_back(note.letter);
  }
};

TEST(Cancel, CallsBackInOrderAndOnce) {
  CancelSource source;
  std::string log;
  Note a{&log, 'a'}, b{&log, 'b'}, c{&log, 'c'};
  CancelCallback first(source, &Note::write, &a);
  CancelCallback second(source, &Note::write, &b);
  CancelCallback third(source, &Note::write, &c);
  second.reset();
  second.reset();
  EXPECT_FALSE(CancelToken(source).cancelled());
  source.cancel(Errc::timed_out);
  source.cancel(Errc::cancelled);  // too late to be the reason
  EXPECT_EQ(log, "ac");
  EXPECT_EQ(CancelToken(source).reason(), Errc::timed_out);
  const CancelCallback late(source, &Note::write, &a);
  EXPECT_EQ(log, "ac");
}

TEST(Cancel, ATokenOfNothingIsNeverCancelled) {
  const CancelToken token;
  std::string log;
  Note a{&log, 'a'};
  const CancelCallback callback(token, &Note::write, &a);
  EXPECT_FALSE(token.cancelled());
  EXPECT_EQ(token.reason(), Errc::ok);
}

struct Destroyer {
  std::unique_ptr<CancelCallback>* victim;
  static void destroy(void* self) { static_cast<Destroyer*>(self)->victim->reset(); }
};

TEST(Cancel, ACallbackMayDestroyOthersAndItself) {
  CancelSource source;
  std::string log;
  Note a{&log, 'a'};
  std::unique_ptr<CancelCallback> self, other;
  Destroyer destroy_other{&other}, destroy_self{&self};
  const CancelCallback first(source, &Destroyer::destroy, &destroy_other);
  self = std::make_unique<CancelCallback>(source, &Destroyer::destroy, &destroy_self);
  other = std::make_unique<CancelCallback>(source, &Note::write, &a);
  const CancelCallback last(source, &Note::write, &a);
  source.cancel();
  EXPECT_EQ(log, "a");
  EXPECT_EQ(self, nullptr);
}

Task<void> wait_for(Event* event, CancelToken token, std::string* log) {
  auto waited = co_await event->wait(token);
  *log += std::string(errc_name(waited.code())) + ";";
}

TEST(Deadline, EndsWaitsAtItsTime) {
  TestLoop loop;
  Event event(loop);
  std::string log;
  {
    Deadline deadline(loop, loop.now() + milliseconds(5));
    Scope scope(loop);
    scope.spawn(&wait_for, &event, deadline.token(), &log);
    loop.advance(milliseconds(4));
    EXPECT_EQ(log, "");
    loop.advance(milliseconds(1));
    EXPECT_EQ(log, "timed_out;");
  }
  {
    Deadline past(loop, loop.now());
    EXPECT_EQ(past.token().reason(), Errc::timed_out);
    Deadline none(loop, Time::never());
    loop.advance(seconds(1'000'000));
    EXPECT_FALSE(none.token().cancelled());
  }
}

TEST(Deadline, PassesItsParentsReasonOn) {
  TestLoop loop;
  CancelSource parent;
  Event event(loop);
  std::string log;
  {
    Deadline child(loop, loop.now() + seconds(1), parent);
    Deadline grandchild(loop, Time::never(), child.token());
    Scope scope(loop);
    scope.spawn(&wait_for, &event, grandchild.token(), &log);
    parent.cancel(Errc::closed);
    loop.run_ready_only();
    EXPECT_EQ(log, "closed;");
  }
  EXPECT_EQ(Deadline(loop, Time::never(), parent).token().reason(), Errc::closed);
}

Task<void> nap(Loop* loop, Duration delay, CancelToken token, std::string* log) {
  auto slept = co_await loop->sleep(delay, token);
  *log += std::string(errc_name(slept.code())) + "@" + std::to_string(loop->now().ns / 1'000'000) + ";";
}

TEST(Sleep, EndsByTimeOrByCancelling) {
  TestLoop loop;
  CancelSource source;
  std::string log;
  Scope scope(loop);
  scope.spawn(&nap, &loop, milliseconds(10), CancelToken(), &log);
  scope.spawn(&nap, &loop, milliseconds(20), CancelToken(source), &log);
  loop.advance(milliseconds(10));
  source.cancel();
  scope.spawn(&nap, &loop, milliseconds(30), CancelToken(source), &log);  // cancelled before it begins
  loop.run_until_idle();
  EXPECT_EQ(log, "ok@10;cancelled@10;cancelled@10;");
}

TEST(Sleep, FiringAndCancellingInOneRoundResumesOnce) {
  TestLoop loop;
  CancelSource source;
  std::string log;
  Scope scope(loop);
  scope.spawn(&nap, &loop, milliseconds(10), CancelToken(source), &log);
  // The timer fires and posts; the cancel comes before the coroutine runs.
  struct Canceller {
    static void fire(void* s) { static_cast<CancelSource*>(s)->cancel(); }
  };
  Timer canceller(&Canceller::fire, &source);
  loop.arm(canceller, loop.now() + milliseconds(10));
  loop.run_until_idle();
  EXPECT_EQ(log, "ok@10;");
}

}  // namespace
}  // namespace cairn
