#include "api/schema/descriptions.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::api {
namespace {

std::string_view text_of(std::string_view type, std::string_view field) {
  return description_of(*find_type(type), field);
}

TEST(Descriptions, OfTypesAndFields) {
  EXPECT_TRUE(description_of(*find_type("core/v1.Toleration")).starts_with("A kind of taint"));
  EXPECT_TRUE(text_of("core/v1.Toleration", "tolerationSeconds").starts_with("Seconds the pod may stay"));
  EXPECT_EQ(text_of("core/v1.Toleration", "tolerationSecond"), "");
  EXPECT_EQ(text_of("core/v1.Toleration", ""), "");
  EXPECT_EQ(description_of(*find_type("meta/v1.MicroTime")), "");
  EXPECT_EQ(text_of("meta/v1.MicroTime", "seconds"), "");
}

TEST(Descriptions, TheFirstAndTheLastTypeAndField) {
  const std::vector<Description> all = all_descriptions();
  ASSERT_GT(all.size(), 2000U);
  for (const Description& each : {all.front(), all.back()}) {
    const Type* type = find_type(each.type);
    if (type == nullptr) continue;  // described before it is served
    EXPECT_EQ(each.field.empty() ? description_of(*type) : description_of(*type, each.field), each.text);
  }
}

TEST(Descriptions, FieldsOfInlinedMessagesUnlessTheTypeSaysMore) {
  EXPECT_EQ(text_of("core/v1.Volume", "hostPath"), text_of("core/v1.VolumeSource", "hostPath"));
  EXPECT_TRUE(text_of("core/v1.EphemeralContainer", "ports").starts_with("Not allowed"));
  EXPECT_NE(text_of("core/v1.EphemeralContainer", "ports"), text_of("core/v1.Container", "ports"));
  EXPECT_EQ(text_of("core/v1.LocalObjectReference", "name"), "The object's name.");
  EXPECT_EQ(text_of("core/v1.ConfigMapKeySelector", "name"), "The ConfigMap, in the namespace of the pod.");
}

TEST(Descriptions, EveryOneIsFoundWhereTheFilesHaveIt) {
  for (const Description& each : all_descriptions()) {
    const Type* type = find_type(each.type);
    if (type == nullptr) continue;
    EXPECT_EQ(each.field.empty() ? description_of(*type) : description_of(*type, each.field), each.text)
        << each.type << " " << each.field;
  }
}

}  // namespace
}  // namespace spillway::api
