// Goal: kinds are equal only if their groups are.
#include "api/object/kind_id.h"

#include "api/object/job.h"
#include "api/object/meta.h"
#include "api/object/owner_text.h"
#include "api/object/workload.h"

#include <gtest/gtest.h>

#include <concepts>
#include <string>
#include <string_view>

namespace spillway::api {
namespace {

static_assert(!std::equality_comparable_with<KindId, std::string_view>);
static_assert(!std::equality_comparable_with<KindId, std::string>);
static_assert(!std::convertible_to<const char*, KindId>);

TEST(KindId, IsTheGroupAndTheNameInAnyVersion) {
  EXPECT_EQ(kind_id("apps/v1beta2", "ReplicaSet"), kind_of<ReplicaSet>());
  EXPECT_EQ(kind_id("batch/v1", "Job"), kind_of<Job>());
  EXPECT_EQ(kind_id("v1", "Pod"), (KindId{"", "Pod"}));
  EXPECT_EQ(kind_id("", "Pod"), (KindId{"", "Pod"})) << "references may leave the version out";
  EXPECT_NE(kind_id("example.com/v1", "Pod"), (KindId{"", "Pod"}));
  EXPECT_NE(kind_id("example.com/v1", "ReplicaSet"), kind_of<ReplicaSet>());
}

TEST(KindId, IsThatOfAnOwner) {
  const OwnerReference owner{.api_version = "example.com/v1", .kind = "Job", .name = "j", .uid = "u"};
  EXPECT_EQ(kind_of(owner), (KindId{"example.com", "Job"}));
  EXPECT_NE(kind_of(owner), kind_of<Job>());
}

TEST(KindId, TextsOfCustomKindsHaveTheirGroup) {
  EXPECT_EQ(text_of(kind_of<ReplicaSet>()), "ReplicaSet");
  EXPECT_EQ(text_of(KindId{"", "Pod"}), "Pod");
  EXPECT_EQ(text_of(KindId{"networking.k8s.io", "Ingress"}), "Ingress");
  EXPECT_EQ(text_of(KindId{"example.com", "ReplicaSet"}), "ReplicaSet.example.com");
  EXPECT_EQ(text_of(KindId{"k8s.io.example.com", "Pod"}), "Pod.k8s.io.example.com");
}

TEST(KindId, ControllersOfTwoGroupsHaveDifferentTexts) {
  ObjectMeta pod{.name = "p", .ns = "shop"};
  EXPECT_EQ(controller_text(pod), "");
  pod.owner_references = {{"example.com/v1", "ReplicaSet", "other", "u0", false, {}},
                          {"apps/v1", "ReplicaSet", "web", "u1", true, {}}};
  EXPECT_EQ(controller_text(pod), "ReplicaSet/shop/web");
  pod.owner_references.back().api_version = "example.com/v1";
  EXPECT_EQ(controller_text(pod), "ReplicaSet.example.com/shop/web");
}

}  // namespace
}  // namespace spillway::api
