// The HTTP server without TLS: its answers to correct and to malformed requests.
#include "wire/server/http_server.h"

#include "wire/gzip_text.h"
#include "wire/wire_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  ServerRoom room;
  TestClient client(room.port);
  client.send(get("/a?b=c%20d"));
  const api::Response first = client.answer();
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "GET /a?b=c%20d  by system:anonymous");
  EXPECT_EQ(first.header("content-type"), "text/plain");
  client.send(post("/b", "hello"));
  EXPECT_EQ(client.answer().body, "POST /b hello by system:anonymous");
}

std::string get_as_alice(ServerRoom& room) {
  TestClient client(room.port);
  client.send("GET /token HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n\r\n");
  return client.answer().body;
}

/// A token that was verified here is removed, as the handler may write down or pass on the headers that it sees.
TEST(HttpServer, ATokenThatWasRejectedGoesNoFurther) {
  for (const auto verified_at : {Authenticator::Tokens::kHere, Authenticator::Tokens::kHandler}) {
    HttpServer::Options options;
    options.authenticator = std::make_shared<Authenticator>(Authenticator::Options{
        .tokens = {{"alice", {"alice", "", {"system:authenticated"}}}}, .verified = verified_at});
    ServerRoom room(std::move(options));
    room.run([&] {
      room.handler.on("/token", [](ScriptedHandler::Seen& seen) {
        seen.sink->on_response({200, {}, seen.user.name + ":" + std::string(seen.request.header("authorization"))});
      });
    });
    EXPECT_EQ(get_as_alice(room),
              verified_at == Authenticator::Tokens::kHere ? "alice:" : "system:anonymous:Bearer alice");
  }
}

TEST(HttpServer, AddsTheHeadersEveryAnswerHas) {
  ServerRoom room;
  room.run([&] {
    room.handler.on("/own", [](ScriptedHandler::Seen& seen) {
      seen.sink->on_response(
          {201, {{"Audit-Id", "mine"}, {"Cache-Control", "public"}, {"Warning", "299 - \"a\r\nEvil: yes\""}}, ""});
    });
  });
  TestClient client(room.port);
  client.send(get("/a"));
  const api::Response added = client.answer();
  EXPECT_THAT(std::string(added.header("audit-id")),
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_EQ(added.header("cache-control"), "no-cache, private");
  EXPECT_THAT(std::string(added.header("date")), HasSubstr(" GMT"));
  client.send(get("/own"));
  const api::Response own = client.answer();
  EXPECT_EQ(own.status, 201);
  EXPECT_EQ(own.header("audit-id"), "mine");
  EXPECT_EQ(own.header("cache-control"), "public");
  EXPECT_EQ(own.header("evil"), "") << "a header value started a header of its own";
}

TEST(HttpServer, TakesChunkedBodies) {
  ServerRoom room;
  TestClient client(room.port);
  client.send("PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\n");
  client.send("de\r\n0\r\nAuthorization: Bearer trailer\r\n\r\n");
  EXPECT_EQ(client.answer().body, "PUT /c abcde by system:anonymous");
  client.send(get("/next"));
  EXPECT_EQ(client.answer().body, "GET /next  by system:anonymous");
}

TEST(HttpServer, TakesRequestsByteByByte) {
  ServerRoom room;
  TestClient client(room.port);
  for (const char c : post("/slow", "xyz")) client.send(std::string_view(&c, 1));
  EXPECT_EQ(client.answer().body, "POST /slow xyz by system:anonymous");
}

TEST(HttpServer, TakesChunksByteByByte) {
  const std::string text = "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string chunks : {"0\r\n\r\n", "3;x\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n0;y\r\nT: t\r\n\r\n"}) {
    RequestParser parser{RequestBounds()};
    std::string input;
    Result<RequestParser::Step> step = RequestParser::Step::kNeedMore;
    for (const char c : text + chunks) {
      input += c;
      step = parser.feed(input);
      ASSERT_TRUE(step) << step.error().text();
    }
    EXPECT_EQ(*step, RequestParser::Step::kDone) << chunks;
    EXPECT_EQ(parser.take().body, chunks.starts_with("0") ? "" : "abc");
  }
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  ServerRoom room;
  TestClient client(room.port);
  std::string all;
  constexpr int kRequests = 300;
  for (int i = 0; i < kRequests; ++i) all += post(fmt::format("/{}", i), "b");
  client.send(all);
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_EQ(client.answer().body, fmt::format("POST /{} b by system:anonymous", i));
  }
}

