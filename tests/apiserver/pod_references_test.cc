// Every member of a pod that can name another object is in the table of references: found by walking the schema, so a
// field added to the schema and forgotten in the table fails here.
#include "apiserver/access/pod_references.h"

#include "api/schema/schema.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

/// Members whose name says "secret", "config map", "claim" or "service account" and that name nothing themselves.
const std::set<std::string_view> kNoReferences{
    "spec.automountServiceAccountToken",              // a flag, not a name
    "spec.volumes.cephfs.secretFile",                 // a path on the node
    "spec.containers.resources.claims",               // entries of spec.resourceClaims
    "spec.initContainers.resources.claims",           // likewise
    "spec.ephemeralContainers.resources.claims",      // likewise
    "spec.resources.claims",                          // likewise
    "spec.resourceClaims.resourceClaimName",          // name of an entry that is found by its name
    "spec.resourceClaims.resourceClaimTemplateName",  // likewise
    "spec.volumes.persistentVolumeClaim.claimName",   // the reference is in its parent, below
    "spec.volumes.secret.secretName",                 // likewise
};

struct Suspect {
  std::vector<const api::Field*> path;
  std::string text;
};

bool is_suspect(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(c));
  for (const std::string_view word : {"secret", "configmap", "claim", "serviceaccount", "trustbundle"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return false;
}

void collect(const api::Type& type, Suspect at, std::set<const api::Type*> above, std::vector<Suspect>& found) {
  if (!above.insert(&type).second) return;
  for (const auto& [name, field] : type.json_fields()) {
    Suspect next = at;
    next.path.push_back(field);
    next.text += "." + std::string(name);
    if (is_suspect(name)) found.push_back(next);
    if (field->kind == api::ValueKind::kMessage) collect(*field->message, next, above, found);
  }
}

/// A document with that member, named "x" wherever a name is possible.
Json document_with(std::span<const api::Field* const> path) {
  const api::Field& field = *path.front();
  Json value;
  if (path.size() > 1) {
    value = document_with(path.subspan(1));
  } else if (field.kind == api::ValueKind::kMessage) {
    for (const auto& [name, member] : field.message->json_fields()) {
      if (member->kind == api::ValueKind::kString && name.ends_with("ame")) value[name] = "x";
    }
    if (!value.is_object()) value = Json::object({{"metadata", Json::object({})}});
  } else {
    value = "x";
  }
  if (field.shape == api::Shape::kList) value = Json::Array{std::move(value)};
  return Json::object({{field.name, std::move(value)}});
}

TEST(PodReferences, CoverEveryMemberOfTheSchemaThatNamesAnObject) {
  const api::Type* spec = api::find_type("core/v1.PodSpec");
  ASSERT_NE(spec, nullptr);
  std::vector<Suspect> suspects;
  collect(*spec, {{}, "spec"}, {}, suspects);
  ASSERT_GT(suspects.size(), 30U);
  for (const Suspect& suspect : suspects) {
    if (kNoReferences.contains(suspect.text)) continue;
    const Json pod = Json::object({{"spec", document_with(suspect.path)}});
    const bool found = !visit_references(pod, [](ReferenceKind, std::string_view) { return false; });
    EXPECT_TRUE(found) << suspect.text << " is in no row: " << api::to_text(pod);
  }
}

TEST(PodReferences, AreFoundByKindAndName) {
  const auto pod = api::parse_json(
      R"({"spec":{"serviceAccountName":"robot","imagePullSecrets":[{"name":"pull"}],"containers":[{"name":"c","env":[)"
      R"({"name":"A","valueFrom":{"configMapKeyRef":{"name":"settings","key":"k"}}}]}],"volumes":[{"name":"v","projected":)"
      R"({"sources":[{"secret":{"name":"part"}},{"configMap":{"name":"part-settings"}}]}}]}})");
  ASSERT_TRUE(pod);
  EXPECT_TRUE(refers_to(*pod, ReferenceKind::kServiceAccount, "robot"));
  EXPECT_TRUE(refers_to(*pod, ReferenceKind::kSecret, "pull"));
  EXPECT_TRUE(refers_to(*pod, ReferenceKind::kSecret, "part"));
  EXPECT_TRUE(refers_to(*pod, ReferenceKind::kConfigMap, "settings"));
  EXPECT_TRUE(refers_to(*pod, ReferenceKind::kConfigMap, "part-settings"));
  EXPECT_FALSE(refers_to(*pod, ReferenceKind::kSecret, "settings"));
  EXPECT_FALSE(refers_to(*pod, ReferenceKind::kSecret, "c"));
  EXPECT_FALSE(refers_to(*pod, ReferenceKind::kSecret, ""));
}

}  // namespace

}  // namespace spillway::apiserver
