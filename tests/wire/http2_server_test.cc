// The HTTP server over TLS with clients of HTTP/2: requests beside each other, each stream with its own flow, and what
// clients get that make work and ask nothing.
#include "wire/http2_client.h"
#include "wire/temp_folder.h"
#include "wire/tls/certificate_authority.h"
#include "wire/wire_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kCalm = NGHTTP2_ENHANCE_YOUR_CALM;
constexpr std::size_t kMebibyte = std::size_t{1024} * 1024;

const Http2Client::Fields kAlice = {{"authorization", "Bearer alice"}};

class Http2Server : public ::testing::Test {
 protected:
  Http2Server() : authority_(*CertificateAuthority::open(folder_ / "pki", runtime::Loop().now().wall)) {
    const CertificateRequest request{CertificateRequest::Use::kServer, "apiserver", {}, {"127.0.0.1"}};
    auto identity = authority_.issue(request, runtime::Loop().now().wall);
    EXPECT_TRUE(identity);
    server_tls_ = *TlsContext::make_server({*identity, authority_.certificate_pem(), Protocols::kHttp2AndHttp11});
    client_tls_ = *TlsContext::make_client(
        {.authority_pem = authority_.certificate_pem(), .identity = {}, .protocols = Protocols::kHttp2AndHttp11});
  }

  /// The limits of a server that closes no connection for its silence.
  static HttpLimits patient() {
    HttpLimits limits;
    limits.unproven_idle_max = limits.idle_max = limits.header_max = minutes(5);
    return limits;
  }

  ServerRoom& serve(HttpLimits limits = {}, double goaway_chance = 0) {
    HttpServer::Options options;
    options.threads = 2;
    options.goaway_chance = goaway_chance;
    options.tls = server_tls_;
    options.limits = limits;
    options.metrics = &metrics_;
    options.authenticator = std::make_shared<Authenticator>(
        Authenticator::Options{.tokens = {{"alice", {"alice", "", {"system:authenticated"}}}}});
    room_ = std::make_unique<ServerRoom>(std::move(options));
    return *room_;
  }

  Http2Client client() const { return {room_->port, *client_tls_}; }

  /// A client that writes its frames itself.
  std::unique_ptr<TestClient> raw() const {
    auto made = std::make_unique<TestClient>(room_->port, client_tls_.get());
    EXPECT_EQ(made->stream().protocol(), "h2");
    made->send(preface());
    return made;
  }

  /// The error code of the GOAWAY at the end of the connection; nullopt: there was none.
  static std::optional<std::uint32_t> end_of(TestClient& client) {
    client.drain();
    std::optional<std::uint32_t> code;
    std::string_view left = client.received;
    while (left.size() >= 9) {
      const auto byte = [&](std::size_t at) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(left[at]));
      };
      const std::size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
      if (left.size() < 9 + size) break;
      if (byte(3) == static_cast<std::uint32_t>(FrameType::kGoAway))
        code = byte(13) << 24 | byte(14) << 16 | byte(15) << 8 | byte(16);
      left.remove_prefix(9 + size);
    }
    return code;
  }

  /// True if the client still gets answers.
  static bool lives(TestClient& client) {
    client.send(frame_of(FrameType::kPing, 0, 0, "12345678"));
    return client.receive_until(frame_of(FrameType::kPing, 1, 0, "12345678"));
  }

  TempFolder folder_;
  CertificateAuthority authority_;
  std::shared_ptr<const TlsContext> server_tls_;
  std::shared_ptr<const TlsContext> client_tls_;
  telemetry::Registry metrics_;
  std::unique_ptr<ServerRoom> room_;
};

TEST_F(Http2Server, AnswersAndKeepsTheConnection) {
  serve();
  Http2Client client = this->client();
  EXPECT_EQ(client.protocol(), "h2");
  const auto& first = client.answer(client.ask("GET", "/a?b=c%20d", kAlice));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "GET /a?b=c%20d  by alice");
  EXPECT_EQ(first.fields.at("content-type"), "text/plain");
  EXPECT_EQ(first.fields.at("content-length"), "24");
  EXPECT_EQ(first.fields.at("cache-control"), "no-cache, private");
  EXPECT_FALSE(first.fields.at("audit-id").empty());
  EXPECT_THAT(first.fields.at("date"), HasSubstr(" GMT"));
  EXPECT_FALSE(first.fields.contains("connection"));
  const auto& second = client.answer(client.ask("POST", "/b", kAlice, "hello"));
  EXPECT_EQ(second.body, "POST /b hello by alice");
  const auto& head = client.answer(client.ask("HEAD", "/c", kAlice));
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.fields.at("content-length"), "17");
  EXPECT_FALSE(client.went_away);
}

