#include "apiserver/collect/flow_objects.h"

#include "policy/flow/documents.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kAutoUpdate = "apf.kubernetes.io/autoupdate-spec";
constexpr std::array<std::string_view, 6> kTrueTexts{"1", "t", "T", "true", "TRUE", "True"};
constexpr std::array<std::string_view, 6> kFalseTexts{"0", "f", "F", "false", "FALSE", "False"};

bool is_mandatory(std::string_view name) {
  return name == flow::kExempt || name == flow::kCatchAll;
}

/// Value of the annotation; nullopt: it is missing, or neither "true" nor "false".
std::optional<bool> auto_update_of(const Json& object) {
  const std::string_view text = object.string_at({"metadata", "annotations", kAutoUpdate});
  if (std::ranges::find(kTrueTexts, text) != kTrueTexts.end()) return true;
  if (std::ranges::find(kFalseTexts, text) != kFalseTexts.end()) return false;
  return std::nullopt;
}

bool has_same_spec(const Json& there, const Json& wanted) {
  if (wanted.string_at({"kind"}) == flow::kSchemaKind) {
    flow::Schema schema = flow::schema_of(there);
    schema.uid.clear();
    return schema == flow::schema_of(wanted);
  }
  flow::Level level = flow::level_of(there);
  const flow::Level fixed = flow::level_of(wanted);
  level.uid.clear();
  // administrators may choose the shares of `exempt`
  if (level.name == flow::kExempt && level.limit == fixed.limit) return true;
  return level == fixed;
}

/// The object with the annotation, and with the spec where the server restores it.
Json as_kept(Json there, const Json& wanted) {
  const std::optional<bool> annotated = auto_update_of(there);
  const Json* generation = std::as_const(there).at({"metadata", "generation"});
  const bool unchanged = generation != nullptr && generation->if_int64() == 1;
  const bool updates = is_mandatory(wanted.string_at({"metadata", "name"})) || annotated.value_or(unchanged);
  if (annotated != updates) there.make({"metadata", "annotations", kAutoUpdate}) = updates ? "true" : "false";
  if (updates && !has_same_spec(there, wanted)) there["spec"] = *wanted.find("spec");
  return there;
}

}  // namespace

std::vector<Json> flow_documents(const flow::Configuration& flows) {
  std::vector<Json> documents;
  for (const flow::Level& level : flows.levels) documents.push_back(flow::document_of(level));
  for (const flow::Schema& schema : flows.schemas) documents.push_back(flow::document_of(schema));
  for (Json& each : documents) each.make({"metadata", "annotations", kAutoUpdate}) = "true";
  return documents;
}

FlowObjects::FlowObjects(Core& core, Writer& writer, const flow::Configuration& flows)
    : KeptObjects(core, writer, "flow control"),
      schemas_(cache_of("flowschemas.flowcontrol.apiserver.k8s.io")),
      levels_(cache_of("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io")),
      documents_(flow_documents(flows)) {}

std::vector<KeptObjects::Wanted> FlowObjects::wanted() const {
  std::vector<Wanted> out;
  for (const Json& each : documents_) {
    const bool is_schema = each.string_at({"kind"}) == flow::kSchemaKind;
    out.push_back({.cache = is_schema ? &schemas_ : &levels_, .document = each, .kept = as_kept});
  }
  return out;
}

bool FlowObjects::concerns(const ResourceCache& cache, const StoredObject& object) const {
  if (&cache != &schemas_ && &cache != &levels_) return false;
  return std::ranges::any_of(documents_, [&](const Json& each) {
    return (each.string_at({"kind"}) == flow::kSchemaKind) == (&cache == &schemas_) &&
           each.string_at({"metadata", "name"}) == object.name;
  });
}

}  // namespace spillway::apiserver
