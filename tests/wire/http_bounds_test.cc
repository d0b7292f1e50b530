// Bounds of clients of an HTTP server, and the passage of those clients without which pods do not run.
#include "api/json/json.h"
#include "wire/server/http_server.h"
#include "wire/wire_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMebibyte = std::size_t{1024} * 1024;

std::string get_as(std::string_view target, std::string_view token) {
  return get(target, token.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", token));
}

class HttpBounds : public ::testing::Test {
 protected:
  HttpBounds() {
    options_.metrics = &metrics_;
    options_.authenticator = std::make_shared<Authenticator>(
        Authenticator::Options{.tokens = {{"alice", {"alice", "", {"system:authenticated"}}},
                                          {"bob", {"bob", "", {"system:authenticated"}}},
                                          {"node", {"system:node:n1", "", {"system:nodes", "system:authenticated"}}}}});
  }

  void start() {
    room_ = std::make_unique<ServerRoom>(options_);
    room_->run([&] {
      room_->handler.on("/list", [this](ScriptedHandler::Seen& seen) {
        ++lists_;
        seen.sink->on_response({200, {}, std::string(8 * kMebibyte, 'x')});
      });
      room_->handler.on("/hold", [this](ScriptedHandler::Seen& seen) { held_.push_back(seen.sink); });
    });
  }

  void TearDown() override {
    if (room_) room_->run([&] { held_.clear(); });
    room_.reset();
  }

  std::unique_ptr<TestClient> connect() { return std::make_unique<TestClient>(room_->port); }

  double metric(const std::string& name) const {
    const std::string text = metrics_.text();
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size() + 2));
  }

  double refused(const std::string& reason) const {
    return metric("spillway_http_refusals_total{reason=\"" + reason + "\"}");
  }

  static void wait_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::yield();
    }
  }

  /// Asks and waits until the request has been carried out, but takes nothing of the answer.
  std::unique_ptr<TestClient> list_and_take_nothing(const std::string& token) {
    auto client = connect();
    const int before = room_->run([&] { return lists_; });
    client->send(get_as("/list", token));
    wait_until([&] { return room_->run([&] { return lists_; }) > before; });
    return client;
  }

  telemetry::Registry metrics_;
  HttpServer::Options options_;
  std::unique_ptr<ServerRoom> room_;
  int lists_ = 0;                                         // loop
  std::vector<std::shared_ptr<api::ResponseSink>> held_;  // loop
};

TEST_F(HttpBounds, UnreadAnswersAreBoundedInAllAndOfEachClient) {
  options_.limits.waiting = {.total_bytes_max = 26 * kMebibyte,
                             .ordinary_bytes_max = 26 * kMebibyte,
                             .client_bytes_max = 17 * kMebibyte,
                             .room_bytes = 8 * kMebibyte,
                             .connection_bytes_free = 1024};
  start();
  std::vector<std::unique_ptr<TestClient>> silent;
  silent.push_back(list_and_take_nothing("alice"));
  silent.push_back(list_and_take_nothing("alice"));
  EXPECT_NEAR(metric("spillway_http_waiting_bytes"), 16.0 * kMebibyte, 1000);
  const auto again = connect();
  again->send(get_as("/list", "alice"));
  const api::Response refused_answer = again->answer();
  EXPECT_EQ(refused_answer.status, 429) << "alice has her share";
  EXPECT_EQ(refused_answer.header("retry-after"), "1");
  silent.push_back(list_and_take_nothing("bob"));
  again->send(get_as("/list", "bob"));
  EXPECT_EQ(again->answer().status, 429) << "all have theirs";
  EXPECT_EQ(room_->run([&] { return lists_; }), 3) << "refused before it was made";
  EXPECT_NEAR(metric("spillway_http_waiting_bytes"), 24.0 * kMebibyte, 1000);
  EXPECT_EQ(refused("waiting_bytes"), 2);
  again->send(get_as("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1", "node"));
  EXPECT_EQ(again->answer().status, 200) << "heartbeats need little";
  silent.clear();
  wait_until([&] { return metric("spillway_http_waiting_bytes") == 0; });
  again->send(get_as("/list", "alice"));
  EXPECT_EQ(again->answer().body.size(), 8 * kMebibyte);
}

