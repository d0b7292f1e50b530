// FlowSchemas: which requests belong to which priority level, and to which flow. The mandatory ones cannot be changed.
// Source: Kubernetes API reference, FlowSchema.
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/flowcontrol/flowcontrol_kinds.h"
#include "apiserver/kinds/row_parts.h"
#include "policy/flow/built_in.h"
#include "policy/flow/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kEvery = "*";
constexpr std::int64_t kPrecedenceDefault = 1'000;
constexpr std::int64_t kPrecedenceMax = 10'000;
constexpr std::array<std::string_view, 2> kDistinguishers{"ByNamespace", "ByUser"};
constexpr std::array<std::string_view, 3> kFlowSubjects{"Group", "ServiceAccount", "User"};
constexpr std::array<std::string_view, 9> kFlowVerbs{"create", "delete", "deletecollection", "get",  "list",
                                                     "patch",  "proxy",  "update",           "watch"};

constexpr std::array kFlowSchemaColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"PriorityLevel", "string", "", 0, "The priority level of its requests"},
    TableColumn{"MatchingPrecedence", "string", "", 0,
                "Of two schemas that match, the one with the lower number counts"},
    TableColumn{"DistinguisherMethod", "string", "", 0, "The property that separates its flows"},
    TableColumn{"Age", "string", "", 0, "Time since creation"},
    TableColumn{"MissingPL", "string", "", 0, "True if its priority level does not exist"}};

void default_flow_schema(api::Json& object) {
  api::Json* const spec = object.find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  if (integer(*spec, "matchingPrecedence").value_or(0) == 0) (*spec)["matchingPrecedence"] = kPrecedenceDefault;
}

bool has_every(const CheckedField& list) {
  return std::ranges::any_of(list.elements(), [](const api::Json& each) {
    return each.if_string() != nullptr && *each.if_string() == kEvery;
  });
}

/// A list of words, of which "*" stands alone.
void validate_words(const CheckedField& list, std::string_view missing, std::string_view others) {
  if (list.empty()) return list.required(missing);
  if (list.size() > 1 && has_every(list)) {
    list.invalid(fmt::format("if '*' is present, must not specify other {}", others));
  }
}

void validate_flow_verbs(const CheckedField& verbs) {
  validate_words(verbs, "verbs must contain at least one value", "verbs");
  if (verbs.empty() || has_every(verbs)) return;
  const bool known = std::ranges::all_of(verbs.elements(), [](const api::Json& each) {
    return each.if_string() != nullptr && std::ranges::find(kFlowVerbs, *each.if_string()) != kFlowVerbs.end();
  });
  if (!known) verbs.not_supported(kFlowVerbs);
}

void validate_flow_namespaces(const CheckedField& rule) {
  const CheckedField namespaces = rule["namespaces"];
  const CheckedField cluster = rule["clusterScope"];
  if (namespaces.empty() && !cluster.is_true()) {
    return namespaces.required("resource rules that are not cluster scoped must supply at least one namespace");
  }
  if (has_every(namespaces)) {
    if (namespaces.size() > 1) namespaces.invalid("if '*' is present, must not specify other namespaces");
    return;
  }
  namespaces.each([](const CheckedField& each) {
    for (const std::string& problem : api::dns1123_label_errors(each.text())) {
      each.invalid("each member of this list must be '*' or a DNS-1123 label; " + problem);
    }
  });
}

void validate_flow_resource_rule(const CheckedField& rule) {
  const CheckedField verbs = rule["verbs"];
  validate_flow_verbs(verbs);
  const CheckedField groups = rule["apiGroups"];
  validate_words(groups, "resource rules must supply at least one api group", "api groups");
  const CheckedField resources = rule["resources"];
  validate_words(resources, "resource rules must supply at least one resource", "resources");
  validate_flow_namespaces(rule);
}

void validate_flow_path(const CheckedField& path) {
  const std::string_view text = path.text();
  if (text.empty()) return path.invalid("must not be empty");
  if (text == "/") return;
  if (!text.starts_with('/')) return path.invalid("must start with slash");
  if (text.contains(' ')) return path.invalid("must not contain white-space");
  if (text.contains("//")) return path.invalid("must not contain double slash");
  const auto stars = std::ranges::count(text, '*');
  if (stars > 1 || (stars == 1 && !text.ends_with("/*"))) path.invalid("wildcard can only do suffix matching");
}

void validate_flow_path_rule(const CheckedField& rule) {
  const CheckedField verbs = rule["verbs"];
  validate_flow_verbs(verbs);
  const CheckedField paths = rule["nonResourceURLs"];
  validate_words(paths, "nonResourceURLs must contain at least one value", "non-resource URLs");
  if (!has_every(paths)) paths.each(validate_flow_path);
}

void validate_account_subject(const CheckedField& account) {
  if (!account.present()) return account.required("serviceAccount is required when subject kind is 'ServiceAccount'");
  const CheckedField name = account["name"];
  if (name.text().empty()) {
    name.required();
  } else if (name.text() != kEvery) {
    name.require_valid(api::dns1123_subdomain_errors(name.text()));
  }
  const CheckedField ns = account["namespace"];
  if (ns.text().empty()) return ns.required("must specify namespace for service account");
  ns.require_valid(api::dns1123_label_errors(ns.text()));
}

void validate_named_subject(const CheckedField& named, std::string_view missing) {
  if (!named.present()) return named.required(missing);
  const CheckedField name = named["name"];
  if (name.text().empty()) name.required();
}

