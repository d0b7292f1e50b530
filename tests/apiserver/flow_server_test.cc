// Goal: priority and fairness as clients see it: requests that wait and are answered later, refused ones, and exempt
// ones. Seats are held by requests whose writes the store has not taken yet.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver {
namespace {

using enum api::Method;

const api::UserInfo kAnn{"ann", {}, {"system:authenticated"}};
const api::UserInfo kBob{"bob", {}, {"system:authenticated"}};
const api::UserInfo kAccountUser{
    "system:serviceaccount:shop:cart", {}, {"system:serviceaccounts", "system:authenticated"}};
const api::UserInfo kAnonymousUser{"system:anonymous", {}, {"system:unauthenticated"}};
const std::string kRoles = "/apis/rbac.authorization.k8s.io/v1/clusterrole";
const std::string kPages = "/debug/api_priority_and_fairness/";

std::string map_named(std::string_view name) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name);
}

/// Levels that lend nothing: of twelve seats workload-low has five, global-default and catch-all one each.
class FlowServer : public ::testing::Test {
 protected:
  void start(int queue_length = 50) {
    for (flow::Level& level : server_.flows.levels) {
      level.lendable_percent = 0;
      level.queue_length = queue_length;
    }
    server_.seats = 12;
    server_.restart();
    EXPECT_EQ(server_
                  .post(kRoles + "s",
                        R"({"metadata":{"name":"all"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]})")
                  .code,
              201);
    EXPECT_EQ(
        server_
            .post(
                kRoles + "bindings",
                R"({"metadata":{"name":"all"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"all"},)"
                R"("subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:authenticated"},)"
                R"({"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:unauthenticated"}]})")
            .code,
        201);
  }

  std::shared_ptr<TestSink> begin_as(const api::UserInfo& user, api::Method method, std::string target,
                                     std::string body = {}) {
    server_.user = user;
    auto sink = server_.begin(method, std::move(target), std::move(body));
    server_.user = kAdmin;
    return sink;
  }

  Answer call_as(const api::UserInfo& user, api::Method method, std::string target, std::string body = {}) {
    server_.user = user;
    Answer answer = server_.call(method, std::move(target), std::move(body));
    server_.user = kAdmin;
    return answer;
  }

  std::shared_ptr<TestSink> create_as(const api::UserInfo& user, std::string_view name) {
    return begin_as(user, kPost, kMaps, map_named(name));
  }

  /// The debug page, read while the store does not answer.
  std::string page(const std::string& name) {
    const auto sink = server_.begin(kGet, kPages + name);
    return sink->answered() ? sink->response->body : "";
  }

  bool metrics_say(std::string_view line) { return server_.get("/metrics").text.contains(line); }

  TestServer server_;
};

std::string header_of(const TestSink& sink, std::string_view name) {
  return sink.response ? std::string(sink.response->header(name)) : "no answer";
}

TEST_F(FlowServer, ARefusalSaysWhenToRetry) {
  start();
  const auto held = create_as(kAnonymousUser, "a");
  const auto refused = create_as(kAnonymousUser, "b");
  ASSERT_TRUE(refused->answered());
  EXPECT_EQ(refused->response->status, 429);
  EXPECT_EQ(header_of(*refused, "Retry-After"), "1");
  const api::Json status = api::parse_json(refused->response->body).value();
  EXPECT_EQ(status.string_at({"reason"}), "TooManyRequests");
  EXPECT_EQ(status.string_at({"message"}), "Too many requests, please try again later.");
  EXPECT_EQ(status.at({"details", "retryAfterSeconds"})->if_int64(), 1);
  EXPECT_EQ(header_of(*refused, "X-Kubernetes-PF-FlowSchema-UID").size(), 36U);
  EXPECT_FALSE(held->answered());
  server_.run_until_idle();
  EXPECT_EQ(held->response->status, 201);
  EXPECT_TRUE(
      metrics_say("apiserver_flowcontrol_rejected_requests_total{flow_schema=\"catch-all\",priority_level=\"catch-"
                  "all\",reason=\"concurrency-limit\"} 1"));
  EXPECT_EQ(call_as(kAnonymousUser, kPost, kMaps, map_named("c")).code, 201) << "the seat is free again";
}