TEST_F(Http2Server, WhoOffersHttp11GetsThat) {
  serve();
  const auto tls = *TlsContext::make_client({.authority_pem = authority_.certificate_pem(), .identity = {}});
  TestClient client(room_->port, tls.get());
  EXPECT_NE(client.stream().protocol(), "h2");
  client.send(get("/a", "Authorization: Bearer alice\r\n"));
  EXPECT_EQ(client.answer().body, "GET /a  by alice");
}

TEST_F(Http2Server, RequestsAreAnsweredBesideEachOther) {
  ServerRoom& room = serve();
  std::shared_ptr<api::ResponseSink> late;
  room.run([&] { room.handler.on("/late", [&](ScriptedHandler::Seen& seen) { late = seen.sink; }); });
  Http2Client client = this->client();
  const std::int32_t waits = client.ask("GET", "/late", kAlice);
  for (int i = 0; i < 250; ++i)
    ASSERT_EQ(client.answer(client.ask("GET", fmt::format("/{}", i), kAlice)).body,
              fmt::format("GET /{}  by alice", i));
  room.run([&] { std::exchange(late, nullptr)->on_response({200, {}, "at last"}); });
  EXPECT_EQ(client.answer(waits).body, "at last");
}

TEST_F(Http2Server, RequestsOfATurnCrossTogetherAndSoDoTheirAnswers) {
  ServerRoom& room = serve();
  Http2Client client = this->client();
  EXPECT_EQ(client.answer(client.ask("GET", "/first", kAlice)).status, 200);
  const HttpServer::Crossings before = room.run([&] { return room.server->crossings(); });
  constexpr std::uint64_t kRequests = 50;
  std::vector<std::int32_t> asked;
  client.cork();
  for (std::uint64_t i = 0; i < kRequests; ++i) asked.push_back(client.ask("GET", "/x", kAlice));
  client.uncork();
  for (const std::int32_t stream : asked) EXPECT_EQ(client.answer(stream).status, 200);
  const HttpServer::Crossings after = room.run([&] { return room.server->crossings(); });
  EXPECT_EQ(after.requests - before.requests, kRequests);
  EXPECT_EQ(after.request_tasks - before.request_tasks, 1U);
  EXPECT_EQ(after.answer_tasks - before.answer_tasks, 1U);
}

TEST_F(Http2Server, EventsOfATurnCrossOncePerThread) {
  ServerRoom& room = serve();
  std::vector<std::shared_ptr<api::ResponseSink>> watches;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      seen.sink->on_stream({200, {}, {}});
      watches.push_back(seen.sink);
    });
  });
  const auto watch = [&](Http2Client& client, std::size_t count) {
    std::vector<std::int32_t> streams;
    const std::size_t wanted = room.run([&] { return watches.size(); }) + count;
    for (std::size_t i = 0; i < count; ++i) streams.push_back(client.ask("GET", "/watch", kAlice));
    EXPECT_EQ(client.answer(client.ask("GET", "/x", kAlice)).status, 200);  // sent after the watches
    EXPECT_EQ(room.run([&] { return watches.size(); }), wanted);
    return streams;
  };
  const auto crossings = [&] { return room.run([&] { return room.server->crossings().answer_tasks; }); };
  const auto write_from = [&](std::size_t first) {
    room.run([&, chunk = shared("line\n")] {
      for (std::size_t i = first; i < watches.size(); ++i) EXPECT_TRUE(watches[i]->write(chunk));
    });
  };
  Http2Client busy = client();
  const auto its = watch(busy, 40);
  // Both connections are given to the thread with less load.
  Http2Client second = client();
  const auto seconds_streams = watch(second, 5);
  Http2Client third = client();
  const auto thirds_streams = watch(third, 5);
  const auto before = crossings();
  write_from(40);
  for (const std::int32_t stream : seconds_streams) EXPECT_EQ(second.body_of(stream, 5).body, "line\n");
  for (const std::int32_t stream : thirds_streams) EXPECT_EQ(third.body_of(stream, 5).body, "line\n");
  const auto between = crossings();
  EXPECT_EQ(between - before, 1U);
  write_from(0);
  for (const std::int32_t stream : its) EXPECT_EQ(busy.body_of(stream, 5).body, "line\n");
  for (const std::int32_t stream : thirds_streams) EXPECT_EQ(third.body_of(stream, 10).body, "line\nline\n");
  EXPECT_EQ(crossings() - between, 2U);
  room.run([&] { watches.clear(); });
}

