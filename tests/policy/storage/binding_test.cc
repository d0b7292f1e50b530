// Claims and volumes bound to each other one write after the other, and what is said of those that are not.
// Source: Kubernetes docs, "Persistent Volumes".
#include "api/codec/codec.h"
#include "policy/storage/claim_rules.h"
#include "policy/storage/volume_match.h"
#include "policy/storage/volume_rules.h"

#include <gtest/gtest.h>

namespace spillway::storage {
namespace {

using api::Json;

api::PersistentVolumeClaim claim(const std::string& name, const std::string& size = "1Gi") {
  api::PersistentVolumeClaim made;
  made.metadata = {.name = name, .ns = "shop", .uid = "uid-" + name, .resource_version = "7"};
  made.access_modes = {"ReadWriteOnce"};
  made.requests["storage"] = api::parse_quantity(size).value();
  made.storage_class_name = "";
  made.status.phase = "Pending";
  return made;
}

api::PersistentVolume volume(const std::string& name, const std::string& size = "1Gi") {
  api::PersistentVolume made;
  made.metadata = {.name = name, .uid = "uid-" + name, .resource_version = "9"};
  made.access_modes = {"ReadWriteOnce"};
  made.capacity["storage"] = api::parse_quantity(size).value();
  made.reclaim_policy = "Retain";
  made.status.phase = "Available";
  return made;
}

VolumePtr shared(api::PersistentVolume one) {
  return std::make_shared<const api::PersistentVolume>(std::move(one));
}

std::string chosen(const api::PersistentVolumeClaim& one, const std::vector<VolumePtr>& volumes,
                   MatchRules rules = {}) {
  const VolumePtr found = find_volume(one, volumes, rules);
  return found ? found->metadata.name : "";
}

api::PersistentVolume reserved(api::PersistentVolume one, const api::PersistentVolumeClaim& by, bool with_uid) {
  one.claim_ref = {.kind = "PersistentVolumeClaim", .ns = by.metadata.ns, .name = by.metadata.name};
  if (with_uid) one.claim_ref->uid = by.metadata.uid;
  return one;
}

TEST(VolumeMatch, TakesTheSmallestThatFits) {
  const auto volumes = std::vector{shared(volume("big", "5Gi")), shared(volume("tiny", "512Mi")),
                                   shared(volume("z-fits", "2Gi")), shared(volume("fits", "2Gi"))};
  EXPECT_EQ(chosen(claim("c"), volumes), "fits");
  EXPECT_EQ(chosen(claim("c", "3Gi"), volumes), "big");
  EXPECT_EQ(chosen(claim("c", "6Gi"), volumes), "");
  const std::set<std::string> taken{"fits"};
  EXPECT_EQ(chosen(claim("c"), volumes, {.taken = &taken}), "z-fits");
}

TEST(VolumeMatch, PrefersFewerAccessModesToLessSpace) {
  api::PersistentVolume many = volume("many", "1Gi");
  many.access_modes = {"ReadWriteOnce", "ReadOnlyMany"};
  EXPECT_EQ(chosen(claim("c"), {shared(many), shared(volume("one", "9Gi"))}), "one");
  api::PersistentVolumeClaim shared_claim = claim("c");
  shared_claim.access_modes = {"ReadOnlyMany"};
  EXPECT_EQ(chosen(shared_claim, {shared(many), shared(volume("one", "9Gi"))}), "many");
}

TEST(VolumeMatch, AsksForClassModeLabelsAndAFreeVolume) {
  struct Row {
    const char* what;
    void (*change)(api::PersistentVolume&);
  };

  const Row rows[] = {
      {"class", [](api::PersistentVolume& v) { v.storage_class_name = "fast"; }},
      {"mode", [](api::PersistentVolume& v) { v.volume_mode = "Block"; }},
      {"phase", [](api::PersistentVolume& v) { v.status.phase = "Released"; }},
      {"new", [](api::PersistentVolume& v) { v.status.phase = "Pending"; }},
      {"deleted", [](api::PersistentVolume& v) { v.metadata.deletion_timestamp = WallTime(); }},
      {"another's", [](api::PersistentVolume& v) { v = reserved(v, claim("other"), true); }},
      {"a namesake's", [](api::PersistentVolume& v) { v = reserved(v, claim("c"), true), v.claim_ref->uid = "old"; }},
  };
  for (const Row& row : rows) {
    api::PersistentVolume one = volume("v");
    row.change(one);
    EXPECT_EQ(chosen(claim("c"), {shared(one)}), "") << row.what;
  }
  api::PersistentVolumeClaim picky = claim("c");
  picky.selector = api::parse_json(R"({"matchLabels":{"disk":"ssd"}})").value();
  EXPECT_EQ(chosen(picky, {shared(volume("v"))}), "");
  api::PersistentVolume labelled = volume("v");
  labelled.metadata.labels["disk"] = "ssd";
  EXPECT_EQ(chosen(picky, {shared(labelled)}), "v");
}

TEST(VolumeMatch, AReservedVolumeIsTakenWhateverItsClass) {
  api::PersistentVolume own = reserved(volume("own", "9Gi"), claim("c"), false);
  own.storage_class_name = "other";
  EXPECT_EQ(chosen(claim("c"), {shared(volume("fits")), shared(own)}), "own");
  EXPECT_EQ(chosen(claim("c"), {shared(volume("fits")), shared(own)}, {.delayed = true}), "own");
  EXPECT_EQ(chosen(claim("c"), {shared(volume("fits"))}, {.delayed = true}), "");
}

TEST(VolumeMatch, FindsWhatANodeReaches) {
  api::PersistentVolume here = volume("here");
  here.required_nodes =
      api::parse_json(
          R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"host","operator":"In","values":["n1"]}]}]})")
          .value();
  api::ObjectMeta n1{.name = "n1", .labels = {{"host", "n1"}}};
  api::ObjectMeta n2{.name = "n2", .labels = {{"host", "n2"}}};
  const auto from = [](const api::ObjectMeta& node) {
    return MatchRules{.reached = [node](const auto& one) { return is_reached_from(one, node); }, .delayed = true};
  };
  EXPECT_EQ(chosen(claim("c"), {shared(here)}, from(n1)), "here");
  EXPECT_EQ(chosen(claim("c"), {shared(here)}, from(n2)), "");
  EXPECT_EQ(chosen(claim("c"), {shared(here)}), "here") << "immediate binding looks at no node";
}

