// CustomResourceDefinitions: what is filled in, what is refused and in which words, what an update may change.
#include "apiserver/kinds/groups.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

const KindHooks& definition_hooks() {
  static const Resource kKind = api_extensions_kinds().front();
  return *kKind.hooks;
}

using api::Json;
using Lines = std::vector<std::string>;

constexpr std::string_view kSchema = R"({"openAPIV3Schema":{"type":"object","properties":{
    "spec":{"type":"object","properties":{"replicas":{"type":"integer"},"color":{"type":"string"}}},
    "status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}})";

Json parsed(std::string_view text) {
  return api::parse_json(text).value();
}

Json version(std::string_view name, bool storage) {
  return Json::object({{"name", name}, {"served", true}, {"storage", storage}, {"schema", parsed(kSchema)}});
}

Json widgets() {
  return Json::object({{"metadata", Json::object({{"name", "widgets.example.com"}})},
                       {"spec", Json::object({{"group", "example.com"},
                                              {"scope", "Namespaced"},
                                              {"names", Json::object({{"plural", "widgets"}, {"kind", "Widget"}})},
                                              {"versions", Json::array({version("v1", true)})}})}});
}

Json created(Json definition) {
  const KindHooks hooks = definition_hooks();
  hooks.set_defaults(definition);
  hooks.prepare_create(definition);
  return definition;
}

Lines lines(const api::FieldErrors& errors) {
  Lines texts;
  for (const api::FieldError& error : errors.errors()) texts.push_back(error.text());
  return texts;
}

Lines problems(const Json& definition) {
  api::FieldErrors errors;
  definition_hooks().validate_create(created(definition), errors);
  return lines(errors);
}

/// The problems of a definition with one member of spec changed.
Lines problems_with(std::initializer_list<std::string_view> path, Json value) {
  Json definition = widgets();
  definition.make(path) = std::move(value);
  return problems(definition);
}

/// The problems of a definition with one member of its first version changed.
Lines problems_of_version(std::string_view name, std::string_view value) {
  Json definition = widgets();
  (*definition.at({"spec", "versions"})->if_array())[0][name] = parsed(value);
  return problems(definition);
}

Lines update_problems(Json definition, const Json& old, Endpoint endpoint = Endpoint::kMain) {
  const KindHooks hooks = definition_hooks();
  hooks.set_defaults(definition);
  if (const Json* status = old.find("status"); status != nullptr && endpoint == Endpoint::kMain) {
    definition["status"] = *status;
  }
  hooks.prepare_update(definition, old, endpoint);
  api::FieldErrors errors;
  hooks.validate_update(definition, old, endpoint, errors);
  return lines(errors);
}

TEST(Definitions, Defaults) {
  const Json definition = created(widgets());
  EXPECT_EQ(definition.string_at({"spec", "names", "singular"}), "widget");
  EXPECT_EQ(definition.string_at({"spec", "names", "listKind"}), "WidgetList");
  EXPECT_EQ(definition.string_at({"spec", "conversion", "strategy"}), "None");
  EXPECT_EQ(definition.find("status")->find("storedVersions") != nullptr, true);
  EXPECT_EQ(*definition.at({"status", "storedVersions"}), parsed(R"(["v1"])"));
  EXPECT_EQ(problems(widgets()), Lines());
}

TEST(Definitions, StatusOfClientsIsNotKept) {
  Json definition = widgets();
  definition["status"] = parsed(R"({"storedVersions":["v0"],"conditions":[{"type":"Established","status":"True"}]})");
  EXPECT_EQ(*created(definition).find("status"),
            parsed(R"({"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":["v1"]})"));
}

TEST(Definitions, Names) {
  Json definition = widgets();
  definition.make({"metadata", "name"}) = Json("other.example.com");
  EXPECT_EQ(problems(definition),
            Lines{"metadata.name: Invalid value: \"other.example.com\": must be spec.names.plural+\".\"+spec.group"});
  EXPECT_EQ(problems_with({"spec", "names", "listKind"}, "Widget"),
            Lines{"spec.names.listKind: Invalid value: \"Widget\": kind and listKind may not be the same"});
  EXPECT_EQ(problems_with({"spec", "scope"}, "Both"),
            Lines{"spec.scope: Unsupported value: \"Both\": supported values: \"Cluster\", \"Namespaced\""});
  EXPECT_EQ(problems_with({"spec", "scope"}, ""), Lines{"spec.scope: Required value"});
  const Lines short_names = problems_with({"spec", "names", "shortNames"}, parsed(R"(["w","W_1"])"));
  ASSERT_EQ(short_names.size(), 1U);
  EXPECT_TRUE(
      short_names[0].starts_with("spec.names.shortNames[1]: Invalid value: \"W_1\": a DNS-1035 label must consist of"));
  const Lines kinds = problems_with({"spec", "names", "kind"}, "Wid get");
  ASSERT_EQ(kinds.size(), 3U);  // singular and listKind are derived from it
  EXPECT_TRUE(kinds[1].starts_with(
      "spec.names.kind: Invalid value: \"Wid get\": may have mixed case, but should otherwise match: a DNS-1035"));
}

