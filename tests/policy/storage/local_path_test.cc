// The class local-path: which claims get a directory, what the volume says, which directory is removed.
#include "policy/storage/local_path.h"

#include "api/codec/codec.h"

#include <gtest/gtest.h>

namespace spillway::storage {
namespace {

using api::Json;

const LocalFolders kFolders{{"n1", "/state/n1/local-volumes"}, {"n2", "/state/n2/local-volumes"}};

api::StorageClass local_class(std::string_view mode = api::kWaitForFirstConsumer) {
  api::StorageClass made;
  made.metadata.name = "local-path";
  made.provisioner = kLocalPathProvisioner;
  made.volume_binding_mode = mode;
  return made;
}

api::PersistentVolumeClaim waiting_claim() {
  api::PersistentVolumeClaim made;
  made.metadata = {.name = "data", .ns = "shop", .uid = "0b7e6f0c-1d2e-4a5b-8c9d-0123456789ab"};
  made.metadata.annotations = {{std::string(api::kStorageProvisioner), std::string(kLocalPathProvisioner)},
                               {std::string(api::kSelectedNode), "n1"}};
  made.access_modes = {"ReadWriteOnce"};
  made.requests["storage"] = api::parse_quantity("1Gi").value();
  made.storage_class_name = "local-path";
  return made;
}

ProvisionDecision decided(const api::PersistentVolumeClaim& claim) {
  const api::StorageClass made = local_class();
  return decide_provision(claim, &made, kFolders);
}

using Act = ProvisionDecision::Act;

TEST(LocalPath, MakesAVolumeOnTheNodeThatTheSchedulerSelected) {
  EXPECT_EQ(decided(waiting_claim()), (ProvisionDecision{Act::kMake, "n1", {}}));
}

TEST(LocalPath, IgnoresClaimsOfOthers) {
  api::PersistentVolumeClaim claim = waiting_claim();
  EXPECT_EQ(decide_provision(claim, nullptr, kFolders).act, Act::kNothing);
  api::StorageClass other = local_class();
  other.provisioner = "example.com/disks";
  EXPECT_EQ(decide_provision(claim, &other, kFolders).act, Act::kNothing);
  claim.metadata.annotations[std::string(api::kSelectedNode)] = "elsewhere";
  EXPECT_EQ(decided(claim).act, Act::kNothing);
  claim.metadata.annotations.erase(std::string(api::kSelectedNode));
  EXPECT_EQ(decided(claim).act, Act::kNothing);
}

TEST(LocalPath, IgnoresClaimsThatNeedNoVolume) {
  api::PersistentVolumeClaim claim = waiting_claim();
  claim.volume_name = "v";
  EXPECT_EQ(decided(claim).act, Act::kNothing);
  claim = waiting_claim();
  claim.metadata.annotations.erase(std::string(api::kStorageProvisioner));
  EXPECT_EQ(decided(claim).act, Act::kNothing) << "the binder has not found yet that no volume fits";
  claim = waiting_claim();
  claim.metadata.deletion_timestamp = WallTime{};
  EXPECT_EQ(decided(claim).act, Act::kNothing);
}

TEST(LocalPath, SaysWhatADirectoryCannotBe) {
  api::PersistentVolumeClaim claim = waiting_claim();
  claim.volume_mode = "Block";
  EXPECT_EQ(decided(claim),
            (ProvisionDecision{Act::kRefuse, {}, "a directory cannot be a volume with volumeMode Block"}));
  claim = waiting_claim();
  claim.access_modes = {"ReadWriteOncePod"};
  EXPECT_EQ(decided(claim).act, Act::kMake);
  claim.access_modes = {"ReadWriteOnce", "ReadWriteMany"};
  EXPECT_EQ(decided(claim).why,
            "access mode ReadWriteMany is not supported, because the directory is on one node: use ReadWriteOnce or "
            "ReadWriteOncePod");
  claim = waiting_claim();
  claim.selector = Json::object({{"matchLabels", Json::object({{"a", "b"}})}});
  EXPECT_EQ(decided(claim).why, "claim.Spec.Selector is not supported");
  const api::StorageClass immediate = local_class("Immediate");
  EXPECT_EQ(decide_provision(waiting_claim(), &immediate, kFolders).why,
            "no node is selected: StorageClass \"local-path\" needs volumeBindingMode WaitForFirstConsumer");
}

/// The uid is the server's own, but a server may be any.
TEST(LocalPath, MakesNoDirectoryOfAStrangeName) {
  api::PersistentVolumeClaim claim = waiting_claim();
  for (const char* uid : {"", "../../etc", "a/b", "a\nb", "A", ".."}) {
    claim.metadata.uid = uid;
    EXPECT_EQ(decided(claim).act, Act::kRefuse) << uid;
  }
  claim.metadata.uid = std::string(65, 'a');
  EXPECT_EQ(decided(claim).act, Act::kRefuse);
}

api::PersistentVolume decoded(const Json& document) {
  return api::decode<api::PersistentVolume>(document).value();
}

TEST(LocalPath, TheVolumeIsReservedForTheClaimAndReachedFromItsNode) {
  const Json kept = Json::object({{"reclaimPolicy", "Retain"}});
  const api::PersistentVolume volume = decoded(local_volume(waiting_claim(), kept, "n1", kFolders.at("n1")));
  EXPECT_EQ(volume.metadata.name, "pvc-0b7e6f0c-1d2e-4a5b-8c9d-0123456789ab");
  EXPECT_EQ(volume.capacity.at("storage").to_string(), "1Gi");
  EXPECT_EQ(volume.reclaim_policy, "Retain");
  EXPECT_EQ(volume.storage_class_name, "local-path");
  EXPECT_EQ(volume.claim_ref->name, "data");
  EXPECT_EQ(volume.claim_ref->uid, waiting_claim().metadata.uid);
  EXPECT_EQ(volume.local.string_at({"path"}), "/state/n1/local-volumes/" + volume.metadata.name);
  EXPECT_EQ(
      api::to_text(volume.required_nodes),
      R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n1"]}]}]})");
  EXPECT_EQ(decoded(local_volume(waiting_claim(), Json::object(), "n1", kFolders.at("n1"))).reclaim_policy, "Delete");
}

api::PersistentVolume released() {
  api::PersistentVolume made =
      decoded(local_volume(waiting_claim(), Json::object({{"reclaimPolicy", "Delete"}}), "n1", kFolders.at("n1")));
  made.status.phase = "Released";
  return made;
}

TEST(LocalPath, RemovesReleasedVolumesOfPolicyDelete) {
  using enum RemovalDecision::Act;
  EXPECT_EQ(decide_removal(released(), kFolders), (RemovalDecision{kRemove, kFolders.at("n1"), {}}));
  api::PersistentVolume volume = released();
  volume.reclaim_policy = "Retain";
  EXPECT_EQ(decide_removal(volume, kFolders).act, kNothing);
  volume = released();
  volume.status.phase = "Bound";
  EXPECT_EQ(decide_removal(volume, kFolders).act, kNothing);
  EXPECT_EQ(decide_removal(released(), {{"n2", "/state/n2/local-volumes"}}).act, kNothing) << "its node is elsewhere";
  volume = released();
  volume.metadata.annotations.erase(std::string(api::kProvisionedBy));
  EXPECT_EQ(decide_removal(volume, kFolders).act, kNothing);
}

TEST(LocalPath, RemovesNoOtherDirectory) {
  using enum RemovalDecision::Act;
  api::PersistentVolume volume = released();
  for (const char* path : {"/etc", "/state/n1/local-volumes", "/state/n1/local-volumes/../pods", ""}) {
    volume.local = Json::object({{"path", path}});
    EXPECT_EQ(decide_removal(volume, kFolders).act, kRefuse) << path;
  }
  volume = released();
  volume.metadata.name = "pods";
  volume.local = Json::object({{"path", "/state/n1/local-volumes/pods"}});
  EXPECT_EQ(decide_removal(volume, kFolders).act, kRefuse);
}

}  // namespace
}  // namespace spillway::storage
