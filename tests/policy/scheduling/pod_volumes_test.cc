// The filters that ask about a pod's volumes, by rows. Source: Kubernetes docs, "Persistent Volumes", Access Modes;
// "Node-specific Volume Limits"; "Storage Classes", Allowed Topologies; upstream's plug-ins VolumeRestrictions,
// NodeVolumeLimits, VolumeBinding, VolumeZone of 1.32.
#include "policy/scheduling/pod_volumes.h"

#include "policy/scheduling/place.h"
#include "policy/scheduling/preemption.h"
#include "policy/scheduling/volume_world.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::scheduling {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Strings = std::vector<std::string>;

TEST(PodVolumes, DisksOfOldTypesAreSharedToReadAtMost) {
  struct Row {
    std::string wanted;
    std::string there;
    bool conflict;
  };

  const std::vector<Row> rows{
      {R"({"gcePersistentDisk":{"pdName":"a"}})", R"({"gcePersistentDisk":{"pdName":"a"}})", true},
      {R"({"gcePersistentDisk":{"pdName":"a"}})", R"({"gcePersistentDisk":{"pdName":"b"}})", false},
      {R"({"gcePersistentDisk":{"pdName":"a","readOnly":true}})", R"({"gcePersistentDisk":{"pdName":"a"}})", true},
      {R"({"gcePersistentDisk":{"pdName":"a","readOnly":true}})",
       R"({"gcePersistentDisk":{"pdName":"a","readOnly":true}})", false},
      {R"({"awsElasticBlockStore":{"volumeID":"a","readOnly":true}})",
       R"({"awsElasticBlockStore":{"volumeID":"a","readOnly":true}})", true},
      {R"({"awsElasticBlockStore":{"volumeID":"a"}})", R"({"gcePersistentDisk":{"pdName":"a"}})", false},
      {R"({"iscsi":{"iqn":"q","lun":1}})", R"({"iscsi":{"iqn":"q","lun":2}})", true},
      {R"({"iscsi":{"iqn":"q","readOnly":true}})", R"({"iscsi":{"iqn":"q","readOnly":true}})", false},
      {R"({"rbd":{"monitors":["m1","m2"],"pool":"p","image":"i"}})",
       R"({"rbd":{"monitors":["m2","m3"],"pool":"p","image":"i"}})", true},
      {R"({"rbd":{"monitors":["m1"],"pool":"p","image":"i"}})", R"({"rbd":{"monitors":["m3"],"pool":"p","image":"i"}})",
       false},
      {R"({"rbd":{"monitors":["m1"],"pool":"p","image":"i"}})", R"({"rbd":{"monitors":["m1"],"pool":"o","image":"i"}})",
       false},
      {R"({"rbd":{"monitors":["m1"],"pool":"p","image":"i","readOnly":true}})",
       R"({"rbd":{"monitors":["m1"],"pool":"p","image":"i","readOnly":true}})", false},
      {R"({"hostPath":{"path":"/a"}})", R"({"hostPath":{"path":"/a"}})", false},
      {R"({"emptyDir":{},"gcePersistentDisk":{"pdName":"a"}})", R"({"gcePersistentDisk":{"pdName":"a"}})", true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.wanted + " beside " + row.there);
    VolumeWorld world;
    world.add_node("n1");
    world.add_node("n2");
    world.run("n1", pod_with_volume("there", row.there));
    const Strings want = row.conflict ? Strings{"n1: node(s) had no available disk"} : Strings{};
    EXPECT_EQ(world.refusals(pod_with_volume("new", row.wanted)), want);
  }
}

constexpr std::string_view kUsed =
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

TEST(PodVolumes, AClaimForOnePodIsUsedByOne) {
  VolumeWorld world;
  world.add_node("n1");
  world.add_node("n2");
  world.add_claim("mine", "v1").access_modes = {"ReadWriteOncePod"};
  world.add_claim("ours", "v2").access_modes = {"ReadWriteOnce"};
  EXPECT_THAT(world.refusals(pod_with_claims("new", {"mine", "ours"})), IsEmpty());
  world.run("n1", pod_with_claims("other", {"ours"}));
  EXPECT_THAT(world.refusals(pod_with_claims("new", {"mine", "ours"})), IsEmpty());
  api::Pod elsewhere = pod_with_claims("elsewhere", {"mine"});
  elsewhere.metadata.ns = "another";
  world.run("n1", elsewhere);
  EXPECT_THAT(world.refusals(pod_with_claims("new", {"mine"})), IsEmpty()) << "a claim of that name elsewhere";
  world.run("n1", pod_with_claims("user", {"mine"}));
  EXPECT_THAT(world.refusals(pod_with_claims("new", {"mine"})),
              ElementsAre(fmt::format("n1: {}", kUsed), fmt::format("n2: {}", kUsed)));
  FilterSet left_out;
  left_out.insert(Filter::kVolumeRestrictions);
  EXPECT_THAT(world.refusals(pod_with_claims("new", {"mine"}), left_out), IsEmpty());
}