TEST_F(HttpBounds, UnreadStreamsAreBoundedInAll) {
  options_.limits.waiting = {.total_bytes_max = 16 * kMebibyte,
                             .ordinary_bytes_max = 16 * kMebibyte,
                             .client_bytes_max = 16 * kMebibyte,
                             .room_bytes = 0,
                             .connection_bytes_free = 1024};
  start();
  std::vector<std::unique_ptr<TestClient>> silent;
  for (int i = 0; i < 4; ++i) {
    silent.push_back(connect());
    silent.back()->send(get_as("/hold", "alice"));
  }
  wait_until([&] { return room_->run([&] { return held_.size(); }) == 4; });
  std::size_t taken = 0;
  bool full = false;
  room_->run([&] {
    for (const auto& sink : held_) sink->on_stream({});
    for (int i = 0; i < 64 && !full; ++i) {
      full = !held_[static_cast<std::size_t>(i) % 4]->write(shared(std::string(kMebibyte, 'x')));
      if (!full) taken += kMebibyte;
    }
  });
  EXPECT_TRUE(full) << taken;
  EXPECT_LE(metric("spillway_http_waiting_bytes"), 16.0 * kMebibyte);
}

TEST_F(HttpBounds, AClientThatTakesNothingOfItsAnswerIsClosed) {
  options_.limits.stalled_max = milliseconds(50);
  start();
  const auto silent = list_and_take_nothing("alice");
  wait_until([&] { return refused("stalled") == 1; });
  wait_until([&] { return metric("spillway_http_waiting_bytes") == 0; });
}

TEST_F(HttpBounds, UnderPressureAClientThatTakesNothingGoesSooner) {
  options_.limits.stalled_max = seconds(600);
  options_.limits.stalled_pressed_max = milliseconds(50);
  options_.limits.waiting.total_bytes_max = 15 * kMebibyte;
  start();
  const auto silent = list_and_take_nothing("alice");
  wait_until([&] { return refused("stalled") == 1; });
}

TEST_F(HttpBounds, AClientThatTakesItsAnswerSlowlyIsLeftAlone) {
  // A machine that holds the client up for as long as the server waits is given more time.
  for (const Duration limit : {seconds(1), seconds(4), seconds(16)}) {
    options_.limits.stalled_max = limit;
    TearDown();
    start();
    const double before = refused("stalled");
    const auto slow = list_and_take_nothing("alice");
    auto next = std::chrono::steady_clock::now();
    bool open = true;
    // 3.2 MiB of 8 MiB, in twice the time after which a client that takes nothing is closed.
    for (int i = 0; i < 200 && open; ++i) {
      next += limit / 100;
      open = slow->receive();
      while (std::chrono::steady_clock::now() < next) std::this_thread::yield();
    }
    while (open && slow->received.size() < 8 * kMebibyte) open = slow->receive();
    if (open) EXPECT_EQ(refused("stalled"), before);
    if (open || limit == seconds(16)) {
      EXPECT_TRUE(open);
      return;
    }
  }
}

TEST_F(HttpBounds, ConnectionsThatSayNothingDoNotKeepOthersOut) {
  options_.limits.connections = {
      .connections_max = 16, .unproven_max = 8, .unproven_per_address_max = 4, .ordinary_max = 6};
  start();
  const auto known = connect();
  known->send(get_as("/", "alice"));
  ASSERT_EQ(known->answer().status, 200);
  std::vector<std::unique_ptr<TestClient>> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(connect());
    known->send(get_as("/", "alice"));
    ASSERT_EQ(known->answer().status, 200);
    const auto fresh = connect();
    fresh->send(get_as("/", "node"));
    ASSERT_EQ(fresh->answer().status, 200) << i;
  }
  wait_until([&] { return refused("displaced") >= 36; });
  wait_until([&] { return metric("spillway_http_connections") <= 5; });
  EXPECT_FALSE(silent.front()->receive()) << "the oldest has gone";
}