TEST_F(Http2Server, AnUnluckyClientReconnectsAfterItsAnswer) {
  serve({}, 1);
  Http2Client client = this->client();
  EXPECT_EQ(client.answer(client.ask("GET", "/a", kAlice)).body, "GET /a  by alice");
  client.drain();
  EXPECT_TRUE(client.went_away);
  EXPECT_EQ(client.answer(client.ask("GET", "/b", kAlice)).status, 0);
}

TEST_F(Http2Server, StopsWhileAnswersAreOnTheirWay) {
  ServerRoom& room = serve();
  std::vector<std::shared_ptr<api::ResponseSink>> sinks;
  room.run([&] { room.handler.on("/late", [&](ScriptedHandler::Seen& seen) { sinks.push_back(seen.sink); }); });
  Http2Client client = this->client();
  std::vector<std::int32_t> asked;
  for (int i = 0; i < 20; ++i) asked.push_back(client.ask("GET", "/late", kAlice));
  EXPECT_EQ(client.answer(client.ask("GET", "/x", kAlice)).status, 200);
  room.run([&] {
    for (const auto& sink : sinks) sink->on_response({200, {}, "done"});
    room.server.reset();  // before the end of the turn
    sinks.clear();
  });
  client.drain();
  for (const std::int32_t stream : asked) EXPECT_EQ(client.answer(stream).status, 0);
}

TEST_F(Http2Server, BodiesBeyondTheWindowsArrive) {
  ServerRoom& room = serve();
  room.run([&] {
    room.handler.on("/count", [](ScriptedHandler::Seen& seen) {
      seen.sink->on_response({200, {}, fmt::format("{}", seen.request.body.size())});
    });
  });
  Http2Client client = this->client();
  const std::int32_t first = client.ask("POST", "/count", kAlice, std::string(5 * kMebibyte / 2, 'x'));
  const std::int32_t second = client.ask("PUT", "/count", kAlice, std::string(kMebibyte, 'y'));
  EXPECT_EQ(client.answer(first).body, fmt::format("{}", 5 * kMebibyte / 2));
  EXPECT_EQ(client.answer(second).body, fmt::format("{}", kMebibyte));
}

TEST_F(Http2Server, ABodyThatIsTooLargeIsNotWaitedFor) {
  serve();
  Http2Client client = this->client();
  const auto& refused = client.answer(client.ask("POST", "/a", kAlice, std::string(4 * kMebibyte, 'x')));
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.code, NGHTTP2_NO_ERROR);
  EXPECT_EQ(client.answer(client.ask("GET", "/b", kAlice)).status, 200) << "it cost the stream only";
}