void validate_flow_subject(const CheckedField& subject) {
  const CheckedField kind = subject["kind"];
  const CheckedField user = subject["user"];
  const CheckedField group = subject["group"];
  const CheckedField account = subject["serviceAccount"];
  if (kind.text() == "ServiceAccount") {
    validate_account_subject(account);
  } else if (kind.text() == "User") {
    validate_named_subject(user, "user is required when subject kind is 'User'");
  } else if (kind.text() == "Group") {
    validate_named_subject(group, "group is required when subject kind is 'Group'");
  } else {
    return kind.not_supported(kFlowSubjects);
  }
  if (kind.text() != "ServiceAccount" && account.present()) {
    account.forbidden("serviceAccount is forbidden when subject kind is not 'ServiceAccount'");
  }
  if (kind.text() != "User" && user.present()) user.forbidden("user is forbidden when subject kind is not 'User'");
  if (kind.text() != "Group" && group.present()) group.forbidden("group is forbidden when subject kind is not 'Group'");
}

void validate_flow_rule(const CheckedField& rule) {
  const CheckedField subjects = rule["subjects"];
  if (subjects.empty()) subjects.required("subjects must contain at least one value");
  subjects.each(validate_flow_subject);
  const CheckedField resources = rule["resourceRules"];
  const CheckedField paths = rule["nonResourceRules"];
  if (resources.empty() && paths.empty()) {
    rule.required("at least one of resourceRules and nonResourceRules has to be non-empty");
  }
  resources.each(validate_flow_resource_rule);
  paths.each(validate_flow_path_rule);
}

void validate_precedence(const CheckedField& precedence, std::string_view name) {
  const std::int64_t value = precedence.integer().value_or(0);
  if (value <= 0) precedence.invalid("must be a positive value");
  if (value > kPrecedenceMax) precedence.invalid(fmt::format("must not be greater than {}", kPrecedenceMax));
  if (value == 1 && name != flow::kExempt) {
    precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1");
  }
}

void validate_flow_spec(const CheckedField& spec, std::string_view name) {
  const CheckedField precedence = spec["matchingPrecedence"];
  validate_precedence(precedence, name);
  const CheckedField method = spec["distinguisherMethod"];
  const CheckedField type = method["type"];
  if (method.present()) type.require_one_of(kDistinguishers);
  const CheckedField level = spec["priorityLevelConfiguration"];
  const CheckedField level_name = level["name"];
  if (level_name.text().empty()) {
    level_name.required("must reference a priority level");
  } else {
    level_name.require_valid(api::dns1123_subdomain_errors(level_name.text()));
  }
  const CheckedField rules = spec["rules"];
  rules.each(validate_flow_rule);
}

/// A mandatory schema has its fixed spec.
void validate_fixed_schema(const api::Json& object, flow::Schema schema, api::FieldErrors& errors) {
  static const flow::Configuration kTable = flow::built_in_configuration();
  if (schema.name != flow::kExempt && schema.name != flow::kCatchAll) return;
  schema.uid.clear();
  if (std::ranges::find(kTable.schemas, schema) != kTable.schemas.end()) return;
  errors.invalid("spec", value_of(object, "spec"), fmt::format("spec of '{}' must equal the fixed value", schema.name));
}

void validate_flow_schema(const api::Json& object, api::FieldErrors& errors) {
  flow::Schema schema = flow::schema_of(object);
  const std::size_t words = flow::words_of(schema);
  if (words > flow::kSchemaWordsMax) return errors.too_many("spec.rules", words, flow::kSchemaWordsMax);
  const CheckedField spec(object.find("spec"), "spec", errors);
  validate_flow_spec(spec, schema.name);
  validate_fixed_schema(object, std::move(schema), errors);
  validate_flow_conditions(object, errors);
}

void validate_flow_schema_update(const api::Json& object, const api::Json& /*old*/, Endpoint endpoint,
                                 api::FieldErrors& errors) {
  if (endpoint == Endpoint::kMain) return validate_flow_schema(object, errors);
  validate_flow_conditions(object, errors);
}

std::string missing_level(const api::Json& object) {
  for (const api::Json& condition : elements(value_of(object, "status"), "conditions")) {
    if (text(condition, "type") == "Dangling") return std::string(text(condition, "status"));
  }
  return "?";
}

TableRow flow_schema_row(const api::Json& object, WallTime now) {
  const std::string_view method = object.string_at({"spec", "distinguisherMethod", "type"});
  return {{object.string_at({"metadata", "name"}), object.string_at({"spec", "priorityLevelConfiguration", "name"}),
           integer(value_of(object, "spec"), "matchingPrecedence").value_or(0), method.empty() ? "<none>" : method,
           age_of(object, now), missing_level(object)},
          nullptr};
}

}  // namespace

Resource flow_schema_kind() {
  static const KindHooks kHooks{.set_defaults = default_flow_schema,
                                .validate_create = validate_flow_schema,
                                .validate_update = validate_flow_schema_update,
                                .columns = kFlowSchemaColumns,
                                .table_row = flow_schema_row};
  return {.group = "flowcontrol.apiserver.k8s.io",
          .version = "v1",
          .plural = "flowschemas",
          .singular = "flowschema",
          .kind = "FlowSchema",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("flowschemas"),
          .subresources = kStatusOnly,
          .status_subresource = true,
          .counts_generation = true,
          .status_keeps_metadata = true,
          .requires_version = true,
          .metadata = kFlowChecks,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
