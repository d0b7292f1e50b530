// The whole way: an engine, its driver, a transport, HTTP, the API server, and back.
#include "wire/server/api_endpoint.h"

#include "api/object/workload.h"
#include "client/informer.h"
#include "runtime/engine_driver.h"
#include "wire/cluster_fixture.h"
#include "wire/transport/in_process_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace spillway::wire {
namespace {

using api::Json;
using ::testing::HasSubstr;

/// Keeps a copy of all namespaces and can create them.
class NamespaceEngine final : public client::ApiEngine {
 public:
  std::string_view name() const override { return "namespaces"; }

  void start(Now now) override { client.start(now); }

  void on_api_event(const client::ApiEvent& event, Now now) override { client.on_api_event(event, now); }

  void on_wakeup(Now now) override { client.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client.take_api_commands(); }

  void create(const std::string& name, client::ApiClient::Done done) {
    client.create(
        "/api/v1/namespaces",
        Json::object({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Json::object({{"name", name}})}}),
        std::move(done));
  }

  client::ApiClient client{"namespaces", Rng(1)};
  client::Informer<api::Namespace> informer{client, "/api/v1/namespaces"};
};

/// An engine with its driver, on the cluster's loop.
struct Member {
  Member(Cluster& home, std::unique_ptr<client::Transport> way) : cluster(home) {
    cluster.loops.run([&] {
      transport = std::move(way);
      engine = std::make_unique<NamespaceEngine>();
      driver = std::make_unique<runtime::EngineDriver>(cluster.loops.loop(), *engine, *transport);
      driver->start();
    });
  }

  ~Member() {
    cluster.loops.run([&] {
      driver.reset();
      engine.reset();
      transport.reset();
    });
  }

  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Result<Json> create(const std::string& name) {
    Mailbox<Result<Json>> answer;
    cluster.loops.run([&] {
      driver->step(
          [&](Now) { engine->create(name, [&](Result<Json> outcome, Now) { answer.put(std::move(outcome)); }); });
    });
    return answer.take();
  }

  /// Waits until the cache holds the namespace.
  void wait_for(const std::string& name) {
    auto seen = std::make_shared<Mailbox<bool>>();
    auto reported = std::make_shared<bool>(false);
    cluster.loops.run([&] {
      const auto check = [this, name, seen, reported] {
        if (!*reported && engine->informer.cache().find(name)) {
          *reported = true;
          seen->put(true);
        }
      };
      driver->after_step(check);
      check();
    });
    EXPECT_TRUE(seen->take()) << name;
    cluster.loops.run([&] { driver->after_step({}); });
  }

  Cluster& cluster;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<NamespaceEngine> engine;
  std::unique_ptr<runtime::EngineDriver> driver;
};

TEST(ApiEndpoint, EnginesSeeEachOtherInProcessAndOverHttp) {
  Cluster cluster;
  Member near(cluster, std::make_unique<InProcessTransport>(cluster.loops.loop(), *cluster.endpoint,
                                                            api::UserInfo{"near", "", {"system:masters"}}));
  Member far(cluster, cluster.connect());
  for (Member* member : {&near, &far}) member->wait_for("default");
  EXPECT_TRUE(near.create("from-near"));
  EXPECT_TRUE(far.create("from-far"));
  for (Member* member : {&near, &far}) {
    member->wait_for("from-near");
    member->wait_for("from-far");
  }
  const Result<Json> again = far.create("from-near");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kAlreadyExists);
}

TEST(ApiEndpoint, WatchOverHttpHasItsHeadersBeforeAnyEventAndEndsOnTime) {
  Cluster cluster;
  TestClient client(cluster.http->port());
  client.send("GET /api/v1/namespaces?watch=1&resourceVersion=999999&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_THAT(client.received, HasSubstr("HTTP/1.1 200 OK\r\n"));
  ASSERT_TRUE(client.receive_until("0\r\n\r\n")) << "the timer of the API server did not run";
}

TEST(ApiEndpoint, AbandonedWatchesLeaveTheServer) {
  Cluster cluster;
  const std::size_t before = cluster.loops.run([&] { return cluster.server->in_flight(); });
  {
    TestClient client(cluster.http->port());
    client.send("GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(client.receive_until("ADDED"));
    EXPECT_EQ(cluster.loops.run([&] { return cluster.server->in_flight(); }), before + 1);
  }
  while (cluster.loops.run([&] { return cluster.server->in_flight(); }) > before) std::this_thread::yield();
}

}  // namespace
}  // namespace spillway::wire