TEST_F(FlowServer, WhoFindsNoSeatWaitsAndIsAnswered) {
  start();
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (const char* name : {"a", "b", "c"}) sinks.push_back(create_as(kAnn, name));
  sinks.push_back(create_as(kBob, "d"));
  EXPECT_TRUE(page("dump_requests").contains("global-default,    global-default, ann,"));
  for (const auto& sink : sinks) EXPECT_FALSE(sink->answered());
  server_.run_until_idle();
  std::vector<std::int64_t> versions;
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->answered());
    EXPECT_EQ(sink->response->status, 201);
    versions.push_back(
        std::stoll(std::string(api::parse_json(sink->response->body)->string_at({"metadata", "resourceVersion"}))));
  }
  EXPECT_LT(versions[0], versions[1]);
  EXPECT_LT(versions[3], versions[2]) << "bob does not wait for all of ann's";
  EXPECT_TRUE(
      metrics_say("apiserver_flowcontrol_dispatched_requests_total{flow_schema=\"global-default\",priority_level="
                  "\"global-default\"} 4"));
  EXPECT_TRUE(
      metrics_say("apiserver_flowcontrol_current_inqueue_requests{flow_schema=\"global-default\",priority_level="
                  "\"global-default\"} 0"));
  EXPECT_TRUE(metrics_say("apiserver_flowcontrol_nominal_limit_seats{priority_level=\"workload-low\"} 5"));
}

TEST_F(FlowServer, AClientThatGoesAwayFreesItsPlace) {
  start(1);
  const auto held = create_as(kAnn, "a");
  const auto gone = create_as(kAnn, "b");
  const RequestId id = server_.last_id;
  EXPECT_EQ(create_as(kAnn, "c")->response->status, 429);
  server_.server().abandon(id);
  const auto last = create_as(kAnn, "d");
  EXPECT_FALSE(last->answered());
  server_.run_until_idle();
  EXPECT_EQ(held->response->status, 201);
  EXPECT_EQ(last->response->status, 201);
  EXPECT_FALSE(gone->answered());
  EXPECT_EQ(server_.get(kMaps + "/b").code, 404) << "it was not carried out";
  EXPECT_TRUE(metrics_say("reason=\"cancelled\"} 1"));
}

TEST_F(FlowServer, AClientThatGoesAwayWhileItRunsGivesItsSeatBack) {
  start();
  const auto gone = begin_as(kAnn, kGet, kMaps + "?resourceVersion=999999");
  const RequestId id = server_.last_id;
  const auto next = create_as(kAnn, "a");
  EXPECT_FALSE(next->answered());
  server_.server().abandon(id);
  server_.run_until_idle();
  EXPECT_EQ(next->response->status, 201);
}

