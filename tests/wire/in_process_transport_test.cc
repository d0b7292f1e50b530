// Calls and watches within one process: events are posted in order, and none follows a drop.
#include "wire/transport/in_process_transport.h"

#include "wire/transport_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using client::CloseWatch;
using client::OpenWatch;
using client::SendCall;
using ::testing::ElementsAre;

/// A loop that the test itself runs, without threads, so that every order is exact.
struct Room {
  Room() {
    handler.on("/watch", [this](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({});
    });
    handler.on("/hold", [this](ScriptedHandler::Seen& seen) { sink = seen.sink; });
  }

  void run_until_idle() {
    loop.post([this] { loop.post([this] { loop.stop(); }); });
    loop.run({});
  }

  runtime::Loop loop;
  ScriptedHandler handler;
  std::shared_ptr<api::ResponseSink> sink;
  InProcessTransport transport{loop, handler, {"system:apiserver", "", {"system:masters"}}};
  EventLog engine;
};

TEST(InProcessTransport, AnswersCallsAsTheGivenUserAndLater) {
  Room room;
  room.engine.execute(room.transport, SendCall{7, request_of("/x", api::Method::kPut, "body")});
  EXPECT_TRUE(room.engine.events.empty()) << "called back from inside execute()";
  room.run_until_idle();
  ASSERT_EQ(room.engine.events.size(), 1U);
  EXPECT_EQ(room.engine.done(0).id, 7U);
  EXPECT_EQ(room.engine.done(0).response->body, "PUT /x body by system:apiserver");
}

TEST(InProcessTransport, DeliversWatchEventsInOrderThenTheEnd) {
  Room room;
  room.engine.execute(room.transport, OpenWatch{1, request_of("/watch")});
  const auto event = shared("{\"type\":\"ADDED\"}\n");
  EXPECT_TRUE(room.sink->write(event));
  EXPECT_TRUE(room.sink->write(shared("{\"type\":\"MODIFIED\"}\n{\"type\":\"DEL")));
  EXPECT_TRUE(room.sink->write(shared("ETED\"}\n")));
  room.sink->on_end();
  EXPECT_FALSE(room.sink->write(event));
  room.run_until_idle();
  ASSERT_EQ(room.engine.events.size(), 4U);
  EXPECT_EQ(std::get<client::WatchFrame>(room.engine.events[0]).document, event) << "copied";
  EXPECT_EQ(room.engine.frame(1), "{\"type\":\"MODIFIED\"}");
  EXPECT_EQ(room.engine.frame(2), "{\"type\":\"DELETED\"}");
  EXPECT_FALSE(room.engine.ended(3).error);
}

TEST(InProcessTransport, ARefusedWatchEndsWithTheReason) {
  Room room;
  room.handler.on("/old", [](ScriptedHandler::Seen& seen) {
    seen.sink->on_response(status_response(make_error(ErrorCode::kExpired, "too old resource version")));
  });
  room.engine.execute(room.transport, OpenWatch{1, request_of("/old")});
  room.run_until_idle();
  ASSERT_EQ(room.engine.events.size(), 1U);
  ASSERT_TRUE(room.engine.ended(0).error);
  EXPECT_EQ(room.engine.ended(0).error->code, ErrorCode::kExpired);
  EXPECT_EQ(room.engine.ended(0).error->message, "too old resource version");
}

TEST(InProcessTransport, NothingFollowsACloseAndTheServerLearnsOfIt) {
  Room room;
  room.engine.execute(room.transport, OpenWatch{1, request_of("/watch")});
  EXPECT_TRUE(room.sink->write(shared("{}\n")));  // in transit when the watch is closed
  room.engine.execute(room.transport, CloseWatch{1});
  room.run_until_idle();
  EXPECT_TRUE(room.engine.events.empty());
  EXPECT_THAT(room.handler.abandoned, ElementsAre(1U));
  EXPECT_FALSE(room.sink->write(shared("{}\n")));
  room.engine.execute(room.transport, CloseWatch{1});  // harmless
  EXPECT_EQ(room.handler.abandoned.size(), 1U);
}

TEST(InProcessTransport, DisconnectForgetsOneReceiverOnly) {
  Room room;
  EventLog other;
  room.engine.execute(room.transport, SendCall{1, request_of("/a")});
  room.engine.execute(room.transport, OpenWatch{2, request_of("/watch")});
  other.execute(room.transport, SendCall{1, request_of("/b")});
  room.transport.disconnect(room.engine);
  room.run_until_idle();
  EXPECT_TRUE(room.engine.events.empty());
  EXPECT_EQ(other.events.size(), 1U);
  EXPECT_THAT(room.handler.abandoned, ElementsAre(2U)) << "the watch; the call had been answered";
}

TEST(InProcessTransport, AnswerAfterTheTransportHasGoneIsLost) {
  Room room;
  {
    InProcessTransport transport(room.loop, room.handler, {});
    room.engine.execute(transport, SendCall{1, request_of("/hold")});
  }
  EXPECT_THAT(room.handler.abandoned, ElementsAre(1U));
  room.sink->on_response({});
  room.sink.reset();
  room.run_until_idle();
  EXPECT_TRUE(room.engine.events.empty());
}

TEST(InProcessTransport, AForgottenRequestEndsWithAnError) {
  Room room;
  room.engine.execute(room.transport, SendCall{1, request_of("/hold")});
  room.sink.reset();
  room.engine.execute(room.transport, OpenWatch{2, request_of("/watch")});
  room.sink.reset();
  room.run_until_idle();
  ASSERT_EQ(room.engine.events.size(), 2U);
  EXPECT_EQ(room.engine.done(0).response.error().code, ErrorCode::kServiceUnavailable);
  EXPECT_EQ(room.engine.ended(1).error->code, ErrorCode::kServiceUnavailable);
}

TEST(InProcessTransport, CollectsAStreamedAnswerToACall) {
  Room room;
  room.engine.execute(room.transport, SendCall{1, request_of("/watch")});
  EXPECT_TRUE(room.sink->write(shared("one ")));
  EXPECT_TRUE(room.sink->write(shared("two")));
  room.sink->on_end();
  room.run_until_idle();
  ASSERT_EQ(room.engine.events.size(), 1U);
  EXPECT_EQ(room.engine.done(0).response->body, "one two");
}

TEST(InProcessTransport, BoundsWhatWaitsForDelivery) {
  Room room;
  room.engine.execute(room.transport, OpenWatch{1, request_of("/watch")});
  const auto block = shared(std::string(1024 * 1024, 'x') + "\n");
  std::size_t taken = 0;
  while (taken <= InProcessTransport::kWatchBytesMax && room.sink->write(block)) taken += block->size();
  EXPECT_LE(taken, InProcessTransport::kWatchBytesMax);
  EXPECT_GT(taken, InProcessTransport::kWatchBytesMax / 2);
  room.run_until_idle();
  EXPECT_TRUE(room.sink->write(block)) << "delivered bytes wait no longer";
}

}  // namespace
}  // namespace spillway::wire
