// Goal: simulations run for authorized users, in another process: they take no seat while they last, and no time limit
// of other requests applies; a client that leaves ends its own.
#include "apiserver/ports/future_simulator.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace spillway::apiserver {
namespace {

const api::UserInfo kWhatIfUser{"player", {}, {"system:authenticated"}};
const std::string kRoleKinds = "/apis/rbac.authorization.k8s.io/v1/clusterrole";
constexpr const char* kQuestion = R"({"zone":"a","minutes":1})";
constexpr const char* kPath = "/ui/what-if";

class TestSimulator final : public FutureSimulator {
 public:
  void simulate(std::uint64_t id, const api::Request& asked, std::shared_ptr<const api::UserInfo> requester,
                Done done) override {
    questions.push_back(requester->name + " " + asked.body);
    open.emplace(id, std::move(done));
  }

  void abandon(std::uint64_t id) override { open.erase(id); }

  void answer_first(int code, const std::string& body) {
    const auto first = open.begin();
    Done done = std::move(first->second);
    open.erase(first);
    done({.status = code, .headers = {{"Content-Type", "application/json"}}, .body = body, .document = {}});
  }

  std::vector<std::string> questions;
  std::map<std::uint64_t, Done> open;
};

class Futures : public ::testing::Test {
 protected:
  Futures() {
    server_.futures = &simulator_;
    server_.seats = 12;
    server_.restart();
  }

  void allow_simulation() {
    ASSERT_EQ(server_
                  .post(kRoleKinds + "s",
                        R"({"metadata":{"name":"p"},"rules":[{"nonResourceURLs":["/ui/what-if"],"verbs":["post"]}]})")
                  .code,
              201);
    ASSERT_EQ(
        server_
            .post(
                kRoleKinds + "bindings",
                R"({"metadata":{"name":"p"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"p"},)"
                R"("subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"player"}]})")
            .code,
        201);
  }

  std::shared_ptr<TestSink> ask(const api::UserInfo& user, api::Method method = api::Method::kPost) {
    server_.user = user;
    auto sink = server_.send(method, kPath, method == api::Method::kPost ? kQuestion : "");
    server_.user = kAdmin;
    return sink;
  }

  TestSimulator simulator_;
  TestServer server_;
};

TEST_F(Futures, AreSimulatedForThoseWhoMay) {
  for (const api::UserInfo& user :
       {kWhatIfUser, kNode, api::UserInfo{"system:anonymous", {}, {"system:unauthenticated"}}}) {
    const auto refused = ask(user);
    ASSERT_TRUE(refused->answered()) << user.name;
    EXPECT_EQ(refused->response->status, 403) << user.name;
  }
  EXPECT_EQ(ask(kWhatIfUser, api::Method::kGet)->response->status, 404);
  EXPECT_TRUE(simulator_.questions.empty());
  allow_simulation();
  const auto sink = ask(kWhatIfUser);
  EXPECT_FALSE(sink->answered());
  EXPECT_EQ(simulator_.questions, (std::vector<std::string>{std::string("player ") + kQuestion}));
  simulator_.answer_first(200, R"({"a":1})");
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 200);
  EXPECT_EQ(sink->response->body, R"({"a":1})");
  EXPECT_EQ(sink->response->header("Content-Type"), "application/json");
  EXPECT_EQ(server_.server().in_flight(), 0U);
  EXPECT_EQ(ask(kWhatIfUser, api::Method::kGet)->response->status, 404);
}

TEST_F(Futures, TakeNoSeatAndAsLongAsTheyNeed) {
  allow_simulation();
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (int i = 0; i < 20; ++i) sinks.push_back(ask(kWhatIfUser));  // more than there are seats
  EXPECT_EQ(simulator_.open.size(), 20U);
  server_.advance(seconds(119));
  for (const auto& sink : sinks) EXPECT_FALSE(sink->answered());
  while (!simulator_.open.empty()) simulator_.answer_first(429, "{}");
  for (const auto& sink : sinks) ASSERT_EQ(sink->response->status, 429);
  EXPECT_EQ(server_.server().in_flight(), 0U);
}

TEST_F(Futures, EndWithTheConnectionOfTheClient) {
  const auto sink = ask(kAdmin);
  ASSERT_EQ(simulator_.open.size(), 1U);
  server_.server().abandon(server_.last_id);
  EXPECT_TRUE(simulator_.open.empty());
  EXPECT_EQ(server_.server().in_flight(), 0U);
}

TEST_F(Futures, AreNotSimulatedWithoutASimulator) {
  server_.futures = nullptr;
  server_.restart();
  EXPECT_EQ(ask(kAdmin)->response->status, 404);
}

}  // namespace
}  // namespace spillway::apiserver
