// An engine's end of a transport: sends commands, waits for events. Everything of it happens on the loop.
#pragma once

#include "client/engine.h"
#include "wire/wire_fixture.h"

#include <deque>
#include <string>
#include <utility>
#include <variant>

namespace spillway::wire {

/// Records events; another thread can wait for a number of them.
class EventLog final : public client::Transport::Receiver {
 public:
  void on_api_event(client::ApiEvent event) override {
    EXPECT_FALSE(inside_execute) << "called back from inside execute()";
    events.push_back(std::move(event));
    if (waiting_ == nullptr || events.size() < wanted_) return;
    waiting_->put(true);
    waiting_.reset();
  }

  /// Thread: the test's. Waits until `count` events have arrived in all.
  void wait(LoopRoom& room, std::size_t count) {
    auto enough = std::make_shared<Mailbox<bool>>();
    room.run([&] {
      if (events.size() >= count) return enough->put(true);
      wanted_ = count;
      waiting_ = enough;
    });
    ASSERT_TRUE(enough->take()) << "only " << events.size() << " events";
  }

  void execute(client::Transport& transport, client::ApiCommand command) {
    inside_execute = true;
    transport.execute(std::move(command), *this);
    inside_execute = false;
  }

  const client::CallDone& done(std::size_t index) const { return std::get<client::CallDone>(events.at(index)); }

  const client::WatchEnded& ended(std::size_t index) const { return std::get<client::WatchEnded>(events.at(index)); }

  std::string frame(std::size_t index) const { return *std::get<client::WatchFrame>(events.at(index)).document; }

  std::deque<client::ApiEvent> events;
  bool inside_execute = false;

 private:
  std::size_t wanted_ = 0;
  std::shared_ptr<Mailbox<bool>> waiting_;
};

inline api::Request request_of(std::string target, api::Method method = api::Method::kGet, std::string body = {}) {
  api::Request request;
  request.method = method;
  request.target = std::move(target);
  request.headers = {{"user-agent", "test"}};
  request.body = std::move(body);
  return request;
}

}  // namespace spillway::wire