/// All streams share the window of the connection: a refused body gives it back.
TEST_F(Http2Server, RefusedBodiesTakeNoRoomFromOthers) {
  HttpLimits limits;
  limits.request.body_bytes_max = 20'000;
  serve(limits);
  Http2Client client = this->client();
  for (int i = 0; i < 150; ++i)
    ASSERT_EQ(client.answer(client.ask("POST", "/a", kAlice, std::string(40'000, 'x'))).status, 413) << i;
  EXPECT_EQ(client.answer(client.ask("POST", "/b", kAlice, std::string(20'000, 'y'))).status, 200);
}

TEST_F(Http2Server, LargeAnswersArePackedAndWhole) {
  ServerRoom& room = serve();
  const std::string large(3 * kMebibyte, 'z');
  room.run([&] {
    room.handler.on("/large", [&](ScriptedHandler::Seen& seen) { seen.sink->on_response({200, {}, large}); });
  });
  Http2Client client = this->client();
  EXPECT_EQ(client.answer(client.ask("GET", "/large", kAlice)).body, large);
  Http2Client::Fields packs = kAlice;
  packs.emplace_back("accept-encoding", "gzip");
  const auto& packed = client.answer(client.ask("GET", "/large", packs));
  EXPECT_EQ(packed.fields.at("content-encoding"), "gzip");
  EXPECT_FALSE(packed.fields.contains("content-length"));
  EXPECT_LT(packed.body.size(), large.size() / 100);
}

/// The window of the watch is shut; a heartbeat on the same connection is answered all the same.
TEST_F(Http2Server, AnUnreadWatchDelaysNoOtherStream) {
  ServerRoom& room = serve();
  std::shared_ptr<api::ResponseSink> watch;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      watch = seen.sink;
      watch->on_stream({200, {{"Content-Type", "application/json"}}, ""});
      for (int i = 0; i < 16; ++i) EXPECT_TRUE(watch->write(shared(std::string(64 * 1024, 'e'))));
    });
  });
  Http2Client client = this->client();
  const std::int32_t watching = client.ask("GET", "/watch", kAlice);
  client.hold(watching);
  EXPECT_EQ(client.body_of(watching, 60'000).status, 200);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.answer(client.ask("PUT", "/lease", kAlice, "{}")).status, 200);
  EXPECT_LT(client.body_of(watching, 0).body.size(), 70'000u) << "more came than there was room for";
  room.run([&] { watch = nullptr; });
}

TEST_F(Http2Server, OnlyTheStreamThatIsNotTakenIsCut) {
  HttpLimits limits;
  limits.stalled_max = limits.stalled_pressed_max = milliseconds(300);
  ServerRoom& room = serve(limits);
  std::shared_ptr<api::ResponseSink> watch;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      watch = seen.sink;
      watch->on_stream({200, {}, ""});
      for (int i = 0; i < 4; ++i) EXPECT_TRUE(watch->write(shared(std::string(64 * 1024, 'e'))));
    });
  });
  Http2Client client = this->client();
  const std::int32_t watching = client.ask("GET", "/watch", kAlice);
  client.hold(watching);
  EXPECT_EQ(client.answer(watching).code, NGHTTP2_CANCEL);
  EXPECT_EQ(client.answer(client.ask("GET", "/b", kAlice)).status, 200);
  room.run([&] { watch = nullptr; });
}

TEST_F(Http2Server, AStreamEndsWithItsAnswer) {
  ServerRoom& room = serve();
  room.run([&] {
    room.handler.on("/log", [](ScriptedHandler::Seen& seen) {
      seen.sink->on_stream({200, {}, ""});
      EXPECT_TRUE(seen.sink->write(shared("one\n")));
      EXPECT_TRUE(seen.sink->write(shared("two\n")));
      seen.sink->on_end();
    });
  });
  Http2Client client = this->client();
  const auto& log = client.answer(client.ask("GET", "/log", kAlice));
  EXPECT_EQ(log.body, "one\ntwo\n");
  EXPECT_EQ(log.code, NGHTTP2_NO_ERROR);
}

TEST_F(Http2Server, WhatIsTakenBackIsAbandoned) {
  ServerRoom& room = serve();
  Mailbox<bool> asked;
  Mailbox<bool> abandoned;
  std::shared_ptr<api::ResponseSink> sink;
  room.run([&] {
    room.handler.on("/late", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      asked.put(true);
    });
    room.handler.when_abandoned = [&] { abandoned.put(true); };
  });
  Http2Client client = this->client();
  const std::int32_t stream = client.ask("GET", "/late", kAlice);
  asked.take();
  client.reset(stream);
  EXPECT_TRUE(abandoned.take());
  EXPECT_EQ(client.answer(client.ask("GET", "/b", kAlice)).status, 200);
  room.run([&] { sink = nullptr; });
}

/// A new connection for each request costs the client more than the server.
TEST_F(Http2Server, WhoHasShownNothingAsksOnce) {
  serve();
  for (const Http2Client::Fields& shown : {Http2Client::Fields{}, {{"authorization", "Bearer bad"}}}) {
    Http2Client client = this->client();
    const auto& answer = client.answer(client.ask("GET", "/a", shown));
    EXPECT_EQ(answer.status, shown.empty() ? 200 : 401);
    EXPECT_EQ(client.went_away, NGHTTP2_NO_ERROR) << "with the answer, not when it has been idle";
    client.drain();
  }
}

TEST_F(Http2Server, EndsStreamsAndFinishesRequestsWhenItStops) {
  ServerRoom& room = serve();
  std::vector<std::shared_ptr<api::ResponseSink>> sinks;
  Mailbox<bool> both;
  room.run([&] {
    const auto keep = [&](ScriptedHandler::Seen& seen) {
      if (seen.request.target == "/watch") seen.sink->on_stream({200, {}, ""});
      sinks.push_back(seen.sink);
      if (sinks.size() == 2) both.put(true);
    };
    room.handler.on("/watch", keep);
    room.handler.on("/late", keep);
  });
  Http2Client client = this->client();
  const std::int32_t watch = client.ask("GET", "/watch", kAlice);
  const std::int32_t late = client.ask("GET", "/late", kAlice);
  both.take();
  Mailbox<bool> stopped;
  room.run([&] { room.server->stop(support::kPatience, [&] { stopped.put(true); }); });
  EXPECT_EQ(client.answer(watch).code, NGHTTP2_NO_ERROR);
  EXPECT_EQ(client.went_away, NGHTTP2_NO_ERROR);
  room.run([&] {
    for (const auto& sink : sinks) sink->on_response({200, {}, "done"});
    sinks.clear();
  });
  EXPECT_EQ(client.answer(late).body, "done");
  EXPECT_TRUE(stopped.take());
}

TEST_F(Http2Server, AStreamThatBeginsWhileItStopsEndsAtOnce) {
  ServerRoom& room = serve();
  std::shared_ptr<api::ResponseSink> watch;
  Mailbox<bool> held;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      watch = seen.sink;
      held.put(true);
    });
  });
  Http2Client client = this->client();
  const std::int32_t stream = client.ask("GET", "/watch", kAlice);
  held.take();
  Mailbox<bool> stopped;
  room.run([&] {
    room.server->stop(support::kPatience, [&] { stopped.put(true); });
    watch->on_stream({200, {}, ""});
    std::ignore = watch->write(std::make_shared<const std::string>("event\n"));
  });
  EXPECT_EQ(client.answer(stream).status, 200);
  EXPECT_TRUE(client.answer(stream).closed) << "before the connection was";
  EXPECT_TRUE(stopped.take());
  room.run([&] {
    EXPECT_EQ(room.handler.abandoned.size(), 1U);
    watch.reset();
  });
}

