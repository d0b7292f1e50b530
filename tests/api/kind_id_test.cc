// Goal: kinds are equal only if their groups are.
#include "api/object/kind_id.h"

#include "api/object/job.h"
#include "api/object/meta.h"
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

}  // namespace
}  // namespace spillway::api