TEST(PodVolumes, WhoUsesTheClaimMayBePreempted) {
  VolumeWorld world;
  Surroundings around;
  world.add_node("n1");
  world.add_node("n2");
  world.add_claim("mine", "v1").access_modes = {"ReadWriteOncePod"};
  const auto user = std::make_shared<api::Pod>(pod_with_claims("user", {"mine"}));
  const auto bystander = std::make_shared<api::Pod>(pod_with_claims("bystander", {}));
  for (const auto& pod : {user, bystander}) {
    world.run("n1", *pod);
    around.add("n1", *pod);
  }
  world.run("n2", *bystander);
  around.add("n2", *bystander);
  api::Pod asking = pod_with_claims("new", {"mine"});
  asking.spec.priority = 100;
  const PodVolumes volumes(asking, world.view());
  const VolumeFilter filter = volumes.filter();
  const Placement refused = place_pod(asking, world.nodes, default_profile(), filter, around);
  EXPECT_EQ(refused.message, fmt::format("0/2 nodes are available: 2 {}.", kUsed));
  EXPECT_THAT(refused.resolvable, ElementsAre("n1", "n2"));
  const PodsOn pods_on = [&](const std::string& node) {
    return node == "n1" ? std::vector<PodPtr>{user, bystander} : std::vector<PodPtr>{bystander};
  };
  const BudgetsByNamespace budgets;
  const Profile profile;
  const Preemption decided = decide_preemption(asking, refused,
                                               {.nodes = world.nodes,
                                                .pods_on = pods_on,
                                                .budgets = budgets,
                                                .around = around,
                                                .volumes = filter,
                                                .profile = profile});
  ASSERT_NE(decided.choice(), nullptr);
  EXPECT_EQ(decided.candidates.size(), 1U) << "whoever leaves n2 frees nothing";
  EXPECT_EQ(decided.choice()->node, "n1");
  EXPECT_THAT(decided.choice()->victims, ElementsAre(PodPtr(user)));
}