TEST_F(Http2Server, HeadsThatAreTooLargeAreRefused) {
  serve();
  Http2Client client = this->client();
  Http2Client::Fields many = kAlice;
  for (int i = 0; i < 300; ++i) many.emplace_back(fmt::format("x-{}", i), "1");
  EXPECT_EQ(client.answer(client.ask("GET", "/a", many)).status, 431);
  EXPECT_EQ(client.answer(client.ask("GET", "/b", kAlice)).status, 200);
}

/// A request that was reset and is still worked on counts as well.
TEST_F(Http2Server, WhoTakesBackIsNotGivenMoreWork) {
  ServerRoom& room = serve();
  std::vector<std::shared_ptr<api::ResponseSink>> sinks;
  room.run([&] { room.handler.on("/late", [&](ScriptedHandler::Seen& seen) { sinks.push_back(seen.sink); }); });
  Http2Client client = this->client();
  for (int i = 1; i <= 110; ++i) {
    const std::int32_t stream = client.ask("GET", "/late", kAlice);
    while (i <= 101 && room.run([&] { return sinks.size(); }) < static_cast<std::size_t>(i)) std::this_thread::yield();
    client.reset(stream);
  }
  EXPECT_EQ(client.answer(client.ask("GET", "/a", kAlice)).code, NGHTTP2_REFUSED_STREAM);
  room.run([&] {
    EXPECT_EQ(sinks.size(), 101u);
    sinks.clear();
  });
}

TEST_F(Http2Server, TakesFramesByteByByte) {
  serve();
  auto client = raw();
  for (const char c : get_frame(1)) client->send(std::string_view(&c, 1));
  EXPECT_TRUE(client->receive_until("GET /  by system:anonymous"));
}

TEST_F(Http2Server, WhatIsNoHttp2IsClosed) {
  serve(patient());
  TestClient client(room_->port, client_tls_.get());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.drain();
  EXPECT_THAT(client.received, ::testing::Not(HasSubstr("HTTP/1.1")));
}

/// The number of frames that is allowed, and one that is not.
struct Flood {
  std::string_view name;
  std::string frame;
  int allowed;
  int refused;
};

class Http2Floods : public Http2Server, public ::testing::WithParamInterface<Flood> {};

TEST_P(Http2Floods, AreDistinguishedFromUse) {
  serve();
  const auto send = [&](TestClient& client, int frames) {
    client.send(frame_of(FrameType::kHeaders, kEndHeaders, 1, kGetHead));  // a request whose body follows later
    std::string all;
    for (int i = 0; i < frames; ++i) all += GetParam().frame;
    client.send(all);
  };
  auto user = raw();
  send(*user, GetParam().allowed);
  EXPECT_TRUE(lives(*user));
  auto attacker = raw();
  send(*attacker, GetParam().refused);
  EXPECT_EQ(end_of(*attacker), kCalm);
}