/// A small world that applies the steps of the rules until there are none.
struct World {
  api::PersistentVolumeClaim one = claim("c");
  std::optional<api::PersistentVolume> other = volume("v");
  std::vector<WriteTo> writes;
  std::vector<std::string> said;

  template <typename T>
  static void apply(T& object, const Json& patch) {
    Json document = api::encode(object);
    merge(document, patch);
    object = api::decode<T>(document).value();
  }

  static void merge(Json& document, const Json& patch) {
    for (const auto& member : *patch.if_object()) {
      if (member.value.is_null()) {
        document.erase({member.key});
      } else if (member.value.is_object()) {
        merge(document.make({member.key}), member.value);
      } else {
        document[member.key] = member.value;
      }
    }
  }

  void run() {
    for (int i = 0; i < 10; ++i) {
      ClaimView view{.claim = &one};
      if (other) {
        view.volumes = {shared(*other)};
        if (one.volume_name == other->metadata.name) view.named = view.volumes.front();
      }
      const StorageStep step = decide_claim(view);
      if (step.event) said.push_back(step.event->reason + ": " + step.event->message);
      if (!step.write) return;
      writes.push_back(step.write->target);
      const bool of_claim = step.write->target == WriteTo::kClaim || step.write->target == WriteTo::kClaimStatus;
      of_claim ? apply(one, step.write->patch) : apply(*other, step.write->patch);
    }
    FAIL() << "it never rests";
  }
};

TEST(ClaimRules, BindBothWaysInFourWrites) {
  World world;
  world.run();
  EXPECT_EQ(world.writes,
            (std::vector{WriteTo::kVolume, WriteTo::kVolumeStatus, WriteTo::kClaim, WriteTo::kClaimStatus}));
  EXPECT_EQ(world.other->claim_ref->uid, "uid-c");
  EXPECT_EQ(world.other->status.phase, "Bound");
  EXPECT_TRUE(world.other->metadata.annotations.contains(api::kBoundByController));
  EXPECT_EQ(world.one.volume_name, "v");
  EXPECT_EQ(world.one.status.phase, "Bound");
  EXPECT_EQ(world.one.status.capacity.at("storage"), api::parse_quantity("1Gi").value());
  EXPECT_TRUE(is_bind_completed(world.one));
  EXPECT_TRUE(world.said.empty());
  EXPECT_EQ(decide_volume({.volume = &*world.other, .claim = &world.one}), VolumeStep());
}

TEST(ClaimRules, WhatAUserReservedIsNotSaidToBeTheControllers) {
  World world;
  world.other = reserved(volume("v"), claim("c"), false);
  world.run();
  EXPECT_FALSE(world.other->metadata.annotations.contains(api::kBoundByController));
  World named;
  named.one.volume_name = "v";
  named.run();
  EXPECT_EQ(named.one.status.phase, "Bound");
  EXPECT_FALSE(named.one.metadata.annotations.contains(api::kBoundByController));
}

