// Streaming answers: watches and logs, their clients that disconnect, are slow or read nothing.
#include "wire/server/http_server.h"
#include "wire/wire_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AnswerStream, FlushesTheHeadersOfAStreamBeforeAnyData) {
  ServerRoom room;
  std::shared_ptr<api::ResponseSink> sink;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({200, {{"Content-Type", "application/json"}}, ""});
    });
  });
  TestClient client(room.port);
  client.send(get("/watch"));
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_THAT(client.received, HasSubstr("Transfer-Encoding: chunked"));
  client.received.clear();
  room.run([&] { EXPECT_TRUE(sink->write(shared("{\"type\":\"ADDED\"}\n"))); });
  ASSERT_TRUE(client.receive_until("}\n\r\n"));
  EXPECT_EQ(client.received, "11\r\n{\"type\":\"ADDED\"}\n\r\n") << "flushed as one chunk";
  room.run([&] {
    EXPECT_TRUE(sink->write(shared("")));  // would end the stream if it were sent
    sink->on_end();
    EXPECT_FALSE(sink->write(shared("late")));
  });
  client.received.clear();
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_EQ(client.received, "0\r\n\r\n");
  client.received.clear();
  client.send(get("/next"));
  EXPECT_EQ(client.answer().status, 200) << "the connection lives on after a stream";
  room.run([&] { sink.reset(); });
}

TEST(AnswerStream, NotifiesTheHandlerWhenAClientClosesItsStream) {
  ServerRoom room;
  std::shared_ptr<api::ResponseSink> sink;
  Mailbox<bool> left;
  room.run([&] {
    room.handler.when_abandoned = [&] { left.put(true); };
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({});
    });
  });
  {
    TestClient client(room.port);
    client.send(get("/watch"));
    ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  }
  EXPECT_TRUE(left.take());
  room.run([&] {
    EXPECT_THAT(room.handler.abandoned, ElementsAre(1U));
    EXPECT_FALSE(sink->write(shared("nobody reads this")));
    sink.reset();
  });
}

TEST(AnswerStream, AnswersAClientThatClosedOnlyItsSendingSide) {
  ServerRoom room;
  std::shared_ptr<api::ResponseSink> sink;
  Mailbox<bool> asked;
  room.run([&] {
    room.handler.on("/hold", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      asked.put(true);
    });
  });
  TestClient client(room.port);
  client.send(get("/hold"));
  client.stream().end_writing();
  ASSERT_TRUE(asked.take());
  room.run([&] {
    sink->on_response({200, {}, "still here"});
    sink.reset();
  });
  EXPECT_EQ(client.answer().body, "still here");
  EXPECT_FALSE(client.receive());
}

TEST(AnswerStream, BoundsWhatWaitsForASlowWatcher) {
  HttpServer::Options options;
  options.limits.stream_bytes_max = 256 * 1024;
  ServerRoom room(std::move(options));
  std::shared_ptr<api::ResponseSink> sink;
  Mailbox<bool> opened;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({});
      opened.put(true);
    });
  });
  TestClient slow(room.port);  // reads nothing
  slow.send(get("/watch"));
  ASSERT_TRUE(opened.take());
  const auto block = shared(std::string(64 * 1024, 'x'));
  bool full = false;
  std::size_t taken = 0;
  for (int i = 0; i < 4096 && !full; ++i) {
    room.run([&] {
      full = !sink->write(block);
      if (!full) taken += block->size();
    });
  }
  EXPECT_TRUE(full) << "took " << taken << " bytes for a client that reads nothing";
  TestClient quick(room.port);
  quick.send(get("/quick"));
  EXPECT_EQ(quick.answer().status, 200) << "a slow watcher holds up others";
  room.run([&] {
    sink->on_end();
    sink.reset();
  });
  std::size_t got = 0;
  while (slow.receive()) {
    got += std::exchange(slow.received, {}).size();
    if (got > taken) break;  // chunk heads are not part of the body
  }
  EXPECT_GT(got, taken) << "what was taken must still arrive";
}

TEST(AnswerStream, CutsAStreamWhoseClientTakesNothing) {
  telemetry::Registry metrics;
  HttpServer::Options options;
  options.limits.stalled_max = milliseconds(50);
  options.metrics = &metrics;
  ServerRoom room(std::move(options));
  Mailbox<bool> left;
  std::shared_ptr<api::ResponseSink> sink;
  room.run([&] {
    room.handler.when_abandoned = [&] { left.put(true); };
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({});
      const auto block = shared(std::string(1024 * 1024, 'x'));
      for (int i = 0; i < 32; ++i) EXPECT_TRUE(sink->write(block));
    });
  });
  TestClient slow(room.port);
  slow.send(get("/watch"));
  EXPECT_TRUE(left.take());
  EXPECT_THAT(metrics.text(), HasSubstr("spillway_http_slow_streams_total 1"));
  room.run([&] { sink.reset(); });
}

}  // namespace
}  // namespace spillway::wire
