// Do the claims of a pod let it run on a node? Source: Kubernetes docs, "Scheduling Framework", VolumeBinding.
#include "policy/storage/pod_claims.h"

#include <gtest/gtest.h>

namespace spillway::storage {
namespace {

class PodClaimsTest : public ::testing::Test {
 protected:
  PodClaimsTest() {
    pod.metadata = {.name = "p", .ns = "shop"};
    api::Volume mounted{.name = "v", .source = "persistentVolumeClaim"};
    mounted.definition = api::parse_json(R"({"claimName":"c"})").value();
    pod.spec.volumes = {mounted};
    claim->metadata = {.name = "c", .ns = "shop", .uid = "u"};
    claim->storage_class_name = "late";
    claim->requests["storage"] = api::parse_quantity("1Gi").value();
    claim->access_modes = {"ReadWriteOnce"};
    volume->metadata = {.name = "v1"};
    volume->capacity = claim->requests;
    volume->access_modes = claim->access_modes;
    volume->storage_class_name = "late";
    volume->status.phase = "Available";
    volume->required_nodes =
        api::parse_json(
            R"({"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]})")
            .value();
    late->volume_binding_mode = "WaitForFirstConsumer";
  }

  PodClaims claims_now() {
    return claims_for(pod, {.claim = [this](const auto& ns,
                                            const auto& name) { return ns == "shop" && name == "c" ? claim : nullptr; },
                            .volume = [this](const auto& name) { return name == "v1" ? volume : nullptr; },
                            .storage_class = [this](const auto& name) { return name == "late" ? late : nullptr; },
                            .volumes_for = [this](const auto&) { return std::vector<VolumePtr>{volume}; }});
  }

  void bind() {
    claim->volume_name = "v1";
    claim->metadata.annotations[std::string(api::kClaimBindCompleted)] = "yes";
    claim->status.phase = "Bound";
  }

  std::string refusal(const std::string& node, const std::set<std::string>& taken = {}) {
    return plan_claims(claims_now(), {.name = node}, taken).refusal;
  }

  api::Pod pod;
  std::shared_ptr<api::PersistentVolumeClaim> claim = std::make_shared<api::PersistentVolumeClaim>();
  std::shared_ptr<api::PersistentVolume> volume = std::make_shared<api::PersistentVolume>();
  std::shared_ptr<api::StorageClass> late = std::make_shared<api::StorageClass>();
};

TEST_F(PodClaimsTest, SayWhyAPodRunsNowhere) {
  late->volume_binding_mode = "Immediate";
  EXPECT_EQ(claims_now().problem, "pod has unbound immediate PersistentVolumeClaims");
  claim->metadata.deletion_timestamp = WallTime();
  EXPECT_EQ(claims_now().problem, "persistentvolumeclaim \"c\" is being deleted");
  claim->metadata.deletion_timestamp.reset();
  bind();
  claim->status.phase = "Lost";
  EXPECT_EQ(claims_now().problem, "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"v1\"");
  pod.spec.volumes.front().definition = api::parse_json(R"({"claimName":"other"})").value();
  EXPECT_EQ(claims_now().problem, "persistentvolumeclaim \"other\" not found");
  pod.spec.volumes.clear();
  EXPECT_EQ(claims_now().problem, "");
}

TEST_F(PodClaimsTest, ABoundVolumeSaysWhere) {
  bind();
  EXPECT_EQ(refusal("n1"), "");
  EXPECT_EQ(refusal("n2"), "node(s) had volume node affinity conflict");
}

/// The annotation and the name are the user's word, the phase is not.
TEST_F(PodClaimsTest, AClaimThatOnlySaysItIsBoundIsNot) {
  bind();
  claim->status.phase = "Pending";
  EXPECT_EQ(claims_now().problem, "pod has unbound immediate PersistentVolumeClaims");
}

TEST_F(PodClaimsTest, AnUnboundOneIsFoundOnANode) {
  const ClaimPlan plan = plan_claims(claims_now(), {.name = "n1"}, {});
  ASSERT_EQ(plan.bindings.size(), 1U);
  EXPECT_EQ(plan.bindings.front().second->metadata.name, "v1");
  EXPECT_EQ(refusal("n2"), "node(s) didn't find available persistent volumes to bind");
  EXPECT_EQ(refusal("n1", {"v1"}), "node(s) didn't find available persistent volumes to bind");
}

}  // namespace
}  // namespace spillway::storage
