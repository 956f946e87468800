#include "gateway/http/server.h"

#include <gtest/gtest.h>

#include <string>

#include "gateway/http/metrics.h"
#include "gateway/http/testing/client.h"
#include "gateway/http/testing/rig.h"

namespace cairn::http {
namespace {

using testing::Rig;
using testing::TestClient;
using testing::TestResponse;

// Answers by path: what the tests below need of a handler.
class TestHandler final : public Handler {
 public:
  explicit TestHandler(Rig& rig) : rig_(rig) {}

  Task<void> handle(Request& request, ResponseWriter& response) override {
    ++requests;
    const std::string_view path = request.path();
    if (path == "/echo") co_return co_await echo(request, response);
    if (path == "/store") co_return co_await store(request, response);
    if (path == "/load") co_return co_await load(response);
    if (path == "/refuse") {
      response.set_status(403);
      (void)co_await response.send("no\n");
    } else if (path == "/chunked") {
      (void)co_await response.begin_chunked();
      (void)co_await response.write("one ");
      (void)co_await response.write("two");
      (void)co_await response.finish();
    } else if (path == "/short") {
      (void)co_await response.begin(100);
      (void)co_await response.write("only this");
      response.abort();
    } else if (path == "/unfinished") {
      (void)co_await response.begin_chunked();
      (void)co_await response.write("only this");
    } else if (path == "/nothing") {
      // Returns without a word.
    } else if (path == "/split") {
      response.set_header("X-Bad", "a\r\nInjected: yes");
      (void)co_await response.send(std::string());
    } else if (path == "/wait") {
      waiting = true;
      (void)co_await rig_.reactor->sleep(milliseconds(50));
      (void)co_await response.send("waited");
    } else {
      (void)co_await response.send("hello");
    }
  }

  int requests = 0;
  bool waiting = false;
  mem::BufChain stored;
  Errc last_failure = Errc::ok;

 private:
  Task<void> echo(Request& request, ResponseWriter& response) {
    auto text = co_await request.read_all(1 << 20);
    if (!text) {
      last_failure = text.code();
      response.set_status(text.code() == Errc::timed_out ? 408 : text.code() == Errc::too_large ? 413 : 400);
      (void)co_await response.send(text.error().message());
      co_return;
    }
    (void)co_await response.send(*std::move(text));
  }
  Task<void> store(Request& request, ResponseWriter& response) {
    stored.clear();
    for (;;) {
      auto piece = co_await request.read(mem::kMaxBlock);
      if (!piece) {
        last_failure = piece.code();
        response.set_status(400);
        (void)co_await response.send(piece.error().message());
        co_return;
      }
      if (piece->empty()) break;
      stored.append(*std::move(piece));
    }
    (void)co_await response.send(std::to_string(stored.size()));
  }
  Task<void> load(ResponseWriter& response) { (void)co_await response.send(stored); }

  Rig& rig_;
};

class ServerTest : public ::testing::Test {
 public:
  void start(Options options = {}) {
    options.metrics_label = "listener=\"test\"";
    server = std::make_unique<Server>(Server::Context{*rig.reactor, *rig.pool, rig.registry, rig.wall_clock}, options,
                                      handler);
    auto opened = Listener::open(*rig.reactor, Address::loopback(0), {});
    ASSERT_TRUE(opened);
    listener = *std::move(opened);
  }
  // Runs `story(this)` beside the server, then stops the server.
  void tell(Task<void> (*story)(ServerTest*)) { rig.run(&ServerTest::with_server, this, story); }
  static Task<void> with_server(ServerTest* test, Task<void> (*story)(ServerTest*)) {
    Scope scope(*test->rig.reactor);
    scope.spawn(&Server::accept_from, test->server.get(), &test->listener);
    co_await story(test);
    co_await test->server->stop(seconds(1));
    test->listener.close();
    co_await scope.join();
  }
  Task<std::unique_ptr<TestClient>> client() {
    auto made = std::make_unique<TestClient>(*rig.reactor);
    auto connected = co_await made->connect(listener.local());
    EXPECT_TRUE(connected) << connected.error().to_string();
    co_return made;
  }
  std::string metrics() const { return Registry::expose({{&rig.registry, ""}}); }
  // The line "name{...reason...} 1" is there.
  bool closed_by(std::string_view reason, int times = 1) const {
    const std::string text = metrics();
    const std::string start =
        "http_connections_closed_total{listener=\"test\",reason=\"" + std::string(reason) + "\"} ";
    return text.find(start + std::to_string(times) + "\n") != std::string::npos;
  }