TEST(Definitions, Group) {
  Json definition = widgets();
  definition.make({"metadata", "name"}) = Json("widgets.example");
  definition.make({"spec", "group"}) = Json("example");
  EXPECT_EQ(problems(definition),
            Lines{"spec.group: Invalid value: \"example\": should be a domain with at least one dot"});
}

TEST(Definitions, Versions) {
  const auto problems_of = [](std::initializer_list<Json> versions) {
    Json definition = widgets();
    definition.make({"spec", "versions"}) = Json::array(versions);
    Lines found = problems(definition);
    for (std::string& line : found) line = line.substr(0, 15) + line.substr(line.rfind(':'));
    return found;
  };
  EXPECT_EQ(problems_of({version("v1", true), version("v2", false)}), Lines());
  EXPECT_EQ(problems_of({version("v1", true), version("v2", true)}),
            Lines{"spec.versions: : must have exactly one version marked as storage version"});
  EXPECT_EQ(problems_of({version("v1", false)}),
            (Lines{"spec.versions: : must have exactly one version marked as storage version",
                   "status.storedVe: must have at least one stored version"}));
  EXPECT_EQ(problems_of({version("v1", true), version("v1", false)}),
            Lines{"spec.versions: : must contain unique version names"});
}

TEST(Definitions, Schemas) {
  EXPECT_EQ(problems_of_version("schema", "{}"),
            Lines{"spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"});
  EXPECT_EQ(problems_of_version("schema", R"({"openAPIV3Schema":{"type":"object","properties":{"spec":{}}}})"),
            Lines{"spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for "
                  "specified object fields"});
  Json definition = widgets();
  Json other = version("v2", false);
  other["schema"] = parsed(R"({"openAPIV3Schema":{"properties":{"spec":{"type":"object"}}}})");
  definition.at({"spec", "versions"})->if_array()->push_back(other);
  EXPECT_EQ(problems(definition),
            Lines{"spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at the root"});
}

TEST(Definitions, RootsBesideStatus) {
  Json definition = widgets();
  Json& v1 = (*definition.at({"spec", "versions"})->if_array())[0];
  v1["subresources"] = parsed(R"({"status":{}})");
  v1.make({"schema", "openAPIV3Schema", "x-kubernetes-map-type"}) = Json("atomic");
  const Lines found = problems(definition);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].starts_with("spec.validation.openAPIV3Schema: Invalid value: ")) << found[0];
  EXPECT_TRUE(
      found[0].ends_with("Example XPreserveUnknownFields XValidations] fields are allowed at the root of the "
                         "schema if the status subresource is enabled"))
      << found[0];
}

TEST(Definitions, Subresources) {
  EXPECT_EQ(problems_of_version("subresources", R"({"scale":{"specReplicasPath":".spec.replicas"}})"),
            Lines{"spec.subresources.scale.statusReplicasPath: Required value"});
  EXPECT_EQ(
      problems_of_version("subresources",
                          R"({"scale":{"specReplicasPath":"spec.replicas","statusReplicasPath":".spec.replicas"}})"),
      (Lines{"spec.subresources.scale.specReplicasPath: Invalid value: \"spec.replicas\": must be a simple json path "
             "starting with .",
             "spec.subresources.scale.statusReplicasPath: Invalid value: \".spec.replicas\": should be a json path "
             "under .status"}));
}

TEST(Definitions, Columns) {
  EXPECT_EQ(problems_of_version(
                "additionalPrinterColumns",
                R"([{"name":"A","type":"text","jsonPath":".spec.color"},{"name":"","type":"date","jsonPath":"spec"}])"),
            (Lines{"spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of "
                   "boolean,date,integer,number,string",
                   "spec.additionalPrinterColumns[1].name: Required value",
                   "spec.additionalPrinterColumns[1].JSONPath: Invalid value: \"spec\": must be a simple json path "
                   "starting with ."}));
}

