#include "api/schema/schema.h"

#include <gtest/gtest.h>

#include <set>

namespace spillway::api {
namespace {

TEST(SchemaLookup, ByApiVersionAndKind) {
  const Type* pod = find_kind("v1", "Pod");
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->name(), "core/v1.Pod");
  EXPECT_EQ(pod->kind(), "Pod");
  EXPECT_EQ(pod->api_version(), "v1");
  EXPECT_EQ(pod->group(), "");
  EXPECT_EQ(find_type("core/v1.Pod"), pod);
  EXPECT_EQ(find_kind("rbac.authorization.k8s.io/v1", "Role")->group(), "rbac.authorization.k8s.io");
}

TEST(SchemaLookup, UnknownKindsAndPlainMessagesAreNotKinds) {
  EXPECT_EQ(find_kind("v1", "Deployment"), nullptr);
  EXPECT_EQ(find_kind("core/v1", "Pod"), nullptr);
  EXPECT_EQ(find_kind("apps/v1beta1", "Deployment"), nullptr);
  EXPECT_EQ(find_kind("v1", "PodSpec"), nullptr);
  EXPECT_EQ(find_kind("v1", "PodTemplateSpec"), nullptr);
  EXPECT_EQ(find_type("core/v1.Nothing"), nullptr);
  EXPECT_FALSE(find_type("core/v1.PodTemplateSpec")->has_type_meta());
}

TEST(SchemaLookup, DeleteOptionsAndEvictionHaveSeveralHomes) {
  const Type* options = find_type("meta/v1.DeleteOptions");
  EXPECT_EQ(find_kind("v1", "DeleteOptions"), options);
  EXPECT_EQ(find_kind("policy/v1", "DeleteOptions"), options);
  EXPECT_EQ(find_kind("", "DeleteOptions"), nullptr);
  EXPECT_EQ(find_kind("policy/v1beta1", "Eviction"), find_kind("policy/v1", "Eviction"));
}

TEST(SchemaFields, ByNameAndByNumber) {
  const Type* spec = find_type("core/v1.PodSpec");
  const Field* containers = spec->find("containers");
  ASSERT_NE(containers, nullptr);
  EXPECT_EQ(spec->find_number(2), containers);
  EXPECT_EQ(containers->shape, Shape::kList);
  EXPECT_EQ(containers->kind, ValueKind::kMessage);
  EXPECT_EQ(containers->message->name(), "core/v1.Container");
  EXPECT_EQ(containers->merge_key, "name");
  EXPECT_TRUE(containers->keep);
  EXPECT_EQ(spec->find("container"), nullptr);
  EXPECT_EQ(spec->find_number(999), nullptr);
}

TEST(SchemaFields, InlinedFieldsAreInTheParent) {
  const Type* probe = find_type("core/v1.Probe");
  ASSERT_NE(probe->find("httpGet"), nullptr);
  EXPECT_EQ(probe->find("handler"), nullptr);
  ASSERT_NE(probe->find_number(1), nullptr);
  EXPECT_TRUE(probe->find_number(1)->inlined);
  EXPECT_EQ(find_type("core/v1.EphemeralContainer")->find("image")->name, "image");
}

TEST(SchemaFields, FlagsOfMergeAndOwnership) {
  const Field* ports = find_type("core/v1.Container")->find("ports");
  EXPECT_EQ(ports->merge_key, "containerPort");
  EXPECT_EQ(ports->list_type, ListType::kMap);
  EXPECT_EQ(ports->list_keys, (std::vector<std::string_view>{"containerPort", "protocol"}));
  const Field* finalizers = find_type("meta/v1.ObjectMeta")->find("finalizers");
  EXPECT_TRUE(finalizers->merge_set);
  EXPECT_EQ(finalizers->list_type, ListType::kSet);
  EXPECT_TRUE(find_type("core/v1.PodSpec")->find("volumes")->retain_keys);
  EXPECT_TRUE(find_type("core/v1.PodSpec")->find("nodeSelector")->atomic);
  EXPECT_TRUE(find_type("policy/v1.PodDisruptionBudgetSpec")->find("selector")->replace);
  EXPECT_TRUE(find_type("meta/v1.LabelSelector")->atomic());
  EXPECT_FALSE(find_type("core/v1.PodSpec")->atomic());
}

TEST(SchemaFields, ValueKinds) {
  EXPECT_EQ(find_type("meta/v1.ObjectMeta")->find("creationTimestamp")->kind, ValueKind::kTime);
  EXPECT_EQ(find_type("coordination/v1.LeaseSpec")->find("renewTime")->kind, ValueKind::kMicroTime);
  EXPECT_EQ(find_type("core/v1.NodeStatus")->find("capacity")->kind, ValueKind::kQuantity);
  EXPECT_EQ(find_type("core/v1.NodeStatus")->find("capacity")->shape, Shape::kMap);
  EXPECT_EQ(find_type("core/v1.ServicePort")->find("targetPort")->kind, ValueKind::kIntOrString);
  EXPECT_EQ(find_type("core/v1.Secret")->find("data")->kind, ValueKind::kBytes);
  EXPECT_EQ(find_type("apps/v1.ControllerRevision")->find("data")->kind, ValueKind::kRawJson);
  EXPECT_EQ(find_type("authentication/v1.UserInfo")->find("extra")->kind, ValueKind::kStrings);
}

/// Every type reachable from a kind: names unique and sorted, numbers unique, messages resolved, no recursion.
void walk(const Type& type, std::set<std::string_view>& open) {
  ASSERT_TRUE(open.insert(type.name()).second) << type.name() << " contains itself";
  std::set<std::uint32_t> numbers;
  for (const Field& field : type.fields()) {
    EXPECT_TRUE(numbers.insert(field.number).second) << type.name() << " " << field.number;
    EXPECT_EQ(field.kind == ValueKind::kMessage, field.message != nullptr) << type.name() << "." << field.name;
    if (field.message != nullptr) walk(*field.message, open);
  }
  for (std::size_t i = 1; i < type.json_fields().size(); ++i) {
    EXPECT_LT(type.json_fields()[i - 1].first, type.json_fields()[i].first) << type.name();
  }
  open.erase(type.name());
}

TEST(SchemaTable, IsWellFormedBelowEveryKind) {
  for (const auto& [version, kind] :
       {std::pair("v1", "Pod"), std::pair("v1", "Node"), std::pair("v1", "Service"), std::pair("apps/v1", "Deployment"),
        std::pair("apps/v1", "DaemonSet"), std::pair("policy/v1", "Eviction"), std::pair("v1", "Status"),
        std::pair("storage.k8s.io/v1", "CSINode"), std::pair("certificates.k8s.io/v1", "CertificateSigningRequest")}) {
    const Type* type = find_kind(version, kind);
    ASSERT_NE(type, nullptr) << version << " " << kind;
    std::set<std::string_view> open;
    walk(*type, open);
  }
}

}  // namespace
}  // namespace spillway::api