std::vector<std::string> said_of(const World& start) {
  World world = start;
  world.run();
  return world.said;
}

TEST(ClaimRules, SayWhatTheyWaitFor) {
  World nothing;
  nothing.other.reset();
  EXPECT_EQ(said_of(nothing), std::vector<std::string>{"FailedBinding: no persistent volumes available for this claim "
                                                       "and no storage class is set"});
  nothing.one.storage_class_name = "fast";
  EXPECT_EQ(said_of(nothing),
            std::vector<std::string>{"ProvisioningFailed: storageclass.storage.k8s.io \"fast\" not found"});
  World small;
  small.one = claim("c", "2Gi");
  small.one.volume_name = "v";
  EXPECT_EQ(said_of(small), std::vector<std::string>{
                                "VolumeMismatch: Cannot bind to requested volume \"v\": requested PV is too small"});
  World anothers;
  anothers.one.volume_name = "v";
  anothers.other = reserved(volume("v"), claim("other"), true);
  EXPECT_EQ(said_of(anothers),
            std::vector<std::string>{"FailedBinding: volume \"v\" already bound to a different claim."});
}

TEST(ClaimRules, AClassMayWaitForThePod) {
  const api::PersistentVolumeClaim one = claim("c");
  auto late = std::make_shared<api::StorageClass>();
  late->volume_binding_mode = "WaitForFirstConsumer";
  late->provisioner = std::string(api::kNoProvisioner);
  api::PersistentVolumeClaim waits = one;
  waits.storage_class_name = "late";
  api::PersistentVolume of_class = volume("v");
  of_class.storage_class_name = "late";
  ClaimView view{.claim = &waits, .volumes = {shared(of_class)}, .storage_class = late};
  StorageStep step = decide_claim(view);
  EXPECT_FALSE(step.write);
  EXPECT_EQ(step.event->message, "waiting for first consumer to be created before binding");
  view.waiting_pods = "p";
  EXPECT_EQ(decide_claim(view).event->message, "waiting for pod p to be scheduled");
  view.volumes = {shared(reserved(of_class, waits, true))};  // as the scheduler does
  step = decide_claim(view);
  ASSERT_TRUE(step.write);
  EXPECT_EQ(step.write->target, WriteTo::kVolumeStatus);
  late->volume_binding_mode = "Immediate";
  view.volumes.clear();
  EXPECT_EQ(decide_claim(view).event->message, "no volume plugin matched name: kubernetes.io/no-provisioner");
}

TEST(ClaimRules, AClaimNamesWhoMakesItsVolume) {
  api::PersistentVolumeClaim one = claim("c");
  one.storage_class_name = "fast";
  auto fast = std::make_shared<api::StorageClass>();
  fast->provisioner = "disk.example.com";
  const ClaimView view{.claim = &one, .storage_class = fast};
  const auto names_it = [](const StorageStep& step) {
    return step.write && step.write->target == WriteTo::kClaim &&
           step.write->patch.string_at({"metadata", "annotations", api::kStorageProvisioner}) == "disk.example.com" &&
           step.write->patch.string_at({"metadata", "annotations", api::kBetaStorageProvisioner}) == "disk.example.com";
  };
  EXPECT_TRUE(names_it(decide_claim(view)));
  EXPECT_EQ(decide_claim(view).event->reason, "ExternalProvisioning");
  fast->volume_binding_mode = "WaitForFirstConsumer";
  EXPECT_FALSE(decide_claim(view).write) << "for which node, nobody has said";
  EXPECT_EQ(decide_claim(view).event->reason, "WaitForFirstConsumer");
  one.metadata.annotations[std::string(api::kSelectedNode)] = "n1";
  EXPECT_TRUE(names_it(decide_claim(view)));
  EXPECT_EQ(decide_claim(view).event->reason, "ExternalProvisioning");
  one.metadata.annotations[std::string(api::kStorageProvisioner)] = "disk.example.com";
  EXPECT_TRUE(names_it(decide_claim(view))) << "older provisioners read the other name";
  one.metadata.annotations[std::string(api::kBetaStorageProvisioner)] = "disk.example.com";
  EXPECT_FALSE(decide_claim(view).write);
  one.metadata.annotations.clear();
  fast->volume_binding_mode.clear();
  fast->provisioner = std::string(api::kNoProvisioner);
  EXPECT_FALSE(decide_claim(view).write) << "nobody makes them";
}