  Rig rig;
  TestHandler handler{rig};
  std::unique_ptr<Server> server;
  Listener listener;
};

TEST_F(ServerTest, KeepsConnectionsAndAnswersPipelinedRequestsInOrder) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    auto c = co_await t->client();
    (void)co_await c->send(
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
        "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
        "PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n"
        "\r\nGET /chunked HTTP/1.1\r\nHost: h\r\n\r\n"
        "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    for (const std::string expected : {"hello", "abc", "de", "one two", "hello"}) {
      auto r = co_await c->receive();
      EXPECT_TRUE(r);
      if (!r) co_return;
      EXPECT_EQ(r->status, 200);
      EXPECT_EQ(r->body, expected);
      EXPECT_EQ(r->header("date"), "Mon, 30 Nov 2026 08:00:00 GMT");
      EXPECT_EQ(r->header("server"), "Cairn");
    }
    EXPECT_TRUE(co_await c->at_end());
  });
  EXPECT_EQ(handler.requests, 5);
  EXPECT_TRUE(closed_by("not_kept"));
}

TEST_F(ServerTest, ReadsRequestsSplitAtEveryByte) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    const std::string request =
        "PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    auto c = co_await t->client();
    for (size_t split = 1; split < request.size(); ++split) {
      (void)co_await c->send(request.substr(0, split));
      co_await c->let_server_run();
      (void)co_await c->send(request.substr(split));
      auto r = co_await c->receive();
      EXPECT_TRUE(r) << split;
      if (!r) co_return;
      EXPECT_EQ(r->body, "hello world") << split;
    }
  });
}

TEST_F(ServerTest, SaysContinueOnlyWhenTheHandlerWantsTheBody) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    auto c = co_await t->client();
    (void)co_await c->send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    auto interim = co_await c->receive();
    EXPECT_EQ(interim->status, 100);
    (void)co_await c->send("ok");
    EXPECT_EQ((co_await c->receive())->body, "ok");
    // Refused: no "continue", and the connection can't go on, since nobody knows whether the body will come.
    (void)co_await c->send("PUT /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    auto refused = co_await c->receive();
    EXPECT_EQ(refused->status, 403);
    EXPECT_EQ(refused->header("connection"), "close");
    EXPECT_TRUE(co_await c->at_end());
  });
  EXPECT_TRUE(closed_by("unread_body"));
}

TEST_F(ServerTest, SkipsSmallUnreadBodiesAndClosesOnLargeOnes) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    auto c = co_await t->client();
    (void)co_await c->send("PUT /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x') +
                           "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ((co_await c->receive())->status, 403);
    EXPECT_EQ((co_await c->receive())->body, "hello");
    (void)co_await c->send("PUT /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n" +
                           std::string(100'000, 'x'));
    auto refused = co_await c->receive();
    // The answer arrives whole although the client is still sending.
    EXPECT_EQ(refused->status, 403);
    EXPECT_EQ(refused->body, "no\n");
    EXPECT_EQ(refused->header("connection"), "close");
    c->close();
  });
  EXPECT_TRUE(closed_by("unread_body"));
}

TEST_F(ServerTest, AnswersHeadAndOldClients) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    auto c = co_await t->client();
    (void)co_await c->send(
        "HEAD / HTTP/1.1\r\nHost: h\r\n\r\nHEAD /chunked HTTP/1.1\r\nHost: h\r\n\r\n"
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /chunked HTTP/1.0\r\n\r\n");
    auto r = co_await c->receive(true);
    EXPECT_EQ(r->header("content-length"), "5");
    r = co_await c->receive(true);
    EXPECT_EQ(r->header("transfer-encoding"), "chunked");
    r = co_await c->receive();
    EXPECT_EQ(r->header("connection"), "keep-alive");
    EXPECT_EQ(r->body, "hello");
    // 1.0 has no chunks: the end of the connection ends the body.
    r = co_await c->receive();
    EXPECT_EQ(r->header("transfer-encoding"), "");
    EXPECT_EQ(r->header("connection"), "close");
    EXPECT_EQ(r->body, "one two");
  });
}

