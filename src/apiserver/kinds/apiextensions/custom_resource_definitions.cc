// CustomResourceDefinitions: defaults, the stored form of their versions, the table. Validation is in
// custom_resource_definition_rules.h. Conditions and accepted names are set by the server of the resources.
#include "apiserver/kinds/apiextensions/custom_resource_definition_rules.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"
#include "base/ascii.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

constexpr std::array kDefinitionColumns{TableColumn{"Name", "string", "name", 0, "Name of the object"},
                                        TableColumn{"Created At", "date", "", 0, "Time of creation"}};

void set_definition_defaults(Json& definition) {
  Json* spec = definition.find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  if (Json* names = spec->find("names"); names != nullptr && names->is_object()) {
    const std::string kind(text(*names, "kind"));
    if (!kind.empty()) {
      set_default(*names, "singular", Json(lower_case(kind)));
      set_default(*names, "listKind", Json(kind + "List"));
    }
  }
  if (!has(*spec, "conversion")) (*spec)["conversion"] = Json::object({{"strategy", "None"}});
  Json* service = spec->at({"conversion", "webhook", "clientConfig", "service"});
  if (service != nullptr && service->is_object()) set_default(*service, "port", Json(443));
}

/// A former storage version stays in storedVersions until a client removes it, which declares that no object is stored
/// in it any more.
void record_stored_versions(Json& definition) {
  const Json* spec = definition.find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  Json stored = value_of(value_of(definition, "status"), "storedVersions");
  if (!stored.is_array()) stored = Json::array();
  for (const Json& version : elements(*spec, "versions")) {
    if (!is_true(version, "storage")) continue;
    Json::Array& names = *stored.if_array();
    const Json name(text(version, "name"));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  definition["status"]["storedVersions"] = std::move(stored);
}

/// The status of a new definition as upstream writes it: no accepted names, no conditions.
Json empty_status() {
  return Json::object({{"conditions", Json()},
                       {"acceptedNames", Json::object({{"plural", ""}, {"kind", ""}})},
                       {"storedVersions", Json()}});
}

void prepare_new_definition(Json& definition) {
  definition["status"] = empty_status();
  record_stored_versions(definition);
}

void prepare_changed_definition(Json& definition, const Json& /*old*/, Endpoint endpoint) {
  if (endpoint == Endpoint::kMain) record_stored_versions(definition);
}

TableRow definition_row(const Json& definition, WallTime /*now*/) {
  return {{definition.string_at({"metadata", "name"}), definition.string_at({"metadata", "creationTimestamp"})}, {}};
}

Resource custom_resource_definition_kind() {
  static constexpr std::array<std::string_view, 2> kShortNames{"crd", "crds"};
  static const KindHooks kHooks{.set_defaults = set_definition_defaults,
                                .prepare_create = prepare_new_definition,
                                .validate_create = validate_new_definition,
                                .prepare_update = prepare_changed_definition,
                                .validate_update = validate_changed_definition,
                                .columns = kDefinitionColumns,
                                .table_row = definition_row};
  return {.group = "apiextensions.k8s.io",
          .version = "v1",
          .plural = "customresourcedefinitions",
          .singular = "customresourcedefinition",
          .kind = "CustomResourceDefinition",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("apiextensions.k8s.io/customresourcedefinitions"),
          .short_names = kShortNames,
          .categories = kExtensions,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .counts_generation = true,
          .metadata = kAnyFinalizer,
          .hooks = &kHooks,
          .cleanup_finalizer = "customresourcecleanup.apiextensions.k8s.io"};
}

}  // namespace

std::vector<Resource> api_extensions_kinds() {
  return {custom_resource_definition_kind()};
}

}  // namespace spillway::apiserver::kinds