TEST_F(FlowServer, WaitingEndsAfterAQuarterOfTheClientsTime) {
  start();
  const auto held = begin_as(kAnn, kGet, kMaps + "?resourceVersion=999999");  // for three seconds
  const auto late = begin_as(kAnn, kGet, kMaps + "?timeout=8s");
  const auto patient = begin_as(kAnn, kGet, kMaps);
  server_.advance(milliseconds(1'999));
  EXPECT_FALSE(late->answered());
  server_.advance(milliseconds(1));
  ASSERT_TRUE(late->answered());
  EXPECT_EQ(late->response->status, 429);
  EXPECT_EQ(header_of(*late, "Retry-After"), "1");
  EXPECT_FALSE(patient->answered());
  server_.advance(seconds(1));
  EXPECT_EQ(held->response->status, 504);
  EXPECT_EQ(patient->response->status, 200);
  EXPECT_TRUE(metrics_say("reason=\"time-out\"} 1"));
}

TEST_F(FlowServer, OneFlowDoesNotKeepOthersOut) {
  start();
  for (int i = 0; i < 60; ++i) create_as(kAccountUser, "m" + std::to_string(i));
  EXPECT_EQ(create_as(kAccountUser, "late")->response->status, 429);
  const auto probe = begin_as(kAnonymousUser, kGet, "/readyz");
  ASSERT_TRUE(probe->answered());
  EXPECT_EQ(probe->response->status, 200);
  EXPECT_TRUE(begin_as(kAdmin, kGet, kMaps)->answered());
  const auto renewal = begin_as(kNode, kGet, "/api/v1/nodes/n1");
  EXPECT_TRUE(renewal->answered());
  EXPECT_EQ(renewal->response->status, 404);
  EXPECT_TRUE(begin_as(kAnn, kGet, kMaps)->answered());
  server_.run_until_idle();
  EXPECT_EQ(call_as(kAccountUser, kGet, kMaps).code, 200);
}

TEST_F(FlowServer, AWatchHoldsASeatUntilItHasBegun) {
  start();
  for (int i = 0; i < 700; ++i) {
    server_.post(kMaps,
                 fmt::format(R"({{"metadata":{{"name":"m{}"}},"data":{{"k":"{}"}}}})", i, std::string(1'000, 'x')));
  }
  const auto watch = begin_as(kAnn, kGet, kMaps + "?watch=1");
  const auto second = begin_as(kAnn, kGet, kMaps + "/m1");
  EXPECT_FALSE(second->answered());
  server_.run_until_idle();
  EXPECT_EQ(second->response->status, 200);
  EXPECT_EQ(watch->names().size(), 700U);
  const auto third = begin_as(kAnn, kGet, kMaps + "/m1");
  EXPECT_TRUE(third->answered()) << "a watch that stands holds nothing";
}

TEST_F(FlowServer, WhatOthersAnswerHoldsNothing) {
  start();
  const auto held = create_as(kAnn, "a");
  EXPECT_EQ(begin_as(kAnn, kGet, "/api/v1/namespaces/default/pods/x/log")->response->status, 404);
  EXPECT_FALSE(begin_as(kAnn, kGet, "/api/v1/namespaces/default/pods/x")->answered());
}

TEST_F(FlowServer, AListCostsWhatItReads) {
  server_.seats = 600;
  server_.restart();
  for (int i = 0; i < 250; ++i) server_.post(kMaps, map_named("m" + std::to_string(i)));
  const auto seats_of = [&](const std::string& target) {
    const auto sum = [&] {
      const std::string text = server_.get("/metrics").text;
      const std::string name =
          "apiserver_flowcontrol_work_estimated_seats_sum{flow_schema=\"global-default\",priority_level=\"global-"
          "default\"} ";
      const std::size_t at = text.find(name);
      return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
    };
    const int before = sum();
    call_as(kAnn, kGet, target);
    return sum() - before;
  };
  EXPECT_EQ(seats_of(kMaps), 3);
  EXPECT_EQ(seats_of("/api/v1/configmaps"), 3);
  EXPECT_EQ(seats_of(kMaps + "?limit=100"), 1);
  EXPECT_EQ(seats_of(kMaps + "?limit=100&labelSelector=a"), 3);
  EXPECT_EQ(seats_of("/api/v1/namespaces/other/configmaps"), 1);
  EXPECT_EQ(seats_of(kMaps + "?fieldSelector=metadata.name%3Dm1"), 1);
  EXPECT_EQ(seats_of(kMaps + "/m1"), 1);
  EXPECT_EQ(seats_of("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"), 1);
}

TEST_F(FlowServer, AWriteThatManyWatchHoldsItsSeatForAMoment) {
  start();
  for (int i = 0; i < 10; ++i) server_.watch(kMaps + "?watch=1&resourceVersion=0");
  EXPECT_EQ(call_as(kAnn, kPost, kMaps, map_named("a")).code, 201);
  const auto next = begin_as(kAnn, kGet, kMaps + "/a");
  server_.run_until_idle();
  EXPECT_FALSE(next->answered());
  server_.advance(milliseconds(5));
  EXPECT_TRUE(next->answered());
}

TEST_F(FlowServer, EveryAnswerNamesItsFlow) {
  start();
  std::set<std::string> schemas;
  std::set<std::string> levels;
  for (const auto& [user, target] :
       std::vector<std::pair<api::UserInfo, std::string>>{{kAdmin, kMaps},
                                                          {kAdmin, "/api/v1/nothing"},
                                                          {kAnn, kMaps + "?watch=1&resourceVersion=0"},
                                                          {kAnn, "/metrics"},
                                                          {kAnn, "/version"},
                                                          {kAnonymousUser, "/livez"},
                                                          {kAnonymousUser, "/nowhere"}}) {
    server_.user = user;
    const auto sink = server_.send(kGet, target);
    server_.user = kAdmin;
    const std::string schema = header_of(*sink, "X-Kubernetes-PF-FlowSchema-UID");
    EXPECT_EQ(schema.size(), 36U) << target;
    schemas.insert(schema);
    levels.insert(header_of(*sink, "X-Kubernetes-PF-PriorityLevel-UID"));
  }
  EXPECT_EQ(schemas.size(), 4U) << "exempt, global-default, probes, catch-all";
  EXPECT_EQ(levels.size(), 3U);
  const auto before = server_.get(kMaps).headers;
  server_.restart();
  EXPECT_TRUE(std::ranges::includes(
      std::set(schemas),
      std::set{std::string(server_.send(kGet, kMaps)->response->header("X-Kubernetes-PF-FlowSchema-UID"))}))
      << "a name is the same uid in every process";
}

TEST_F(FlowServer, OurOwnControllersAreOfALevel) {
  start();
  const api::UserInfo controllers{"system:kube-controller-manager", {}, {"system:authenticated"}};
  const api::UserInfo scheduler{"system:kube-scheduler", {}, {"system:authenticated"}};
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
  const auto counted = [&](std::string_view schema, std::string_view level) {
    return metrics_say(
        fmt::format("apiserver_flowcontrol_dispatched_requests_total{{flow_schema=\"{}\",priority_level=\"{}\"}} 1\n",
                    schema, level));
  };
  EXPECT_EQ(call_as(controllers, kGet, "/api/v1/nodes").code, 200);
  EXPECT_TRUE(counted("kube-controller-manager", "workload-high"));
  EXPECT_EQ(call_as(scheduler, kGet, "/api/v1/pods").code, 200);
  EXPECT_TRUE(counted("kube-scheduler", "workload-high"));
  EXPECT_EQ(call_as(scheduler, kPost, leases, map_named("spillway-scheduler")).code, 201);
  EXPECT_TRUE(counted("system-leader-election", "leader-election"));
}

TEST_F(FlowServer, TablesAreForThoseWhoMay) {
  start();
  EXPECT_TRUE(page("dump_priority_levels").starts_with("PriorityLevelName, ActiveQueues, IsIdle,"));
  EXPECT_TRUE(page("dump_queues").starts_with("PriorityLevelName, "));
  EXPECT_EQ(server_.get(kPages + "dump_nothing").code, 404);
  EXPECT_EQ(call_as(kAnn, kGet, kPages + "dump_queues").code, 403);
  EXPECT_EQ(call_as(kAdmin, kPost, kPages + "dump_queues").code, 404);
}

TEST_F(FlowServer, MayBeOff) {
  server_.fair = false;
  start(1);
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (int i = 0; i < 20; ++i) sinks.push_back(create_as(kAnonymousUser, "m" + std::to_string(i)));
  server_.run_until_idle();
  for (const auto& sink : sinks) EXPECT_EQ(sink->response->status, 201);
  EXPECT_EQ(header_of(*sinks.front(), "X-Kubernetes-PF-FlowSchema-UID"), "");
  EXPECT_EQ(server_.get(kPages + "dump_queues").code, 404);
}

/// A client cannot choose the flow that its requests count in: not by headers, not by paths.
TEST_F(FlowServer, AFlowIsNotChosenByItsClient) {
  start(2);
  server_.user = kAccountUser;
  int waiting = 0;
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    const auto sink =
        server_.begin(kGet, fmt::format("/api/v1/namespaces/n{}/configmaps?resourceVersion=999999", i), {},
                      {{"user-agent", "u" + std::to_string(i)},
                       {"x-kubernetes-pf-flowschema-uid", std::to_string(i)},
                       {"x-remote-user", "admin"}});
    waiting += !sink->answered();
    refused += sink->answered() && sink->response->status == 429;
  }
  server_.user = kAdmin;
  EXPECT_EQ(page("dump_queues").find("cart"), page("dump_queues").rfind("cart")) << "one flow";
  EXPECT_GT(refused, 10);
  EXPECT_GT(waiting, 0);
}

}  // namespace
}  // namespace spillway::apiserver