TEST_F(HttpBounds, OrdinaryClientsLeavePlaceForNodes) {
  options_.limits.connections = {
      .connections_max = 6, .unproven_max = 2, .unproven_per_address_max = 2, .ordinary_max = 2};
  start();
  std::vector<std::unique_ptr<TestClient>> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(connect());
    busy.back()->send(get_as("/hold", "alice"));
  }
  wait_until([&] { return room_->run([&] { return held_.size(); }) == 2; });
  const auto third = connect();
  third->send(get_as("/", "alice"));
  EXPECT_EQ(third->answer().status, 429);
  EXPECT_FALSE(third->receive());
  std::vector<std::unique_ptr<TestClient>> nodes;
  for (int i = 0; i < 4; ++i) {
    nodes.push_back(connect());
    nodes.back()->send(get_as("/", "node"));
    EXPECT_EQ(nodes.back()->answer().status, 200);
  }
  const auto another = connect();  // all places are in use: an idle connection is closed
  another->send(get_as("/", "node"));
  EXPECT_EQ(another->answer().status, 200);
  EXPECT_FALSE(nodes.front()->receive());
}

TEST_F(HttpBounds, AClientThatDoesNotAskIsClosed) {
  options_.limits.unproven_idle_max = milliseconds(500);  // a client must send a request within this time
  start();
  const auto silent = connect();
  EXPECT_FALSE(silent->receive());
  EXPECT_EQ(refused("handshake_time"), 1);
  std::unique_ptr<TestClient> known;
  wait_until([&] {  // a busy machine may hold up the request for longer
    known = connect();
    known->send(get_as("/", "alice"));
    return known->answer().status == 200;
  });
  EXPECT_FALSE(connect()->receive());  // takes longer than unknown clients may be idle
  known->send(get_as("/", "alice"));
  EXPECT_EQ(known->answer().status, 200);
}

TEST_F(HttpBounds, ABodyWithoutCredentialsIsSmall) {
  start();
  const auto upload = [&](std::string_view token, std::size_t bytes) {
    const auto client = connect();
    client->send(fmt::format("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n", bytes,
                             token.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", token)));
    client->send(std::string(bytes, 'x'));
    return client->answer().status;
  };
  EXPECT_EQ(upload("", 64 * 1024), 200);
  EXPECT_EQ(upload("", 64 * 1024 + 1), 413);
  EXPECT_EQ(upload("alice", kMebibyte), 200);
  EXPECT_EQ(upload("nobody", kMebibyte), 401) << "before the body has come";
}

TEST_F(HttpBounds, HeartbeatsPassRequestsThatWait) {
  options_.limits.queue.ordinary_seats = 2;
  options_.limits.queue.ordinary_waiting_max = 3;
  start();
  std::vector<std::unique_ptr<TestClient>> flood;
  for (int i = 0; i < 6; ++i) {  // two are executed, three wait, and the last one is refused
    flood.push_back(connect());
    flood.back()->send(get_as("/hold", i % 2 == 0 ? "alice" : "bob"));
    if (i < 2) wait_until([&] { return room_->run([&] { return held_.size(); }) == static_cast<std::size_t>(i) + 1; });
  }
  wait_until([&] { return refused("queue") == 1; });
  const auto node = connect();
  node->send(get_as("/api/v1/nodes/n1/status", "node"));
  EXPECT_EQ(node->answer().status, 200);
  std::size_t answered = 0;
  wait_until([&] {  // each request that ends makes room for the next
    answered += room_->run([&] {
      const auto sinks = std::exchange(held_, {});
      for (const auto& sink : sinks) sink->on_response({200, {}, "done"});
      return sinks.size();
    });
    return answered == 5;
  });
  std::vector<int> codes;
  for (const auto& client : flood) codes.push_back(client->answer().status);
  std::ranges::sort(codes);
  EXPECT_EQ(codes, (std::vector<int>{200, 200, 200, 200, 200, 429}));
}

}  // namespace
}  // namespace spillway::wire
