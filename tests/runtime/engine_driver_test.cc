// The driver: commands after every step, steps never nested, one timer, nothing after stop().
#include "runtime/engine_driver.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway::runtime {
namespace {

using client::ApiCommand;
using client::ApiEvent;
using client::CallDone;
using client::SendCall;

/// Records the commands, and answers none by itself.
class FakeTransport final : public client::Transport {
 public:
  void execute(ApiCommand command, Receiver& receiver) override {
    executed.push_back(std::get<SendCall>(command).request.target);
    last_receiver = &receiver;
  }

  void disconnect(Receiver& receiver) override { disconnected.push_back(&receiver); }

  std::vector<std::string> executed;
  std::vector<Receiver*> disconnected;
  Receiver* last_receiver = nullptr;
};

class FakeEngine final : public client::ApiEngine {
 public:
  std::string_view name() const override { return "fake"; }

  void start(Now now) override {
    seen += "start ";
    started_at = now.mono;
    send("/start");
  }

  void on_api_event(const ApiEvent& event, Now) override {
    seen += "answer" + std::to_string(std::get<CallDone>(event).id) + " ";
  }

  void on_wakeup(Now now) override {
    seen += "wake ";
    woken_at = now.mono;
    wakeup.reset();
    send("/wake");
  }

  std::optional<Instant> next_wakeup() const override { return wakeup; }

  std::vector<ApiCommand> take_api_commands() override { return std::exchange(commands, {}); }

  void send(std::string target) {
    api::Request request;
    request.target = std::move(target);
    commands.emplace_back(SendCall{1, std::move(request)});
  }

  std::string seen;
  Instant started_at;
  Instant woken_at;
  std::optional<Instant> wakeup;
  std::vector<ApiCommand> commands;
};

struct World {
  Loop loop;
  FakeEngine engine;
  FakeTransport transport;
  EngineDriver driver{loop, engine, transport};
};

TEST(EngineDriver, ExecutesCommandsAfterTheStep) {
  World w;
  w.driver.step([&](Now) {
    w.engine.send("/a");
    EXPECT_TRUE(w.transport.executed.empty()) << "acted inside the step";
    w.engine.send("/b");
  });
  EXPECT_EQ(w.transport.executed, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(w.transport.last_receiver, &w.driver);
}

TEST(EngineDriver, StepsAreNotNested) {
  World w;
  std::string order;
  w.driver.after_step([&] { order += '|'; });
  w.driver.step([&](Now) {
    order += 'a';
    w.driver.step([&](Now) { order += 'c'; });
    order += 'b';
  });
  EXPECT_EQ(order, "ab|c|");
}

TEST(EngineDriver, DeliversAnswersAndStart) {
  World w;
  w.driver.start();
  w.driver.on_api_event(CallDone{7, api::Response{}});
  EXPECT_EQ(w.engine.seen, "start answer7 ");
  EXPECT_EQ(w.transport.executed, std::vector<std::string>{"/start"});
}

TEST(EngineDriver, WakesTheEngineAtItsInstantOnce) {
  World w;
  const Instant due = w.loop.now().mono + milliseconds(2);
  w.engine.wakeup = w.loop.now().mono + hours(1);
  w.driver.start();
  w.driver.step([&](Now) { w.engine.wakeup = due; });  // earlier: the timer moves
  w.loop.at(due + milliseconds(3), [&] { w.loop.stop(); });
  w.loop.run({});
  EXPECT_EQ(w.engine.seen, "start wake ");
  EXPECT_GE(w.engine.woken_at, due);
  EXPECT_EQ(w.transport.executed, (std::vector<std::string>{"/start", "/wake"}));
}

TEST(EngineDriver, NoWakeUpOnceTheEngineWantsNone) {
  World w;
  w.engine.wakeup = w.loop.now().mono + milliseconds(1);
  w.driver.start();
  w.driver.step([&](Now) { w.engine.wakeup.reset(); });
  w.loop.at(w.loop.now().mono + milliseconds(3), [&] { w.loop.stop(); });
  w.loop.run({});
  EXPECT_EQ(w.engine.seen, "start ");
}

TEST(EngineDriver, DeliversNothingAfterStop) {
  World w;
  w.engine.wakeup = w.loop.now().mono + milliseconds(1);
  w.driver.start();
  w.driver.stop();
  w.driver.stop();
  w.driver.on_api_event(CallDone{1, api::Response{}});
  w.driver.step([&](Now) { w.engine.seen += "step "; });
  w.loop.at(w.loop.now().mono + milliseconds(3), [&] { w.loop.stop(); });
  w.loop.run({});
  EXPECT_EQ(w.engine.seen, "start ");
  EXPECT_EQ(w.transport.disconnected.size(), 1U);
}

TEST(EngineDriver, StopInsideAStepDropsTheRest) {
  World w;
  w.driver.step([&](Now) {
    w.driver.step([&](Now) { w.engine.seen += "later "; });
    w.driver.stop();
  });
  EXPECT_EQ(w.engine.seen, "");
}

}  // namespace
}  // namespace spillway::runtime