TEST(PodVolumes, ANodeHoldsAsManyVolumesAsItsDriverSays) {
  struct Row {
    std::string name;
    std::optional<std::int32_t> limit;
    Strings used;      // by pods of the node: claims
    Strings attached;  // volumes
    Strings wanted;    // claims
    bool refused;
  };

  const std::vector<Row> rows{
      {"room for one", 3, {"a", "b"}, {}, {"c"}, false},
      {"no room", 2, {"a", "b"}, {}, {"c"}, true},
      {"no limit", std::nullopt, {"a", "b"}, {}, {"c"}, false},
      {"limit zero", 0, {}, {}, {"c"}, true},
      {"two of one", 3, {"a", "b"}, {}, {"c", "d"}, true},
      {"a volume that is there", 2, {"a", "b"}, {}, {"a"}, false},
      {"another claim of a volume that is there", 2, {"a", "b"}, {}, {"a-too"}, false},
      {"still attached for a pod that has gone", 2, {"a"}, {"b"}, {"c"}, true},
      {"attached for a pod that is there", 2, {"a"}, {"a"}, {"c"}, false},
      {"attached already", 2, {"a"}, {"c"}, {"c"}, false},
      {"attached, but what is unknown", 2, {"a"}, {"gone"}, {"c"}, false},
      {"of another driver", 2, {"a", "b"}, {}, {"other"}, false},
      {"those of another driver do not count", 2, {"a", "other"}, {}, {"c"}, false},
      {"without a driver", 2, {"a", "b"}, {}, {"local"}, false},
      {"an unknown claim of a neighbour", 2, {"a", "unknown"}, {}, {"c"}, false},
      {"a volume that is still to be made", 2, {"a", "b"}, {}, {"late"}, true},
      {"such volumes of neighbours", 2, {"a", "late"}, {}, {"c"}, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    VolumeWorld world;
    world.add_node("n1", {}, {{"disk.example.com", row.limit}, {"unused.example.com", 0}});
    for (const std::string name : {"a", "b", "c", "d"}) world.add_claim(name, name);
    world.add_claim("a-too", "a");
    world.add_claim("other", "o", "other.example.com");
    world.add_claim("local", "l", "");
    api::PersistentVolumeClaim& late = world.add_claim("late", "x");
    late.volume_name.clear();
    late.metadata.annotations.clear();
    late.status.phase = "Pending";
    late.storage_class_name = "slow";
    world.classes["slow"] = std::make_shared<api::StorageClass>();
    world.classes["slow"]->provisioner = "disk.example.com";
    world.classes["slow"]->volume_binding_mode = "WaitForFirstConsumer";
    for (const std::string& claim : row.used) world.run("n1", pod_with_claims("user of " + claim, {claim}));
    for (const std::string& volume : row.attached) world.attach("n1", volume);
    world.attach("n2", "d");
    const Strings want = row.refused ? Strings{"n1: node(s) exceed max volume count"} : Strings{};
    EXPECT_EQ(world.refusals(pod_with_claims("new", row.wanted)), want);
    FilterSet left_out;
    left_out.insert(Filter::kNodeVolumeLimits);
    EXPECT_THAT(world.refusals(pod_with_claims("new", row.wanted), left_out), IsEmpty());
  }
}

TEST(PodVolumes, ALimitIsSaidWithItsNumbers) {
  VolumeWorld world;
  world.add_node("n1", {}, {{"disk.example.com", 1}});
  world.add_claim("a", "a");
  world.add_claim("b", "b");
  world.run("n1", pod_with_claims("user", {"a"}));
  const PodVolumes volumes(pod_with_claims("new", {"b"}), world.view());
  const auto no = volumes.filter()(world.nodes.at("n1"), {});
  ASSERT_TRUE(no);
  EXPECT_EQ(no->filter, Filter::kNodeVolumeLimits);
  EXPECT_TRUE(no->resolvable()) << "a pod that leaves takes its volumes with it";
  const std::vector<policy::Fact>& facts = no->misfits.front().reason.facts;
  const std::vector<policy::Fact> want{{"volumes", std::string("node(s) exceed max volume count")},
                                       {"driver", std::string("disk.example.com")},
                                       {"attached", std::int64_t{1}},
                                       {"limit", std::int64_t{1}}};
  EXPECT_EQ(facts, want);
}

TEST(PodVolumes, AVolumeIsInItsZone) {
  const std::string zone = "topology.kubernetes.io/zone";
  const std::string region = "topology.kubernetes.io/region";
  const std::string old_zone = "failure-domain.beta.kubernetes.io/zone";
  const std::string old_region = "failure-domain.beta.kubernetes.io/region";

  struct Row {
    api::StringMap volume;
    api::StringMap node;
    bool fits;
  };

  const std::vector<Row> rows{
      {{}, {{zone, "a"}}, true},
      {{{zone, "a"}}, {{zone, "a"}}, true},
      {{{zone, "a"}}, {{zone, "b"}}, false},
      {{{zone, "a"}}, {}, true},
      {{{zone, "a"}}, {{"hostname", "h"}}, true},
      {{{zone, "a"}}, {{region, "r"}}, false},
      {{{zone, "a"}, {region, "r"}}, {{zone, "a"}, {region, "r"}}, true},
      {{{zone, "a"}, {region, "r"}}, {{zone, "a"}, {region, "s"}}, false},
      {{{zone, "a__b"}}, {{zone, "b"}}, true},
      {{{zone, "a__b"}}, {{zone, "c"}}, false},
      {{{zone, "a__"}}, {{zone, "c"}}, true},
      {{{zone, ""}}, {{zone, "c"}}, true},
      {{{old_zone, "a"}}, {{zone, "a"}}, true},
      {{{old_zone, "a"}}, {{zone, "b"}}, false},
      {{{old_zone, "a"}}, {{old_zone, "a"}, {zone, "b"}}, true},
      {{{zone, "a"}}, {{old_zone, "a"}}, false},
      {{{old_region, "r"}}, {{region, "r"}}, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(::testing::PrintToString(row.volume) + " on " + ::testing::PrintToString(row.node));
    VolumeWorld world;
    world.add_node("n1", row.node);
    world.add_claim("c", "v");
    world.volumes["v"]->metadata.labels = row.volume;
    const Strings want = row.fits ? Strings{} : Strings{"n1: node(s) had no available volume zone"};
    EXPECT_EQ(world.refusals(pod_with_claims("new", {"c"})), want);
  }
}

TEST(PodVolumes, AreMadeWhereTheirClassAllows) {
  struct Row {
    std::string topologies;  // allowedTopologies of the class
    std::string provisioner;
    std::string selected;  // node, by the claim's annotation
    Strings allowed;       // allowed ones of n1 in zone a of rack 1, n2 in zone b, n3 without labels
  };

  const std::string term_a = R"({"matchLabelExpressions":[{"key":"zone","values":["a"]}]})";
  const std::vector<Row> rows{
      {"null", "disk.example.com", "", {"n1", "n2", "n3"}},
      {"[]", "disk.example.com", "", {"n1", "n2", "n3"}},
      {"null", "", "", {}},
      {"null", "kubernetes.io/no-provisioner", "", {}},
      {"[" + term_a + "]", "disk.example.com", "", {"n1"}},
      {R"([{"matchLabelExpressions":[{"key":"zone","values":["a","b"]}]}])", "disk.example.com", "", {"n1", "n2"}},
      {"[" + term_a + R"(,{"matchLabelExpressions":[{"key":"zone","values":["b"]}]}])",
       "disk.example.com",
       "",
       {"n1", "n2"}},
      {R"([{"matchLabelExpressions":[{"key":"zone","values":["a"]},{"key":"rack","values":["2"]}]}])",
       "disk.example.com",
       "",
       {}},
      {R"([{"matchLabelExpressions":[]}])", "disk.example.com", "", {}},
      {R"([{}])", "disk.example.com", "", {}},
      {"null", "disk.example.com", "n2", {"n2"}},
      {"[" + term_a + "]", "disk.example.com", "n2", {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.topologies + " by " + row.provisioner + " for " + row.selected);
    VolumeWorld world;
    world.add_node("n1", {{"zone", "a"}, {"rack", "1"}});
    world.add_node("n2", {{"zone", "b"}});
    world.add_node("n3");
    api::PersistentVolumeClaim& claim = world.add_claim("c", "v");
    claim.volume_name.clear();
    claim.metadata.annotations.clear();
    if (!row.selected.empty()) claim.metadata.annotations[std::string(api::kSelectedNode)] = row.selected;
    claim.status.phase = "Pending";
    claim.storage_class_name = "slow";
    world.classes["slow"] = std::make_shared<api::StorageClass>();
    world.classes["slow"]->provisioner = row.provisioner;
    world.classes["slow"]->volume_binding_mode = "WaitForFirstConsumer";
    world.classes["slow"]->allowed_topologies = api::parse_json(row.topologies).value();
    Strings want;
    for (const std::string node : {"n1", "n2", "n3"}) {
      if (std::ranges::find(row.allowed, node) != row.allowed.end()) continue;
      want.push_back(node + ": node(s) didn't find available persistent volumes to bind");
    }
    EXPECT_EQ(world.refusals(pod_with_claims("new", {"c"})), want);
  }
}

TEST(PodVolumes, FiltersAskInTheirOrder) {
  VolumeWorld world;
  world.add_node("n1", {{"topology.kubernetes.io/zone", "a"}}, {{"disk.example.com", 0}});
  world.add_claim("c", "v").access_modes = {"ReadWriteOncePod"};
  world.volumes["v"]->metadata.labels = {{"topology.kubernetes.io/zone", "b"}};
  world.volumes["v"]->required_nodes =
      api::parse_json(
          R"({"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["x"]}]}]})")
          .value();
  world.run("n1", pod_with_claims("user", {"c"}));
  world.claims["d"] = world.claims["c"];
  const api::Pod asking = pod_with_claims("new", {"c"});
  FilterSet left_out;
  Strings said;
  for (const Filter filter :
       {Filter::kVolumeRestrictions, Filter::kNodeVolumeLimits, Filter::kVolumeBinding, Filter::kVolumeZone}) {
    for (const std::string& each : world.refusals(asking, left_out)) said.push_back(each);
    left_out.insert(filter);
  }
  EXPECT_THAT(said,
              ElementsAre(fmt::format("n1: {}", kUsed), "n1: node(s) had volume node affinity conflict",
                          "n1: node(s) had volume node affinity conflict", "n1: node(s) had no available volume zone"))
      << "the volume is on the node, so that its limit has nothing to say";
  EXPECT_THAT(world.refusals(asking, left_out), IsEmpty());
}

}  // namespace
}  // namespace spillway::scheduling