TEST_F(ServerTest, CutsAnswersThatCannotBeFinished) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    for (const std::string path : {"/short", "/unfinished"}) {
      auto c = co_await t->client();
      (void)co_await c->send("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n");
      auto r = co_await c->receive();
      EXPECT_TRUE(r);
      EXPECT_EQ(r->body, "only this") << path;
      EXPECT_FALSE(r->complete) << path;
    }
    auto c = co_await t->client();
    (void)co_await c->send("GET /nothing HTTP/1.1\r\nHost: h\r\n\r\nGET /split HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ((co_await c->receive())->status, 500);
    auto r = co_await c->receive();
    EXPECT_EQ(r->header("x-bad"), "aInjected: yes");
    EXPECT_EQ(r->header("injected"), "");
  });
  EXPECT_TRUE(closed_by("aborted", 2));
}

TEST_F(ServerTest, AnswersMalformedHeadsWithTheReasonAndCloses) {
  start({.max_head_bytes = 4096});
  tell([](ServerTest* t) -> Task<void> {
    const struct {
      std::string text;
      int status;
      std::string reason;
    } cases[] = {
        {"GET / HTTP/1.1\nHost: h\n\n", 400, "LF"},
        {"GET / HTTP/1.1\r\n\r\n", 400, "Host"},
        {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
         "Transfer-Encoding"},
        {"GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(8192, 'a'), 431, "too long"},
        {std::string(8192, 'a'), 431, "too long"},
    };
    for (const auto& c : cases) {
      auto k = co_await t->client();
      (void)co_await k->send(c.text);
      auto r = co_await k->receive();
      EXPECT_TRUE(r) << c.reason;
      if (!r) continue;
      EXPECT_EQ(r->status, c.status);
      EXPECT_NE(r->body.find(c.reason), std::string::npos) << r->body;
      EXPECT_EQ(r->header("connection"), "close");
      EXPECT_TRUE(co_await k->at_end());
    }
  });
  EXPECT_TRUE(closed_by("bad_request", 3));
  EXPECT_TRUE(closed_by("head_too_large", 2));
  EXPECT_EQ(handler.requests, 0);
}

TEST_F(ServerTest, EndlessHeadsCostLittle) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    auto c = co_await t->client();
    (void)co_await c->send("GET / HTTP/1.1\r\nHost: h\r\nX-Endless: ");
    const std::string more(65536, 'a');
    // "10 GiB": until the server has had enough.
    uint64_t sent = 0;
    while (sent < uint64_t{10} << 30) {
      if (!co_await c->send(more)) break;
      sent += more.size();
    }
    EXPECT_LT(sent, uint64_t{512} << 20);
  });
  EXPECT_TRUE(closed_by("head_too_large"));
}

TEST_F(ServerTest, SlowHeadsAndIdleConnectionsEnd) {
  start({.head_time = milliseconds(120), .idle_time = milliseconds(60)});
  tell([](ServerTest* t) -> Task<void> {
    auto slow = co_await t->client();
    for (const char c :
         std::string("GET / HTTP/1.1\r\nHost: h\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")) {
      if (!co_await slow->send(std::string(1, c))) break;
      (void)co_await t->rig.reactor->sleep(milliseconds(5));
    }
    EXPECT_EQ((co_await slow->receive())->status, 408);
    EXPECT_TRUE(co_await slow->at_end());
    // Nothing at all is closed without an answer: there was no question.
    auto silent = co_await t->client();
    EXPECT_TRUE(co_await silent->at_end());
    auto idle = co_await t->client();
    (void)co_await idle->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ((co_await idle->receive())->body, "hello");
    EXPECT_TRUE(co_await idle->at_end());
  });
  EXPECT_TRUE(closed_by("head_timeout"));
  EXPECT_TRUE(closed_by("idle", 2));
}

TEST_F(ServerTest, BodiesThatDripEnd) {
  start({.stall_time = milliseconds(100)});
  tell([](ServerTest* t) -> Task<void> {
    auto c = co_await t->client();
    (void)co_await c->send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    // A byte now and then doesn't buy time.
    for (int i = 0; i < 200; ++i) {
      if (!co_await c->send("x")) break;
      (void)co_await t->rig.reactor->sleep(milliseconds(5));
      if (t->handler.last_failure != Errc::ok) break;
    }
    EXPECT_EQ((co_await c->receive())->status, 408);
  });
  EXPECT_EQ(handler.last_failure, Errc::timed_out);
  EXPECT_TRUE(closed_by("stalled"));
}