const std::string kPayloadOfPing = "12345678";

INSTANTIATE_TEST_SUITE_P(
    Frames, Http2Floods,
    ::testing::Values(Flood{"Pings", frame_of(FrameType::kPing, 0, 0, kPayloadOfPing), 90, 150},
                      Flood{"Settings", frame_of(FrameType::kSettings, 0, 0, ""), 3, 20},
                      Flood{"EmptyData", frame_of(FrameType::kData, 0, 1, ""), 10, 20},
                      Flood{"Priorities", frame_of(FrameType::kPriority, 0, 1, big_endian(0) + "x"), 190, 300},
                      Flood{"WindowUpdates", frame_of(FrameType::kWindowUpdate, 0, 0, big_endian(1)), 100, 200}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(Http2Server, RapidResetsEndTheConnection) {
  ServerRoom& room = serve();
  const auto resets = [&](int streams) {
    auto client = raw();
    std::string all;
    for (int i = 0; i < streams; ++i) {
      const auto id = static_cast<std::uint32_t>(2 * i + 1);
      all += get_frame(id) + frame_of(FrameType::kReset, 0, id, big_endian(NGHTTP2_CANCEL));
    }
    client->send(all);
    return client;
  };
  EXPECT_EQ(end_of(*resets(400)), kCalm);
  static_cast<void>(room);
}

TEST_F(Http2Server, StoppedWatchesAreNoFlood) {
  ServerRoom& room = serve();
  std::shared_ptr<api::ResponseSink> watch;  // the server ends none itself: the one before has been stopped
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      watch = seen.sink;
      watch->on_stream({200, {}, ""});
      EXPECT_TRUE(watch->write(shared("event\n")));
    });
  });
  Http2Client client = this->client();
  for (int i = 0; i < 400; ++i) {
    const std::int32_t stream = client.ask("GET", "/watch", kAlice);
    ASSERT_EQ(client.body_of(stream, 1).status, 200) << "watch " << i;
    client.reset(stream);
  }
  EXPECT_EQ(client.answer(client.ask("GET", "/a", kAlice)).status, 200);
  room.run([&] { watch = nullptr; });
}

TEST_F(Http2Server, EndlessHeadsEndTheConnection) {
  serve(patient());
  auto client = raw();
  std::string all = frame_of(FrameType::kHeaders, kEndStream, 1, kGetHead);
  for (int i = 0; i < 20; ++i) all += frame_of(FrameType::kContinuation, 0, 1, std::string("\x00\x01y\x01z", 5));
  client->send(all);
  client->drain();
  EXPECT_FALSE(lives(*client));
}

TEST_F(Http2Server, MoreStreamsThanAllowedAreRefusedOneByOne) {
  ServerRoom& room = serve();
  std::vector<std::shared_ptr<api::ResponseSink>> sinks;
  room.run([&] { room.handler.on("/late", [&](ScriptedHandler::Seen& seen) { sinks.push_back(seen.sink); }); });
  Http2Client client = this->client();
  std::vector<std::int32_t> streams;
  for (int i = 0; i < 100; ++i) streams.push_back(client.ask("GET", "/late", kAlice));
  const std::int32_t one_more = client.ask("GET", "/a", kAlice);
  while (room.run([&] { return sinks.size(); }) < 100) client.ping_and_wait();
  room.run([&] {
    for (const auto& sink : std::exchange(sinks, {})) sink->on_response({200, {}, "done"});
  });
  for (const std::int32_t stream : streams) EXPECT_EQ(client.answer(stream).body, "done");
  EXPECT_EQ(client.answer(one_more).status, 200) << "the client waits with it until there is a place";
}

TEST_F(Http2Server, AMissingHeadEndsTheConnection) {
  HttpLimits limits = patient();
  limits.header_max = milliseconds(200);
  serve(limits);
  auto client = raw();
  client->send(frame_of(FrameType::kHeaders, kEndStream, 1, kGetHead));
  client->drain();
  EXPECT_FALSE(lives(*client));
}

TEST_F(Http2Server, AnIdleConnectionIsSentAway) {
  HttpLimits limits;
  limits.unproven_idle_max = seconds(3);  // the handshake is over by then
  serve(limits);
  Http2Client client = this->client();
  client.drain();
  EXPECT_EQ(client.went_away, NGHTTP2_NO_ERROR);
}

}  // namespace
}  // namespace spillway::wire