TEST(HttpServer, ContinuesWhenAsked) {
  ServerRoom room;
  TestClient client(room.port);
  client.send("POST /e HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_EQ(client.received, "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(client.answer().body, "POST /e ok by system:anonymous");
}

TEST(HttpServer, TakesAnAbsoluteTarget) {
  ServerRoom room;
  TestClient client(room.port);
  client.send(get("http://somewhere:80/path?q=1"));
  EXPECT_EQ(client.answer().body, "GET /path?q=1  by system:anonymous");
}

TEST(HttpServer, ClosesWhenTheClientAsks) {
  ServerRoom room;
  TestClient client(room.port);
  client.send(get("/a", "Connection: close\r\n"));
  const api::Response response = client.answer();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_FALSE(client.receive());
}

TEST(HttpServer, SpeaksHttp10WithoutChunks) {
  ServerRoom room;
  room.run([&] {
    room.handler.on("/stream", [](ScriptedHandler::Seen& seen) {
      seen.sink->on_stream({});
      EXPECT_TRUE(seen.sink->write(shared("one\n")));
      EXPECT_TRUE(seen.sink->write(shared("two\n")));
      seen.sink->on_end();
    });
  });
  TestClient client(room.port);
  client.send("GET /stream HTTP/1.0\r\n\r\n");
  client.drain();
  EXPECT_THAT(client.received, ::testing::EndsWith("\r\n\r\none\ntwo\n"));
  EXPECT_THAT(client.received, ::testing::Not(HasSubstr("chunked")));
}

TEST(HttpServer, HeadHasNoBody) {
  ServerRoom room;
  TestClient client(room.port);
  client.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n" + get("/b"));
  const api::Response head = client.answer(api::Method::kHead);
  EXPECT_EQ(head.header("content-length"), fmt::format("{}", std::string("HEAD /a  by system:anonymous").size()));
  EXPECT_EQ(client.answer().body, "GET /b  by system:anonymous");
}

TEST(HttpServer, CompressesLargeAnswersForClientsThatOfferIt) {
  ServerRoom room;
  const std::string body(200'000, 'z');
  room.run([&] {
    room.handler.on("/large", [&](ScriptedHandler::Seen& seen) { seen.sink->on_response({200, {}, body}); });
    room.handler.on("/small", [&](ScriptedHandler::Seen& seen) {
      seen.sink->on_response({200, {}, body.substr(0, 128 * 1024 - 1)});
    });
  });
  TestClient client(room.port);
  client.send(get("/large", "Accept-Encoding: br, gzip;q=0.5\r\n"));
  const api::Response packed = client.answer();
  EXPECT_EQ(packed.header("content-encoding"), "gzip");
  EXPECT_EQ(packed.header("vary"), "Accept-Encoding");
  EXPECT_LT(packed.body.size(), 10'000U);
  EXPECT_EQ(gunzip(packed.body), body);
  for (const char* offer : {"", "Accept-Encoding: br\r\n", "Accept-Encoding: gzip;q=0\r\n"}) {
    client.send(get("/large", offer));
    EXPECT_EQ(client.answer().body, body) << offer;
  }
  client.send(get("/small", "Accept-Encoding: gzip\r\n"));
  EXPECT_EQ(client.answer().header("content-encoding"), "");
}

TEST(HttpServer, LargeAnswersArriveWholePackedAndNot) {
  ServerRoom room;
  std::string body;
  for (unsigned i = 0; body.size() < 4'000'000; ++i) body += std::to_string(i * 2654435761U);
  room.run([&] {
    room.handler.on("/large", [&](ScriptedHandler::Seen& seen) { seen.sink->on_response({200, {}, body}); });
  });
  TestClient client(room.port);
  for (int round = 0; round < 2; ++round) {
    client.send(get("/large", "Accept-Encoding: gzip\r\n"));
    EXPECT_TRUE(gunzip(client.answer().body) == body);
    client.send(get("/large"));
    EXPECT_TRUE(client.answer().body == body);
  }
}

TEST(HttpServer, ClosesConnectionsThatKeepItWaiting) {
  HttpServer::Options options;
  options.limits.header_max = milliseconds(20);
  options.limits.body_max = milliseconds(20);
  options.limits.idle_max = milliseconds(20);
  ServerRoom room(std::move(options));
  for (const char* stuck :
       {"", "GET / HTTP/1.1\r\nHos", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"}) {
    TestClient client(room.port);
    client.send(stuck);
    client.drain();
    EXPECT_EQ(client.received, "") << stuck;
  }
}

TEST(HttpServer, ANewConnectionTakesThePlaceOfTheOldestThatHasShownNothing) {
  HttpServer::Options options;
  options.limits.connections = {
      .connections_max = 2, .unproven_max = 2, .unproven_per_address_max = 2, .ordinary_max = 2};
  ServerRoom room(std::move(options));
  TestClient first(room.port);
  auto second = std::make_unique<TestClient>(room.port);
  for (TestClient* client : {&first, second.get()}) {
    client->send(get("/"));
    EXPECT_EQ(client->answer().status, 200);
  }
  TestClient third(room.port);
  third.send(get("/"));
  EXPECT_EQ(third.answer().status, 200);
  EXPECT_FALSE(first.receive());
  second->send(get("/"));
  EXPECT_EQ(second->answer().status, 200);
}

TEST(HttpServer, AnswersForAHandlerThatDropsItsSink) {
  ServerRoom room;
  room.run([&] { room.handler.on("/lost", [](ScriptedHandler::Seen& seen) { seen.sink.reset(); }); });
  TestClient client(room.port);
  client.send(get("/lost"));
  const api::Response response = client.answer();
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(status_message(response), "the request was dropped without an answer");
}

TEST(HttpServer, SaysWhichPortIsTaken) {
  ServerRoom room;
  const Outcome second = room.run([&] {
    HttpServer::Options options;
    options.port = room.port;
    HttpServer server(room.loops.loop(), room.handler, options);
    return server.start();
  });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().text(), fmt::format("127.0.0.1:{}: address already in use", room.port));
}

TEST(HttpServer, RefusesAnAddressThatIsNone) {
  LoopRoom room;
  ScriptedHandler handler;
  const Outcome started = room.run([&] {
    HttpServer::Options options;
    options.address = "localhost";
    HttpServer server(room.loop(), handler, options);
    return server.start();
  });
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().text(), "localhost:0: \"localhost\" is not a numeric IP address");
}

TEST(HttpServer, StopEndsStreamsAndFinishesRequests) {
  ServerRoom room;
  Mailbox<bool> held;
  Mailbox<bool> stopped;
  std::shared_ptr<api::ResponseSink> watch;
  std::shared_ptr<api::ResponseSink> request;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      watch = seen.sink;
      watch->on_stream({});
      EXPECT_TRUE(watch->write(shared("event\n")));
    });
    room.handler.on("/hold", [&](ScriptedHandler::Seen& seen) {
      request = seen.sink;
      held.put(true);
    });
  });
  TestClient idle(room.port);
  idle.send(get("/"));
  EXPECT_EQ(idle.answer().status, 200);
  TestClient watcher(room.port);
  watcher.send(get("/watch"));
  ASSERT_TRUE(watcher.receive_until("event"));
  TestClient waiting(room.port);
  waiting.send(get("/hold"));
  ASSERT_TRUE(held.take());

  room.run([&] { room.server->stop(support::kPatience, [&] { stopped.put(true); }); });
  EXPECT_FALSE(idle.receive()) << "an idle connection is closed at once";
  watcher.drain();
  EXPECT_THAT(watcher.received, ::testing::EndsWith("event\n\r\n0\r\n\r\n")) << "the stream ends properly";
  room.run([&] {
    EXPECT_EQ(room.handler.abandoned.size(), 1U);
    request->on_response({200, {}, "finished"});
    request.reset();
    watch.reset();
  });
  const api::Response last = waiting.answer();
  EXPECT_EQ(last.body, "finished");
  EXPECT_EQ(last.header("connection"), "close");
  EXPECT_TRUE(stopped.take());
}