TEST_F(ServerTest, ClientsThatVanishInABodyAreNoticed) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    auto c = co_await t->client();
    (void)co_await c->send("PUT /store HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nabc");
    c->shutdown_send();
    EXPECT_EQ((co_await c->receive())->status, 400);
  });
  EXPECT_EQ(handler.last_failure, Errc::closed);
  EXPECT_TRUE(closed_by("client_gone"));
}

TEST_F(ServerTest, ClientsThatDoNotReadAreCut) {
  start({.stall_time = milliseconds(100), .send_bytes_per_second = 1 << 30});
  handler.stored = mem::BufChain();
  for (int i = 0; i < 16; ++i) handler.stored.append(*rig.pool->try_alloc(mem::kMaxBlock));
  tell([](ServerTest* t) -> Task<void> {
    auto c = co_await t->client();
    (void)co_await c->send("GET /load HTTP/1.1\r\nHost: h\r\n\r\n");
    while (t->handler.requests == 0 || t->server->connections() > 0)
      (void)co_await t->rig.reactor->sleep(milliseconds(5));
  });
  EXPECT_TRUE(closed_by("client_gone"));
  handler.stored.clear();
}

TEST_F(ServerTest, RefusesConnectionsOverTheLimit) {
  start({.max_connections = 1});
  tell([](ServerTest* t) -> Task<void> {
    auto first = co_await t->client();
    (void)co_await first->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ((co_await first->receive())->status, 200);
    auto second = co_await t->client();
    auto refused = co_await second->receive();
    EXPECT_EQ(refused->status, 503);
    EXPECT_TRUE(co_await second->at_end());
    second->close();
    // The first one isn't disturbed.
    (void)co_await first->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ((co_await first->receive())->status, 200);
  });
  EXPECT_TRUE(closed_by("too_many"));
}

TEST_F(ServerTest, StoppingEndsIdleConnectionsAndFinishesRequests) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    auto idle = co_await t->client();
    (void)co_await idle->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ((co_await idle->receive())->status, 200);
    auto busy = co_await t->client();
    (void)co_await busy->send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
    while (!t->handler.waiting) co_await busy->let_server_run();
    co_await t->server->stop(seconds(10));
    EXPECT_EQ((co_await busy->receive())->body, "waited");
    EXPECT_TRUE(co_await busy->at_end());
    EXPECT_TRUE(co_await idle->at_end());
  });
  EXPECT_TRUE(closed_by("stopped", 2));
}

TEST_F(ServerTest, PayloadIsNeverCopied) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    std::string payload(3 * mem::kMaxBlock, '\0');
    for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 7 + i / 251);
    auto c = co_await t->client();
    Scope scope(*t->rig.reactor);
    const std::string request =
        "PUT /store HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(payload.size()) + "\r\n\r\n" + payload;
    EXPECT_TRUE(co_await c->send(request));
    EXPECT_EQ((co_await c->receive())->body, std::to_string(payload.size()));
    for (const mem::Buf& buf : t->handler.stored.slices()) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buf.data()) % mem::kPage, 0u);
      EXPECT_EQ(buf.size() % mem::kPage, 0u);
    }
    (void)co_await c->send("GET /load HTTP/1.1\r\nHost: h\r\n\r\n");
    auto loaded = co_await c->receive();
    EXPECT_TRUE(loaded->body == payload);
    EXPECT_EQ(t->rig.pool->copied().value(), 0u);
  });
  handler.stored.clear();
}

TEST_F(ServerTest, BodiesWaitForBuffers) {
  start();
  tell([](ServerTest* t) -> Task<void> {
    // All buffers are taken: the request waits, and nobody is told an error.
    std::vector<mem::Buf> taken;
    while (auto buf = t->rig.pool->try_alloc(mem::kMaxBlock)) taken.push_back(*std::move(buf));
    auto c = co_await t->client();
    (void)co_await c->send("PUT /store HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    for (int i = 0; i < 10; ++i) co_await c->let_server_run();
    EXPECT_EQ(t->handler.stored.size(), 0u);
    taken.clear();
    EXPECT_EQ((co_await c->receive())->body, "3");
  });
  handler.stored.clear();
}

}  // namespace
}  // namespace cairn::http
