// The path of a target's scale: a name that a user wrote never leads out of its collection.
#include "policy/autoscaling/scale_path.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::autoscaling {
namespace {

TEST(ScalePath, NamesAScaleOrNothing) {
  api::HorizontalPodAutoscaler hpa;
  hpa.metadata.ns = "shop";
  hpa.target = {"Deployment", "../x", "apps/v1"};
  EXPECT_EQ(scale_path(hpa, {"deployments", "apps"}).value(), "/apis/apps/v1/namespaces/shop/deployments/..%2Fx/scale");
  hpa.target.api_version = "v1";
  EXPECT_EQ(scale_path(hpa, {"replicationcontrollers", ""}).value(),
            "/api/v1/namespaces/shop/replicationcontrollers/..%2Fx/scale");
  for (const char* wrong : {"apps/../v1", "a/b/c", "Apps/v1", "apps/", "/v1", "v1/"}) {
    EXPECT_FALSE(version_path(wrong)) << wrong;
  }
}

TEST(ScalePath, ReadsHowAKindIsCalled) {
  const api::Json resources = api::parse_json(R"({"resources":[{"name":"deployments/scale","kind":"Deployment"},
                                                  {"name":"deployments","kind":"Deployment"}]})")
                                  .value();
  EXPECT_EQ(plural_of(resources, "apps/v1", "Deployment").value().text(), "deployments.apps");
  EXPECT_EQ(plural_of(resources, "apps/v1", "Widget").error().message,
            "no matches for kind \"Widget\" in group \"apps\"");
  EXPECT_FALSE(plural_of(api::Json(), "v1", "Pod"));
}

}  // namespace
}  // namespace spillway::autoscaling
