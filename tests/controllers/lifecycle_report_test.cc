// The report predicts the next acts of the controllers.
#include "controllers/controller_set.h"
#include "controllers/nodes/manual_hold.h"
#include "controllers/test_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::controllers {
namespace {

using policy::ReasonCode;
using policy::Verdict;

class Report : public ::testing::Test {
 protected:
  Report() { options.node_lifecycle.hold_config_map = "kube-system/spillway-hold"; }

  /// Nodes a0 a1 …, b0 b1 … in zones a and b.
  void start(int each) {
    for (const char* zone : {"a", "b"}) {
      for (int i = 0; i < each; ++i) {
        cluster.add_node(fmt::format("{}{}", zone, i), {{"topology.kubernetes.io/zone", zone}});
      }
    }
    set = std::make_unique<ControllerSet>(options, Rng(7), telemetry::Log(), metrics);
    cluster.run(*set);
    cluster.advance(seconds(12));
  }

  ZoneStanding zone(const std::string& name) {
    const auto zones = set->report().zones(cluster.now());
    const auto found = std::ranges::find(zones, name, &ZoneStanding::zone);
    return found == zones.end() ? ZoneStanding() : *found;
  }

  policy::Decision node(const std::string& name) { return set->report().explain_node(name, cluster.now()).value(); }

  static const policy::Reason* find(const policy::Decision& decision, ReasonCode code) {
    const auto found = std::ranges::find(decision.reasons, code, &policy::Reason::code);
    return found == decision.reasons.end() ? nullptr : &*found;
  }

  static double number(const policy::Reason& reason, std::string_view fact) {
    const auto found = std::ranges::find(reason.facts, fact, &policy::Fact::name);
    if (found == reason.facts.end()) return -1;
    if (const auto* whole = std::get_if<std::int64_t>(&found->value)) return static_cast<double>(*whole);
    return std::get<double>(found->value);
  }