TEST(HttpServer, AStreamThatBeginsWhileItStopsEndsAtOnce) {
  ServerRoom room;
  Mailbox<bool> held;
  Mailbox<bool> stopped;
  std::shared_ptr<api::ResponseSink> watch;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      watch = seen.sink;
      held.put(true);
    });
  });
  TestClient watcher(room.port);
  watcher.send(get("/watch"));
  ASSERT_TRUE(held.take());
  room.run([&] {
    room.server->stop(support::kPatience, [&] { stopped.put(true); });
    watch->on_stream({});
    std::ignore = watch->write(shared("event\n"));  // in the same turn, as a watch with a pending event does
    watch->on_end();
  });
  watcher.drain();
  EXPECT_THAT(watcher.received, ::testing::EndsWith("\r\n\r\n0\r\n\r\n")) << "a head, and the end of the body";
  EXPECT_THAT(watcher.received, ::testing::Not(::testing::HasSubstr("0\r\n\r\n0\r\n"))) << "once";
  EXPECT_TRUE(stopped.take());
  room.run([&] { watch.reset(); });
}

TEST(HttpServer, StopDoesNotWaitLongerThanItsGrace) {
  ServerRoom room;
  Mailbox<bool> held;
  Mailbox<bool> stopped;
  std::shared_ptr<api::ResponseSink> request;
  room.run([&] {
    room.handler.on("/hold", [&](ScriptedHandler::Seen& seen) {
      request = seen.sink;
      held.put(true);
    });
  });
  TestClient waiting(room.port);
  waiting.send(get("/hold"));
  ASSERT_TRUE(held.take());
  room.run([&] { room.server->stop(milliseconds(10), [&] { stopped.put(true); }); });
  EXPECT_TRUE(stopped.take());
  EXPECT_EQ(waiting.answer().status, 0);
  room.run([&] {
    EXPECT_EQ(room.handler.abandoned.size(), 1U);
    request.reset();
  });
}

TEST(HttpServer, ServesManyConnectionsOnSeveralThreads) {
  HttpServer::Options options;
  options.threads = 3;
  ServerRoom room(std::move(options));
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 60; ++i) clients.push_back(std::make_unique<TestClient>(room.port));
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < clients.size(); ++i) clients[i]->send(post(fmt::format("/{}", i), "x"));
    for (std::size_t i = 0; i < clients.size(); ++i) {
      ASSERT_EQ(clients[i]->answer().body, fmt::format("POST /{} x by system:anonymous", i));
    }
  }
}

}  // namespace
}  // namespace spillway::wire
