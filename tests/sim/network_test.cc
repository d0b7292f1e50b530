// The answers that a sender gets when the simulated connection breaks.
#include "sim/cluster.h"
#include "sim/sim_network.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <variant>
#include <vector>

namespace spillway::sim {
namespace {

class Listener final : public client::Transport::Receiver {
 public:
  void on_api_event(client::ApiEvent event) override { events.push_back(std::move(event)); }

  std::vector<client::ApiEvent> events;
};

class Connections : public ::testing::Test {
 protected:
  Connections() : cluster_({.nodes = 1}) {
    cluster_.run_for(seconds(1));
    connection_ = cluster_.network().connect("probe", {"probe", "", {"system:masters"}});
  }

  /// Breaks the connection, which both sides notice, and restores it before anything in transit has arrived.
  void break_connection() {
    cluster_.network().partition("probe");
    cluster_.network().heal("probe");
  }

  Cluster cluster_;
  Listener listener_;
  std::unique_ptr<client::Transport> connection_;
};

TEST_F(Connections, ARequestIsAnswered) {
  connection_->execute(client::SendCall{1, {.target = "/api/v1/nodes"}}, listener_);
  cluster_.run_for(seconds(1));
  ASSERT_EQ(listener_.events.size(), 1U);
  const auto* done = std::get_if<client::CallDone>(&listener_.events.front());
  ASSERT_NE(done, nullptr);
  ASSERT_TRUE(done->response) << done->response.error().text();
  EXPECT_EQ(done->response->status, 200);
}

TEST_F(Connections, ARequestThatArrivesAfterItsConnectionBrokeHasNoSecondAnswer) {
  connection_->execute(client::SendCall{1, {.target = "/api/v1/nodes"}}, listener_);
  break_connection();
  cluster_.run_for(seconds(1));
  ASSERT_EQ(listener_.events.size(), 1U);
  const auto* done = std::get_if<client::CallDone>(&listener_.events.front());
  ASSERT_NE(done, nullptr);
  EXPECT_FALSE(done->response);
}

TEST_F(Connections, AWatchThatArrivesAfterItsConnectionBrokeIsNotReportedAgain) {
  connection_->execute(client::OpenWatch{1, {.target = "/api/v1/nodes?watch=1"}}, listener_);
  break_connection();
  cluster_.run_for(minutes(1));
  ASSERT_EQ(listener_.events.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<client::WatchEnded>(listener_.events.front()));
}

/// Servers write what they catch up on in pieces of many events; a client of a real connection gets one by one.
TEST_F(Connections, AWatchThatCatchesUpGetsOneEventAtATime) {
  for (int i = 0; i < 3; ++i) {
    cluster_.create("/api/v1/namespaces/default/configmaps",
                    api::Json::object({{"metadata", api::Json::object({{"name", fmt::format("kept-{}", i)}})}}));
  }
  cluster_.run_for(seconds(1));
  connection_->execute(client::OpenWatch{1, {.target = "/api/v1/namespaces/default/configmaps?watch=1"}}, listener_);
  cluster_.run_for(seconds(1));
  std::size_t kept = 0;
  for (const client::ApiEvent& event : listener_.events) {
    const auto* const frame = std::get_if<client::WatchFrame>(&event);
    ASSERT_NE(frame, nullptr);
    ASSERT_NE(frame->document, nullptr);
    const auto read = api::parse_json(*frame->document);
    ASSERT_TRUE(read) << *frame->document;
    if (read->string_at({"object", "metadata", "name"}).starts_with("kept-")) ++kept;
  }
  EXPECT_EQ(kept, 3U);
}

TEST_F(Connections, AWayThatIsCutStaysSoUntilItIsHealed) {
  connection_->execute(client::OpenWatch{1, {.target = "/api/v1/nodes?watch=1"}}, listener_);
  cluster_.run_for(seconds(10));
  cluster_.network().partition("probe");
  cluster_.run_for(seconds(10));
  const std::size_t received = listener_.events.size();
  cluster_.network().partition("probe", Cut::kToServer);
  cluster_.patch("/api/v1/nodes/node-00000",
                 api::Json::object({{"spec", api::Json::object({{"unschedulable", true}})}}));
  cluster_.run_for(seconds(10));
  EXPECT_EQ(listener_.events.size(), received) << "what came now would follow a gap";
  cluster_.network().heal("probe");
  cluster_.run_for(seconds(1));
  ASSERT_EQ(listener_.events.size(), received + 1);
  EXPECT_TRUE(std::holds_alternative<client::WatchEnded>(listener_.events.back()));
}

}  // namespace
}  // namespace spillway::sim