  void hold(const lifecycle::ManualHold& what) {
    api::Json map = api::Json::object({{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", manual_hold_data(what)}});
    map.make({"metadata", "name"}) = "spillway-hold";
    cluster.create("/api/v1/namespaces/kube-system/configmaps", map);
    cluster.advance(seconds(12));
  }

  ControllerSet::Options options;
  telemetry::Registry metrics;
  TestCluster cluster;
  std::unique_ptr<ControllerSet> set;
};

TEST_F(Report, ZonesInTheirNormalState) {
  start(2);
  EXPECT_EQ(set->report().zones(cluster.now()).size(), 2U);
  const ZoneStanding a = zone("::a");
  EXPECT_EQ(a.state, lifecycle::ZoneState::kNormal);
  EXPECT_EQ(a.counts, (lifecycle::ZoneCounts{2, 0}));
  EXPECT_NEAR(a.nodes_per_second, 0.1, 1e-6);
  EXPECT_EQ(a.waiting, 0);
  EXPECT_EQ(a.brake, std::nullopt);
  EXPECT_EQ(a.next_act_in, std::nullopt);
  EXPECT_EQ(a.next_token_in, Duration::zero());
  const policy::Decision decision = node("a0");
  EXPECT_EQ(decision.verdict, Verdict::kRests);
  EXPECT_EQ(decision.reasons.front().code, ReasonCode::kHeartbeatFresh);
  EXPECT_EQ(decision.reasons.front().facts.front(), (policy::Fact{"from", "lease"}));
  EXPECT_EQ(set->report().explain_node("a9", cluster.now()), std::nullopt);
}

TEST_F(Report, ANodeThatWasNotCheckedYetIsNew) {
  start(1);
  EXPECT_EQ(set->report().zones_document(cluster.now()).find("newNodes")->if_int64(), 0);
  cluster.add_node("c0", {{"topology.kubernetes.io/zone", "c"}});
  cluster.advance(milliseconds(100));
  const api::Json document = set->report().zones_document(cluster.now());
  EXPECT_EQ(document.find("newNodes")->if_int64(), 1);
  EXPECT_EQ(document.find("lookEverySeconds")->if_double(), 5.0);
  const policy::Decision decision = node("c0");
  EXPECT_EQ(decision.verdict, Verdict::kRests);
  EXPECT_EQ(decision.reasons.front().code, ReasonCode::kNeverPosted);
  EXPECT_EQ(number(decision.reasons.front(), "look_every_seconds"), 5);
  cluster.advance(seconds(6));
  EXPECT_EQ(set->report().zones_document(cluster.now()).find("newNodes")->if_int64(), 0);
  EXPECT_EQ(node("c0").reasons.front().code, ReasonCode::kHeartbeatFresh);
}

TEST_F(Report, TheNextActIsAtTheReportedTime) {
  start(8);
  for (int i = 0; i < 4; ++i) cluster.set_up(fmt::format("a{}", i), false);
  while (zone("::a").waiting == 0) cluster.advance(milliseconds(100));
  cluster.advance(milliseconds(200));
  const ZoneStanding a = zone("::a");
  ASSERT_GT(a.waiting, 0);
  ASSERT_TRUE(a.next_act_in.has_value());
  EXPECT_EQ(node(a.next_node).verdict, Verdict::kWaits);
  EXPECT_THAT(cluster.taints(a.next_node), ::testing::Not(::testing::Contains("unreachable:NoExecute")));
  cluster.advance(*a.next_act_in - milliseconds(100));
  EXPECT_THAT(cluster.taints(a.next_node), ::testing::Not(::testing::Contains("unreachable:NoExecute")));
  cluster.advance(milliseconds(300));
  EXPECT_THAT(cluster.taints(a.next_node), ::testing::Contains("unreachable:NoExecute"));
  const std::optional<Duration> token = zone("::a").next_token_in;
  ASSERT_TRUE(token.has_value());
  EXPECT_GT(*token, seconds(9)) << "one every 10 s, and one has just been taken";
  EXPECT_LE(*token, seconds(10));
  const policy::Decision tainted = node(a.next_node);
  EXPECT_EQ(tainted.verdict, Verdict::kActs);
  EXPECT_EQ(tainted.reasons.front().code, ReasonCode::kHeartbeatStale);
  EXPECT_GT(number(tainted.reasons.front(), "silence_seconds"), 50);
}

TEST_F(Report, ThePlaceInTheQueueAndItsTurn) {
  start(8);
  for (int i = 0; i < 4; ++i) cluster.set_up(fmt::format("a{}", i), false);
  while (zone("::a").waiting < 3) cluster.advance(milliseconds(100));
  const policy::Decision last = node("a3");
  const policy::Reason* queued = find(last, ReasonCode::kZoneRateLimited);
  ASSERT_NE(queued, nullptr);
  EXPECT_EQ(number(*queued, "place"), number(*queued, "waiting_nodes"));
  EXPECT_NEAR(number(*queued, "due_seconds"), 30, 1);  // a token every 10 s, two before it
  EXPECT_NE(find(last, ReasonCode::kZoneState), nullptr);
  EXPECT_NE(find(last, ReasonCode::kNodeConditions), nullptr);
}

TEST_F(Report, TheFirstPodThatLeaves) {
  start(4);
  cluster.create("/api/v1/namespaces/default/pods", pod_json("web", "64Mi", "a0"));
  cluster.set_up("a0", false);
  while (!cluster.taints("a0").contains("unreachable:NoExecute")) cluster.advance(milliseconds(200));
  const policy::Decision decision = node("a0");
  const policy::Reason* deletion = find(decision, ReasonCode::kNextDeletion);
  ASSERT_NE(deletion, nullptr);
  EXPECT_EQ(deletion->facts.front(), (policy::Fact{"pod", "default/web"}));
  EXPECT_NEAR(number(*deletion, "due_seconds"), 300, 1.5);
}

TEST_F(Report, AHoldOfOneZoneNamesItself) {
  start(4);
  hold({std::nullopt, {{"::a", "moving racks"}}});
  EXPECT_EQ(zone("::a").brake, (policy::Reason{ReasonCode::kManualHold, {{"zone", "::a"}, {"why", "moving racks"}}}));
  EXPECT_EQ(zone("::b").brake, std::nullopt);
  cluster.set_up("a0", false);
  cluster.set_up("b0", false);
  cluster.advance(seconds(80));
  EXPECT_EQ(cluster.ready_status("a0"), "True");
  EXPECT_EQ(cluster.ready_status("b0"), "Unknown");
  const policy::Decision held = node("a0");
  EXPECT_EQ(held.verdict, Verdict::kWaits);
  EXPECT_NE(find(held, ReasonCode::kManualHold), nullptr);
  cluster.remove("/api/v1/namespaces/kube-system/configmaps/spillway-hold");
  cluster.advance(seconds(12));
  EXPECT_EQ(cluster.ready_status("a0"), "Unknown");
  EXPECT_EQ(zone("::a").brake, std::nullopt);
}

TEST_F(Report, ABareConfigMapHoldsEverything) {
  start(2);
  hold({"", {}});
  cluster.set_up("b0", false);
  cluster.advance(seconds(80));
  EXPECT_EQ(cluster.ready_status("b0"), "True");
  const api::Json document = set->report().zones_document(cluster.now());
  EXPECT_EQ(document.string_at({"brake", "code"}), "manual-hold");
}

TEST_F(Report, ARateHasTheDigitsOfItsFlag) {
  start(2);
  cluster.advance(seconds(6));
  const std::string text = api::to_text(set->report().zones_document(cluster.now()));
  EXPECT_NE(text.find(R"("nodesPerSecond":0.1,)"), text.npos) << text;
}

TEST(ManualHold, FindsTheZoneThatIsMeant) {
  const std::set<std::string> zones{"", "::a", "r1::b", "r2::b", "r2::c"};
  EXPECT_EQ(find_zone("::a", zones).value(), "::a");
  EXPECT_EQ(find_zone("a", zones).value(), "::a");
  EXPECT_EQ(find_zone("c", zones).value(), "r2::c");
  EXPECT_EQ(find_zone("r1::b", zones).value(), "r1::b");
  EXPECT_EQ(find_zone("-", zones).value(), "");
  EXPECT_EQ(find_zone("b", zones).error().text(), "--zone: \"b\" is the label of several zones: r1::b, r2::b");
  EXPECT_EQ(find_zone("r2::d", zones).error().text(),
            "--zone: there is no zone \"r2::d\" (did you mean r2::b?): the nodes are in -, ::a, r1::b, r2::b, r2::c");
  EXPECT_EQ(find_zone("-", {"::a"}).error().text(), "--zone: there is no zone \"-\": the nodes are in ::a");
  EXPECT_EQ(find_zone("a", {}).error().text(), "--zone: there is no zone \"a\": no nodes are known");
  EXPECT_EQ(find_zone("nozone", {"::a"}).error().code, ErrorCode::kInvalid);
}

TEST(ManualHold, SurvivesItsConfigMap) {
  const lifecycle::ManualHold holds[] = {{"all of it", {}}, {"", {}}, {std::nullopt, {{"", "no zone"}, {"r::a", ""}}}};
  for (const lifecycle::ManualHold& hold : holds) {
    EXPECT_EQ(manual_hold_of(api::Json::object({{"data", manual_hold_data(hold)}})), hold);
  }
  EXPECT_EQ(manual_hold_of(api::Json::object()).everything, "");
}

}  // namespace
}  // namespace spillway::controllers
