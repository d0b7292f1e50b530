// Calls, watches and answers between two loops of one process: posted, in order, nothing after a drop, bounded while
// one of the loops is held. The test turns both loops itself, so every order is exact.
#include "api/exchange/upgrade.h"
#include "wire/transport/crossing_sink.h"
#include "wire/transport/crossing_transport.h"
#include "wire/transport/in_process_transport.h"
#include "wire/transport_fixture.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::wire {
namespace {

using client::CloseWatch;
using client::OpenWatch;
using client::SendCall;

/// Runs posted tasks, and the tasks that these post.
void turn(runtime::Loop& loop) {
  loop.post([&loop] { loop.post([&loop] { loop.stop(); }); });
  loop.run({});
}

class Crossing : public ::testing::Test {
 protected:
  Crossing() {
    handler_.on("/watch", [this](ScriptedHandler::Seen& seen) {
      sink_ = seen.sink;
      sink_->on_stream({});
    });
    handler_.on("/hold", [this](ScriptedHandler::Seen& seen) { sink_ = seen.sink; });
    transport_ = std::make_unique<CrossingTransport>(
        own_, other_,
        std::make_unique<InProcessTransport>(other_, handler_, api::UserInfo{"system:node:n1", "", {"system:nodes"}}));
  }

  ~Crossing() override {
    transport_.reset();
    run_until_idle();
  }

  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  void run_until_idle() {
    for (int i = 0; i < 3; ++i) {
      turn(other_);
      turn(own_);
    }
  }

  runtime::Loop own_;
  runtime::Loop other_;
  ScriptedHandler handler_;
  std::shared_ptr<api::ResponseSink> sink_;
  std::unique_ptr<CrossingTransport> transport_;
  EventLog engine_;
};

TEST_F(Crossing, AnswersCalls) {
  engine_.execute(*transport_, SendCall{7, request_of("/x", api::Method::kPut, "body")});
  turn(own_);
  EXPECT_TRUE(engine_.events.empty()) << "the other loop is held";
  run_until_idle();
  ASSERT_EQ(engine_.events.size(), 1U);
  EXPECT_EQ(engine_.done(0).response->body, "PUT /x body by system:node:n1");
}

TEST_F(Crossing, EventsOfAWatchAreInOrderWithACacheOfTheirOwn) {
  engine_.execute(*transport_, OpenWatch{1, request_of("/watch")});
  turn(other_);
  const auto object = std::make_shared<const api::Json>(api::Json::object({{"kind", "Pod"}}));
  const auto event = std::make_shared<const api::WatchDocument>("ADDED", object);
  EXPECT_TRUE(sink_->write_event(shared("{\"type\":\"ADDED\"}\n"), event));
  EXPECT_TRUE(sink_->write(shared("{\"type\":\"DELETED\"}\n")));
  sink_->on_end();
  run_until_idle();
  ASSERT_EQ(engine_.events.size(), 3U);
  const auto& first = std::get<client::WatchFrame>(engine_.events[0]);
  EXPECT_EQ(first.event->object, object) << "copied";
  EXPECT_NE(first.event, event) << "its cache would be written by two threads";
  EXPECT_EQ(engine_.frame(1), "{\"type\":\"DELETED\"}\n");
  EXPECT_FALSE(engine_.ended(2).error);
}

TEST_F(Crossing, NothingArrivesOfADroppedWatchOrReceiver) {
  engine_.execute(*transport_, OpenWatch{1, request_of("/watch")});
  turn(other_);
  EXPECT_TRUE(sink_->write(shared("{\"type\":\"ADDED\"}\n")));
  engine_.execute(*transport_, CloseWatch{1});
  run_until_idle();
  EXPECT_TRUE(engine_.events.empty());
  EXPECT_FALSE(sink_->write(shared("{\"type\":\"ADDED\"}\n"))) << "the server was not told";
  engine_.execute(*transport_, SendCall{2, request_of("/hold")});
  turn(other_);
  transport_->disconnect(engine_);
  sink_->on_response({});
  run_until_idle();
  EXPECT_TRUE(engine_.events.empty());
}

TEST_F(Crossing, AWatchThatIsNotReadEnds) {
  engine_.execute(*transport_, OpenWatch{1, request_of("/watch")});
  turn(other_);
  const auto line = shared("{\"text\":\"" + std::string(1 << 20, 'x') + "\"}\n");
  for (std::size_t bytes = 0; bytes <= CrossingTransport::kWatchBytesMax + (4 << 20); bytes += line->size()) {
    if (!sink_->write(line)) break;
    turn(other_);
  }
  run_until_idle();
  EXPECT_LE(engine_.events.size(), CrossingTransport::kWatchBytesMax / line->size() + 1);
  EXPECT_EQ(engine_.ended(engine_.events.size() - 1).error->code, ErrorCode::kServiceUnavailable);
}

/// A client's connection: records its calls.
class Client final : public api::UpgradingSink {
 public:
  explicit Client(std::vector<std::string>& events) : events_(events) {}

