// A random workload with a model of what may be true, for tests with faults and crashes.
//
// One worker per key, so that what a key holds is known as long as everything is acknowledged. After an error both the
// state before and the state after are possible, until a read tells. Readers check that what they get is one of the
// possible states, whole.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "object/store_test_fixture.h"

namespace cairn::object {

class Workload {
 public:
  struct Body {
    size_t size = 0;
    uint64_t seed = 0;
    bool operator==(const Body&) const = default;
    std::string bytes() const { return pattern(size, seed); }
  };
  using State = std::optional<Body>;  // none: no object

  struct Env {
    TestLoop* loop = nullptr;
    mem::Pool* pool = nullptr;
    Store* store = nullptr;
  };

  Workload(size_t keys, std::vector<size_t> sizes) : sizes_(std::move(sizes)), possible_(keys, {State()}) {}

  size_t keys() const { return possible_.size(); }
  static std::string name(size_t key) { return "key/" + std::to_string(key); }
  bool stop = false;
  uint64_t operations = 0;
  uint64_t failures = 0;

  // Until `stop`.
  static Task<void> work(Workload* self, Env env, size_t key) {
    while (!self->stop) {
      ++self->operations;
      const uint64_t dice = env.loop->rng().below(10);
      if (dice < 5) {
        co_await self->put(env, key);
      } else if (dice < 6) {
        co_await self->multipart(env, key);
      } else if (dice < 8) {
        co_await self->remove(env, key);
      } else {
        co_await self->check(env, key, false);
      }
      if (env.loop->rng().chance(1, 3))
        (void)co_await env.loop->sleep(microseconds(static_cast<int64_t>(env.loop->rng().below(500))));
    }
  }
  // What the key holds must be possible; afterwards it is known.
  static Task<void> verify(Workload* self, Env env, size_t key) { co_await self->check(env, key, true); }

  // Chunks of everything that exists, when nothing is unsure any more.
  size_t live_objects() const {
    return static_cast<size_t>(std::ranges::count_if(possible_, [](const auto& states) {
      EXPECT_EQ(states.size(), 1u);
      return states.front().has_value();
    }));
  }
  uint64_t live_bytes() const {
    uint64_t bytes = 0;
    for (const auto& states : possible_) bytes += states.front() ? states.front()->size : 0;
    return bytes;
  }

 private:
  Body new_body(TestLoop& loop) { return {.size = sizes_[loop.rng().below(sizes_.size())], .seed = ++last_seed_}; }
  // After an operation that should lead to `after`.
  void settle(size_t key, const State& after, bool acknowledged) {
    if (acknowledged) {
      possible_[key] = {after};
    } else {
      ++failures;
      possible_[key].push_back(after);
    }
  }

  Task<void> put(Env env, size_t key) {
    const Body body = new_body(*env.loop);
    bool done = false;
    auto writer = co_await env.store->put("b", name(key), {});
    if (writer && co_await write_all(env.pool, writer->get(), body.bytes(), 128 << 10)) {
      if (env.loop->rng().chance(1, 20)) co_return;  // the client hung up: nothing has happened
      done = (co_await (*writer)->commit({.etag = "e"})).has_value();
    }
    settle(key, body, done);
  }

  Task<void> multipart(Env env, size_t key) {
    const Body body = new_body(*env.loop);
    if (body.size < 2) co_return;
    const std::string bytes = body.bytes();
    const auto upload = co_await env.store->create_upload("b", name(key), {}, {});
    if (!upload) co_return;
    ObjectStore::Completion completion{.etag = "m"};
    for (uint32_t number = 1; number <= 2; ++number) {
      const std::string part = number == 1 ? bytes.substr(0, body.size / 2) : bytes.substr(body.size / 2);
      auto writer = co_await env.store->put_part("b", name(key), *upload, number, {});
      if (!writer || !co_await write_all(env.pool, writer->get(), part, 128 << 10)) break;
      if (!co_await (*writer)->commit({.etag = std::to_string(number)})) break;
      completion.parts.push_back({.number = number, .etag = std::to_string(number)});
    }
    if (completion.parts.size() == 2 && !env.loop->rng().chance(1, 5)) {
      const bool done = (co_await env.store->complete_upload("b", name(key), *upload, completion, {})).has_value();
      settle(key, body, done);
      if (done) co_return;
    }
    if (env.loop->rng().chance(4, 5)) (void)co_await env.store->abort_upload("b", name(key), *upload, {});
  }

  Task<void> remove(Env env, size_t key) {
    settle(key, {}, (co_await env.store->remove("b", name(key), {}, {})).has_value());
  }

  Task<void> check(Env env, size_t key, bool must) {
    const auto body = co_await get(env.store, "b", name(key));
    if (!body && body.code() != Errc::not_found) {
      EXPECT_FALSE(must) << name(key) << ": " << body.error().to_string();
      EXPECT_NE(body.code(), Errc::corrupt) << body.error().to_string();
      co_return;
    }
    for (const State& state : possible_[key]) {
      const bool same = body ? state && state->size == body->size() && state->bytes() == *body : !state;
      if (!same) continue;
      possible_[key] = {State(state)};
      co_return;
    }
    ADD_FAILURE() << name(key)
                  << " holds what it can't: " << (body ? std::to_string(body->size()) + " bytes" : "nothing") << ", "
                  << possible_[key].size() << " states possible";
  }

  std::vector<size_t> sizes_;
  std::vector<std::vector<State>> possible_;
  uint64_t last_seed_ = 0;
};

}  // namespace cairn::object