TEST(Definitions, SelectableFields) {
  EXPECT_EQ(problems_of_version("selectableFields", R"([{"jsonPath":".spec.color"}])"), Lines());
  EXPECT_EQ(
      problems_of_version(
          "selectableFields",
          R"([{"jsonPath":".spec.shape"},{"jsonPath":".spec"},{"jsonPath":".spec.color"},{"jsonPath":".spec.color"}])"),
      (Lines{"spec.selectableFields[0].jsonPath: Invalid value: \".spec.shape\": is an invalid path: does not "
             "refer to a valid field",
             "spec.selectableFields[1].jsonPath: Invalid value: \".spec\": must point to a field of type string, "
             "boolean or integer. Enum string fields and strings with formats are allowed.",
             "spec.selectableFields[3].jsonPath: Duplicate value: \".spec.color\""}));
}

TEST(Definitions, Conversion) {
  EXPECT_EQ(problems_with({"spec", "conversion"}, parsed(R"({"strategy":"Webhook","webhook":{}})")),
            (Lines{"spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
                   "spec.conversion.conversionReviewVersions: Required value"}));
  EXPECT_EQ(problems_with({"spec", "conversion"},
                          parsed(R"({"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{
                                    "service":{"namespace":"a","name":"b","port":443,"path":"/convert"}}}})")),
            Lines{});
  EXPECT_EQ(problems_with({"spec", "conversion"}, parsed(R"({"strategy":"None","webhook":{"clientConfig":{}}})")),
            Lines{"spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to "
                  "Webhook"});
}

TEST(Definitions, ProtectedGroups) {
  const auto of_group = [](std::string_view approval) {
    Json definition = widgets();
    definition.make({"metadata", "name"}) = Json("widgets.x.k8s.io");
    definition.make({"spec", "group"}) = Json("x.k8s.io");
    if (!approval.empty()) {
      definition.make({"metadata", "annotations", "api-approved.kubernetes.io"}) = Json(approval);
    }
    return definition;
  };
  EXPECT_EQ(
      problems(of_group("")),
      Lines{"metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval "
            "annotation \"api-approved.kubernetes.io\", see "
            "https://github.com/kubernetes/enhancements/pull/1111"});
  EXPECT_EQ(problems(of_group("because")).size(), 1U);
  EXPECT_EQ(problems(of_group("https://github.com/kubernetes/enhancements/pull/1")), Lines());
  EXPECT_EQ(problems(of_group("unapproved, an experiment")), Lines());
  Json changed = of_group("");
  EXPECT_EQ(update_problems(changed, created(of_group(""))), Lines());
}

TEST(Definitions, UnknownFieldsAreNotKeptAsAWhole) {
  EXPECT_EQ(problems_with({"spec", "preserveUnknownFields"}, true),
            Lines{"spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
                  "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"});
}

TEST(Definitions, WhatAnUpdateMayNotChange) {
  const Json old = created(widgets());
  Json changed = widgets();
  changed.make({"spec", "scope"}) = Json("Cluster");
  EXPECT_EQ(update_problems(changed, old), Lines());  // not served yet
  Json established = old;
  established["status"]["conditions"] = parsed(R"([{"type":"Established","status":"True"}])");
  EXPECT_EQ(update_problems(changed, established), Lines{"spec.scope: Invalid value: \"Cluster\": field is immutable"});
  changed = widgets();
  changed.make({"spec", "names", "plural"}) = Json("gadgets");
  EXPECT_EQ(update_problems(changed, old), Lines{"spec.names.plural: Invalid value: \"gadgets\": field is immutable"});
}

TEST(Definitions, StoredVersionsStay) {
  const Json old = created(widgets());
  Json changed = widgets();
  changed.make({"spec", "versions"}) = Json::array({version("v2", true)});
  EXPECT_EQ(update_problems(changed, old),
            Lines{"status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a "
                  "storage version, and must remain in spec.versions until a storage migration ensures no data "
                  "remains persisted in v1 and removes v1 from status.storedVersions"});
  changed.make({"spec", "versions"}) = Json::array({version("v1", false), version("v2", true)});
  EXPECT_EQ(update_problems(changed, old), Lines());
  Json prepared = changed;
  prepared["status"] = *old.find("status");
  definition_hooks().prepare_update(prepared, old, Endpoint::kMain);
  EXPECT_EQ(*prepared.at({"status", "storedVersions"}), parsed(R"(["v1","v2"])"));
}

TEST(Definitions, Table) {
  Json definition = created(widgets());
  definition.make({"metadata", "creationTimestamp"}) = Json("2026-01-02T03:04:05Z");
  const KindHooks hooks = definition_hooks();
  ASSERT_EQ(hooks.columns.size(), 2U);
  EXPECT_EQ(hooks.columns[1].name, "Created At");
  const TableRow row = hooks.table_row(definition, WallTime());
  EXPECT_EQ(row.cells, (std::vector<Json>{"widgets.example.com", "2026-01-02T03:04:05Z"}));
}

}  // namespace

}  // namespace spillway::apiserver::kinds