  ~Client() override { events_.emplace_back("released"); }

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void on_response(api::Response response) override { events_.push_back("response " + response.body); }

  void on_stream(api::Response) override { events_.emplace_back("stream"); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    if (full_) return false;
    events_.push_back("bytes " + *chunk);
    waiting_ += chunk->size();
    return true;
  }

  void on_end() override { events_.emplace_back("end"); }

  std::size_t waiting_bytes() const override { return waiting_; }

  void on_upgrade(api::Response, std::shared_ptr<api::UpgradedInput> input) override {
    events_.emplace_back("upgrade");
    input_ = std::move(input);
  }

  void on_input_used(std::size_t bytes) override { events_.push_back("used " + std::to_string(bytes)); }

  void take_all() { waiting_ = 0; }

  void refuse() { full_ = true; }

  api::UpgradedInput& input() { return *input_; }

 private:
  std::vector<std::string>& events_;
  std::size_t waiting_ = 0;
  bool full_ = false;
  std::shared_ptr<api::UpgradedInput> input_;
};

struct RecordedInput final : api::UpgradedInput {
  explicit RecordedInput(std::vector<std::string>& to) : received(to) {}

  void on_input(std::string bytes) override { received.push_back(std::move(bytes)); }

  void on_input_end() override { received.emplace_back("gone"); }

  std::vector<std::string>& received;
};

class CrossingAnswer : public ::testing::Test {
 protected:
  CrossingAnswer() { sink_ = CrossingSink::make(client_, receiving_, answering_); }

  std::vector<std::string> events_;
  runtime::Loop receiving_;
  std::shared_ptr<runtime::Loop> answering_ = std::make_shared<runtime::Loop>();
  std::shared_ptr<Client> client_ = std::make_shared<Client>(events_);
  std::shared_ptr<api::ResponseSink> sink_;
};

TEST_F(CrossingAnswer, ArrivesInOrderAndIsReleasedOnTheLoopOfTheConnection) {
  client_.reset();
  sink_->on_stream({});
  EXPECT_TRUE(sink_->write(shared("one")));
  sink_->on_end();
  sink_.reset();
  EXPECT_TRUE(events_.empty());
  turn(receiving_);
  EXPECT_EQ(events_, (std::vector<std::string>{"stream", "bytes one", "end", "released"}));
}

TEST_F(CrossingAnswer, CountsWhatIsUnderWayAndWhatTheClientHasNotTaken) {
  EXPECT_TRUE(sink_->write(shared("12345678")));
  EXPECT_EQ(api::waiting_bytes(*sink_), 8U);
  turn(receiving_);
  EXPECT_EQ(api::waiting_bytes(*sink_), 8U) << "the client has not taken it";
  client_->take_all();
  turn(receiving_);
  EXPECT_EQ(api::waiting_bytes(*sink_), 0U);
}

TEST_F(CrossingAnswer, IsBoundedWhileTheOtherLoopIsHeldAndEndsWithARefusal) {
  const auto megabyte = shared(std::string(1 << 20, 'x'));
  std::size_t bytes = 0;
  while (bytes < 2 * CrossingSink::kUnderWayMax && sink_->write(megabyte)) bytes += megabyte->size();
  EXPECT_EQ(bytes, CrossingSink::kUnderWayMax);
  turn(receiving_);
  client_->refuse();
  EXPECT_TRUE(sink_->write(megabyte)) << "the refusal is not known yet";
  turn(receiving_);
  EXPECT_FALSE(sink_->write(megabyte));
}

TEST_F(CrossingAnswer, AConnectionLeavesHttp) {
  std::vector<std::string> received;
  const auto upgrading = api::upgrading(sink_);
  ASSERT_NE(upgrading, nullptr);
  upgrading->on_upgrade({.status = 101}, std::make_shared<RecordedInput>(received));
  turn(receiving_);
  client_->input().on_input("ls\n");
  client_->input().on_input_end();
  EXPECT_TRUE(received.empty());
  turn(*answering_);
  EXPECT_EQ(received, (std::vector<std::string>{"ls\n", "gone"}));
  upgrading->on_input_used(3);
  turn(receiving_);
  EXPECT_EQ(events_, (std::vector<std::string>{"upgrade", "used 3"}));
}

TEST_F(CrossingAnswer, InputForALoopThatHasEndedIsDropped) {
  std::vector<std::string> received;
  api::upgrading(sink_)->on_upgrade({.status = 101}, std::make_shared<RecordedInput>(received));
  turn(receiving_);
  answering_.reset();
  client_->input().on_input("ls\n");
  EXPECT_TRUE(received.empty());
}

}  // namespace
}  // namespace spillway::wire