TEST(ClaimRules, AClaimWithoutAClassGetsTheDefault) {
  api::PersistentVolumeClaim one = claim("c");
  one.storage_class_name.reset();
  const StorageStep step = decide_claim({.claim = &one, .default_class = "main"});
  ASSERT_TRUE(step.write);
  EXPECT_EQ(step.write->patch.string_at({"spec", "storageClassName"}), "main");
  one.storage_class_name = "";
  EXPECT_FALSE(decide_claim({.claim = &one, .default_class = "main"}).write);
}

TEST(ClaimRules, WhoLosesItsVolumeIsLost) {
  World world;
  world.run();
  world.other.reset();
  world.said.clear();
  world.run();
  EXPECT_EQ(world.one.status.phase, "Lost");
  EXPECT_EQ(world.said.front(), "ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  World misled;
  misled.run();
  misled.other->claim_ref->uid = "uid-other";
  misled.run();
  EXPECT_EQ(misled.one.status.phase, "Lost");
  EXPECT_EQ(misled.said.front(),
            "ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly");
}

/// The annotation is the user's word.
TEST(ClaimRules, AClaimThatSaysItWasBoundIsMeasuredAsAnyOther) {
  World forged;
  forged.one = claim("c", "2Gi");
  forged.one.volume_name = "v";
  forged.one.metadata.annotations[std::string(api::kClaimBindCompleted)] = "yes";
  forged.run();
  EXPECT_TRUE(forged.writes.empty());
  EXPECT_EQ(forged.said.front(), "VolumeMismatch: Cannot bind to requested volume \"v\": requested PV is too small");
}

TEST(ClaimRules, ADeletedClaimIsNotBoundAnew) {
  World world;
  world.one.metadata.deletion_timestamp = WallTime();
  world.run();
  EXPECT_TRUE(world.writes.empty());
}

TEST(VolumeRules, FreeVolumesAreAvailable) {
  api::PersistentVolume one = volume("v");
  one.status.phase = "Pending";
  EXPECT_EQ(decide_volume({.volume = &one}).step.write->patch.string_at({"status", "phase"}), "Available");
  one = reserved(one, claim("c"), false);
  EXPECT_EQ(decide_volume({.volume = &one}).step.write->patch.string_at({"status", "phase"}), "Available");
}

TEST(VolumeRules, AreReleasedOnlyWhenTheClaimIsReallyGone) {
  api::PersistentVolume one = reserved(volume("v"), claim("c"), true);
  one.status.phase = "Bound";
  EXPECT_TRUE(decide_volume({.volume = &one}).ask_for_claim);
  EXPECT_FALSE(decide_volume({.volume = &one}).step.write);
  const VolumeStep released = decide_volume({.volume = &one, .claim_is_gone = true});
  EXPECT_EQ(released.step.write->patch.string_at({"status", "phase"}), "Released");
}

TEST(VolumeRules, NothingIsDeletedHere) {
  api::PersistentVolume one = reserved(volume("v"), claim("c"), true);
  one.status.phase = "Released";
  EXPECT_EQ(decide_volume({.volume = &one}), VolumeStep());
  one.reclaim_policy = "Delete";
  VolumeStep failed = decide_volume({.volume = &one});
  EXPECT_EQ(failed.step.write->patch.string_at({"status", "phase"}), "Failed");
  EXPECT_EQ(failed.step.event->reason, "VolumeFailedDelete");
  EXPECT_EQ(failed.step.event->message,
            "error getting deleter volume plugin for volume \"v\": no deletable volume plugin matched");
  one.reclaim_policy = "Recycle";
  failed = decide_volume({.volume = &one});
  EXPECT_EQ(failed.step.event->reason, "VolumeFailedRecycle");
  one.status.phase = "Failed";
  EXPECT_EQ(decide_volume({.volume = &one}), VolumeStep());
  one.status.phase = "Released";
  one.metadata.annotations[std::string(api::kProvisionedBy)] = "csi.example.com";
  EXPECT_EQ(decide_volume({.volume = &one}), VolumeStep()) << "whoever made it reclaims it";
}

TEST(VolumeRules, AreGivenBackByAClaimThatWentElsewhere) {
  api::PersistentVolumeClaim gone_elsewhere = claim("c");
  gone_elsewhere.volume_name = "w";
  api::PersistentVolume one = reserved(volume("v"), gone_elsewhere, true);
  const auto patch = [&] { return decide_volume({.volume = &one, .claim = &gone_elsewhere}).step.write->patch; };
  EXPECT_TRUE(patch().at({"spec", "claimRef", "uid"})->is_null()) << "a user's reservation keeps the name";
  one.metadata.annotations[std::string(api::kBoundByController)] = "yes";
  EXPECT_TRUE(patch().at({"spec", "claimRef"})->is_null());
}

}  // namespace
}  // namespace spillway::storage
