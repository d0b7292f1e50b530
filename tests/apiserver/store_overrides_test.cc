// Goal: an override names a resource that can live elsewhere, and servers that are no other store's; else one line says
// what to write.
#include "apiserver/store_overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kMain{"https://e1:2379", "https://e2:2379"};

TEST(StoreOverrides, OverridesOfTheSameServersShareAStore) {
  const auto plans = plan_stores(kMain, {{"coordination.k8s.io/leases", {"https://f2:2379", "https://f1:2379/"}},
                                         {"apps/replicasets", {"https://g:2379"}},
                                         {"/events", {"https://f1:2379", "https://f2:2379"}}});
  ASSERT_TRUE(plans) << plans.error().text();
  ASSERT_EQ(plans->size(), 2U);
  EXPECT_THAT(plans->front().servers, ElementsAre("https://f2:2379", "https://f1:2379/"));
  EXPECT_THAT(plans->front().resources, ElementsAre("/events", "coordination.k8s.io/leases"));
  EXPECT_THAT(plans->front().storages, ElementsAre("/registry/events/", "/registry/leases/"));
  EXPECT_EQ(plans->front().name, "events,leases.coordination.k8s.io");
  EXPECT_EQ(plans->back().name, "replicasets.apps");
  EXPECT_TRUE(plan_stores(kMain, {})->empty());
}

TEST(StoreOverrides, WhatCannotBeIsRefusedInOneLine) {
  struct Case {
    std::vector<StoreOverride> overrides;
    std::string_view words;
  };

  const std::vector<std::string> other{"https://f1:2379"};
  const Case cases[] = {
      {{{"/event", other}}, "unknown resource \"/event\" (did you mean /events?)"},
      {{{"/leases", other}}, "unknown resource \"/leases\" (did you mean coordination.k8s.io/leases?)"},
      {{{"coordination/leases", other}}, "(did you mean coordination.k8s.io/leases?)"},
      {{{"coordination.k8s.io/leasse", other}}, "(did you mean coordination.k8s.io/leases?)"},
      {{{"example.com/widgets", other}}, "unknown resource \"example.com/widgets\""},
      {{{"events.k8s.io/events", other}}, "events.k8s.io/events are the objects of /events: name that"},
      {{{"authentication.k8s.io/tokenreviews", other}}, "nothing of it is stored"},
      {{{"/pods", other}}, "/pods: other requests are authorized by its objects"},
      {{{"rbac.authorization.k8s.io/roles", other}}, "so they stay in the etcd of --etcd-servers"},
      {{{"/events", other}, {"/events", {"https://f2:2379"}}}, "/events is given twice"},
      {{{"/events", {"https://f1:2379", "https://e2:2379/"}}}, "https://e2:2379 is one of --etcd-servers"},
      {{{"/events", other}, {"apps/daemonsets", {"https://f1:2379", "https://f2:2379"}}},
       "apps/daemonsets: https://f1:2379 is also a server of /events: name the same servers for both"}};
  for (const Case& each : cases) {
    const auto plans = plan_stores(kMain, each.overrides);
    ASSERT_FALSE(plans) << each.words;
    EXPECT_EQ(plans.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(plans.error().text(), HasSubstr(std::string(each.words)));
    EXPECT_TRUE(plans.error().text().starts_with("--etcd-servers-overrides: ")) << plans.error().text();
    EXPECT_EQ(plans.error().text().find('\n'), std::string::npos);
  }
  EXPECT_EQ(plan_stores(kMain, {{"example.com/widgets", other}}).error().text().find("did you mean"),
            std::string::npos);
}

}  // namespace

}  // namespace spillway::apiserver
