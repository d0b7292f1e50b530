#include "apiserver/kinds/apiextensions/custom_resource_definition_rules.h"

#include "api/text/names.h"
#include "apiserver/kinds/admissionregistration/webhook_rules.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/resource/definition_approval.h"
#include "base/ascii.h"
#include "base/utf8.h"
#include "policy/structural/field_place.h"
#include "policy/structural/node.h"
#include "policy/structural/structural_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::size_t kSelectableFieldsMax = 8;
constexpr std::size_t kDeprecationWarningMax = 256;  // bytes
constexpr std::array<std::string_view, 2> kDefinitionScopes{"Cluster", "Namespaced"};
constexpr std::array<std::string_view, 2> kStrategies{"None", "Webhook"};
constexpr std::array<std::string_view, 5> kColumnTypes{"boolean", "date", "integer", "number", "string"};
constexpr std::array<std::string_view, 8> kColumnFormats{"byte",  "date",  "date-time", "double",
                                                         "float", "int32", "int64",     "password"};

struct RootMember {
  std::string_view name;
  std::string_view shown;
};

// Members that the root of a schema may have beside a status subresource, as messages name them.
constexpr std::array<RootMember, 22> kRootMembers{{{"description", "Description"},
                                                   {"type", "Type"},
                                                   {"format", "Format"},
                                                   {"title", "Title"},
                                                   {"maximum", "Maximum"},
                                                   {"exclusiveMaximum", "ExclusiveMaximum"},
                                                   {"minimum", "Minimum"},
                                                   {"exclusiveMinimum", "ExclusiveMinimum"},
                                                   {"maxLength", "MaxLength"},
                                                   {"minLength", "MinLength"},
                                                   {"pattern", "Pattern"},
                                                   {"maxItems", "MaxItems"},
                                                   {"minItems", "MinItems"},
                                                   {"uniqueItems", "UniqueItems"},
                                                   {"multipleOf", "MultipleOf"},
                                                   {"required", "Required"},
                                                   {"items", "Items"},
                                                   {"properties", "Properties"},
                                                   {"externalDocs", "ExternalDocs"},
                                                   {"example", "Example"},
                                                   {"x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"},
                                                   {"x-kubernetes-validations", "XValidations"}}};

std::string joined_problems(const std::vector<std::string>& problems) {
  return fmt::format("{}", fmt::join(problems, ","));
}

/// A member of every version, reported once if it is the same in all of them.
bool is_same_in_all(const Json& spec, std::string_view name) {
  const Json::Array& versions = elements(spec, "versions");
  return std::ranges::all_of(
      versions, [&](const Json& version) { return value_of(version, name) == value_of(versions.front(), name); });
}

const Json& schema_of(const Json& version) {
  return value_of(value_of(version, "schema"), "openAPIV3Schema");
}

bool has_status(const Json& version) {
  return has(value_of(version, "subresources"), "status");
}

bool is_established(const Json& definition) {
  return std::ranges::any_of(elements(value_of(definition, "status"), "conditions"), [](const Json& condition) {
    return text(condition, "type") == "Established" && text(condition, "status") == "True";
  });
}

/// True if the version had that schema before, beside the same subresources: it was accepted then.
bool is_unchanged(const Json& version, const Json* old) {
  if (old == nullptr) return false;
  const Json::Array& before = elements(value_of(*old, "spec"), "versions");
  return std::ranges::any_of(before, [&](const Json& other) {
    return value_of(other, "name") == value_of(version, "name") && schema_of(other) == schema_of(version) &&
           has_status(other) == has_status(version) && !schema_of(version).is_null();
  });
}

/// Names as spec and status have them.
void check_names(const Json& names, const std::string& path, FieldErrors& errors) {
  const auto check = [&](std::string_view name, const Json& value, const std::string& at, bool mixed_case) {
    const std::string written(value.is_string() ? *value.if_string() : std::string());
    const auto problems = api::dns1035_label_errors(mixed_case ? lower_case(written) : written);
    if (problems.empty() || (written.empty() && !name.empty())) return;
    errors.invalid(at, value,
                   (mixed_case ? "may have mixed case, but should otherwise match: " : "") + joined_problems(problems));
  };
  for (const std::string_view name : {"plural", "singular"}) {
    check(name, value_of(names, name), fmt::format("{}.{}", path, name), false);
  }
  for (const std::string_view name : {"kind", "listKind"}) {
    check(name, value_of(names, name), fmt::format("{}.{}", path, name), true);
  }
  const auto check_each = [&](std::string_view name) {
    const Json::Array& list = elements(names, name);
    for (std::size_t i = 0; i < list.size() && !errors.full(); ++i) {
      check("", list[i], api::index_path(fmt::format("{}.{}", path, name), i), false);
    }
  };
  check_each("shortNames");
  if (!text(names, "kind").empty() && text(names, "kind") == text(names, "listKind")) {
    errors.invalid(path + ".listKind", value_of(names, "listKind"), "kind and listKind may not be the same");
  }
  check_each("categories");
}

class DefinitionRules {
 public:
  DefinitionRules(const Json& definition, const Json* old, FieldErrors& errors)
      : definition_(definition), spec_(value_of(definition, "spec")), old_(old), errors_(errors) {}

  void check_spec() {
    check_group();
    check_scope();
    for_each_version([this](const Json& version, const std::string& at) {
      if (schema_of(version).is_null()) errors_.required(at + ".schema.openAPIV3Schema", "schemas are required");
    });
    for_each_version([this](const Json& version, const std::string& at) { check_version(version, at); });
    check_versions_together();
    check_required_names();
    check_names(value_of(spec_, "names"), "spec.names", errors_);
    check_what_is_same();
    check_conversion();
  }

  void check_stored_versions() {
    const Json& stored = value_of(value_of(definition_, "status"), "storedVersions");
    constexpr std::string_view kPath = "status.storedVersions";
    const Json::Array& names = elements(value_of(definition_, "status"), "storedVersions");
    if (names.empty()) return errors_.invalid(kPath, stored, "must have at least one stored version");
    const Json::Array& versions = elements(spec_, "versions");
    for (const Json& version : versions) {
      if (!is_true(version, "storage") || std::ranges::find(names, value_of(version, "name")) != names.end()) continue;
      errors_.invalid(kPath, stored, fmt::format("must have the storage version {}", text(version, "name")));
    }
    for (std::size_t i = 0; i < names.size() && !errors_.full(); ++i) {
      const bool known =
          std::ranges::any_of(versions, [&](const Json& version) { return value_of(version, "name") == names[i]; });
      if (known || !names[i].is_string()) continue;
      errors_.invalid(api::index_path(kPath, i), names[i],
                      fmt::format("missing from spec.versions; {0} was previously a storage version, and must remain "
                                  "in spec.versions until a storage migration ensures no data remains persisted in "
                                  "{0} and removes {0} from status.storedVersions",
                                  *names[i].if_string()));
    }
  }

  void check_approval() {
    if (!is_protected_group(text(spec_, "group"))) return;
    const Approval now = approval_of(definition_);
    if (old_ != nullptr && approval_of(*old_) == now) return;
    const std::string at = api::key_path("metadata.annotations", kApprovalAnnotation);
    const Json& annotations = value_of(value_of(definition_, "metadata"), "annotations");
    if (now == Approval::kMissing) {
      errors_.required(at, approval_text(definition_));
    } else if (now == Approval::kInvalid) {
      errors_.invalid(at, value_of(annotations, kApprovalAnnotation), approval_text(definition_));
    }
  }

  void check_kept_fields() {
    if (!is_true(spec_, "preserveUnknownFields")) return;
    if (old_ != nullptr && is_true(value_of(*old_, "spec"), "preserveUnknownFields")) return;
    errors_.invalid("spec.preserveUnknownFields", Json(true),
                    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema "
                    "instead");
  }

  void check_unchanging(const Json& old) {
    const Json& before = value_of(old, "spec");
    const auto keep = [this](const Json& now, const Json& then, std::string_view path) {
      if (!(now == then)) errors_.invalid(path, now, kImmutable);
    };
    const Json& names = value_of(spec_, "names");
    const Json& old_names = value_of(before, "names");
    if (is_established(old)) {
      keep(value_of(spec_, "scope"), value_of(before, "scope"), "spec.scope");
      keep(value_of(names, "kind"), value_of(old_names, "kind"), "spec.names.kind");
    }
    keep(value_of(spec_, "group"), value_of(before, "group"), "spec.group");
    keep(value_of(names, "plural"), value_of(old_names, "plural"), "spec.names.plural");
  }

 private:
  template <typename Check>
  void for_each_version(Check check) {
    const Json::Array& versions = elements(spec_, "versions");
    for (std::size_t i = 0; i < versions.size() && !errors_.full(); ++i) {
      check(versions[i], api::index_path("spec.versions", i));
    }
  }

  void check_group() {
    const std::string_view group = text(spec_, "group");
    if (group.empty()) return errors_.required("spec.group");
    if (const auto problems = api::dns1123_subdomain_errors(group); !problems.empty()) {
      return errors_.invalid("spec.group", Json(group), joined_problems(problems));
    }
    if (!group.contains('.')) errors_.invalid("spec.group", Json(group), "should be a domain with at least one dot");
  }

  void check_scope() {
    const std::string_view scope = text(spec_, "scope");
    if (scope.empty()) return errors_.required("spec.scope");
    if (std::ranges::find(kDefinitionScopes, scope) == kDefinitionScopes.end()) {
      errors_.not_supported("spec.scope", Json(scope), kDefinitionScopes);
    }
  }

  /// Members that are the same in all versions are reported once for the whole definition: check_what_is_same().
  void check_version(const Json& version, const std::string& at) {
    if (const auto problems = api::dns1035_label_errors(text(version, "name")); !problems.empty()) {
      errors_.invalid(at + ".name", Json(text(version, "name")), joined_problems(problems));
    }
    check_deprecation(version, at);
    if (!is_same_in_all(spec_, "schema")) check_schema(version, has_status(version), at + ".schema");
    if (!is_same_in_all(spec_, "subresources")) check_subresources(version, at + ".subresources");
    if (!is_same_in_all(spec_, "additionalPrinterColumns")) check_columns(version, at + ".additionalPrinterColumns");
    if (!is_same_in_all(spec_, "selectableFields")) check_selectable(version, at + ".selectableFields");
  }

  void check_what_is_same() {
    const Json::Array& versions = elements(spec_, "versions");
    if (versions.empty()) return;
    const Json& version = versions.front();
    if (is_same_in_all(spec_, "schema")) {
      check_schema(version, std::ranges::any_of(versions, has_status), "spec.validation");
    }
    if (is_same_in_all(spec_, "subresources")) check_subresources(version, "spec.subresources");
    if (is_same_in_all(spec_, "additionalPrinterColumns")) check_columns(version, "spec.additionalPrinterColumns");
    if (is_same_in_all(spec_, "selectableFields")) check_selectable(version, "spec.selectableFields");
  }

  void check_deprecation(const Json& version, const std::string& at) {
    const Json& warning = value_of(version, "deprecationWarning");
    if (!warning.is_string()) return;
    const std::string& words = *warning.if_string();
    const auto refuse = [&](std::string_view why) { errors_.invalid(at + ".deprecationWarning", warning, why); };
    if (!is_true(version, "deprecated")) return refuse("can only be set for deprecated versions");
    if (words.size() > kDeprecationWarningMax) refuse("must be <= 256 characters long");
    if (words.empty()) refuse("must not be an empty string");
    const auto control =
        std::ranges::find_if(words, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (control != words.end()) {
      refuse(fmt::format("must only contain printable UTF-8 characters; non-printable character found at index {}",
                         control - words.begin()));
    }
  }

  void check_schema(const Json& version, bool status, const std::string& at) {
    const Json& schema = schema_of(version);
    if (schema.is_null() || is_unchanged(version, old_)) return;
    const std::string path = at + ".openAPIV3Schema";
    if (status && schema.is_object()) check_root(schema, path);
    if (is_true(schema, "nullable")) errors_.forbidden(path + ".nullable", "nullable cannot be true at the root");
    structural::Schema::read(schema, path, errors_);
  }

  /// The schema of status is taken out of that of the object: no rule of it may be elsewhere.
  void check_root(const Json& schema, const std::string& path) {
    if (has(schema, "type") && text(schema, "type") != "object") {
      return errors_.invalid(path + ".type", value_of(schema, "type"),
                             "only \"object\" is allowed as the type at the root of the schema if the status "
                             "subresource is enabled");
    }
    for (const auto& [name, value] : *schema.if_object()) {
      const bool empty =
          value.is_null() || value.if_bool() == false || (value.is_string() && value.if_string()->empty());
      const bool known = std::ranges::find(kRootMembers, name, &RootMember::name) != kRootMembers.end();
      if (empty || known) continue;
      std::vector<std::string_view> shown;
      for (const RootMember& member : kRootMembers) shown.push_back(member.shown);
      return errors_.invalid(path, schema,
                             fmt::format("only [{}] fields are allowed at the root of the schema if the status "
                                         "subresource is enabled",
                                         fmt::join(shown, " ")));
    }
  }

  void check_subresources(const Json& version, const std::string& at) {
    const Json& scale = value_of(value_of(version, "subresources"), "scale");
    if (!scale.is_object()) return;
    const auto check = [&](std::string_view name, std::initializer_list<std::string_view> roots, std::string_view why) {
      const std::string_view path = text(scale, name);
      const std::string field = fmt::format("{}.scale.{}", at, name);
      if (!path.starts_with('.')) {
        errors_.invalid(field, Json(path), "must be a simple json path starting with .");
      } else if (std::ranges::none_of(roots, [path](std::string_view root) { return path.starts_with(root); })) {
        errors_.invalid(field, Json(path), why);
      }
    };
    for (const std::string_view name : {"specReplicasPath", "statusReplicasPath"}) {
      if (text(scale, name).empty()) {
        errors_.required(fmt::format("{}.scale.{}", at, name));
      } else if (name == "specReplicasPath") {
        check(name, {".spec."}, "should be a json path under .spec");
      } else {
        check(name, {".status."}, "should be a json path under .status");
      }
    }
    if (!text(scale, "labelSelectorPath").empty()) {
      check("labelSelectorPath", {".spec.", ".status."}, "should be a json path under either .spec or .status");
    }
  }

  void check_columns(const Json& version, const std::string& at) {
    const Json::Array& columns = elements(version, "additionalPrinterColumns");
    for (std::size_t i = 0; i < columns.size() && !errors_.full(); ++i) {
      const Json& column = columns[i];
      const std::string path = api::index_path(at, i);
      const std::string types = fmt::format("must be one of {}", fmt::join(kColumnTypes, ","));
      const std::string_view type = text(column, "type");
      const std::string_view format = text(column, "format");
      const std::string_view place = text(column, "jsonPath");
      if (text(column, "name").empty()) errors_.required(path + ".name");
      if (type.empty()) {
        errors_.required(path + ".type", types);
      } else if (std::ranges::find(kColumnTypes, type) == kColumnTypes.end()) {
        errors_.invalid(path + ".type", Json(type), types);
      }
      if (!format.empty() && std::ranges::find(kColumnFormats, format) == kColumnFormats.end()) {
        errors_.invalid(path + ".format", Json(format),
                        fmt::format("must be one of {}", fmt::join(kColumnFormats, ",")));
      }
      if (place.empty()) {
        errors_.required(path + ".JSONPath");
      } else if (!place.starts_with('.')) {
        errors_.invalid(path + ".JSONPath", Json(place), "must be a simple json path starting with .");
      }
    }
  }

  void check_selectable(const Json& version, const std::string& at) {
    const Json::Array& fields = elements(version, "selectableFields");
    if (fields.empty() || schema_of(version).is_null()) return;
    const std::optional<structural::Schema> schema = structural::Schema::reread(schema_of(version));
    if (!schema) return;
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < fields.size() && !errors_.full(); ++i) {
      const std::string path = api::index_path(at, i) + ".jsonPath";
      const std::string_view place = text(fields[i], "jsonPath");
      if (place.empty()) {
        errors_.required(path);
        continue;
      }
      const structural::Node* node = structural::node_at(schema->root(), place);
      if (node == nullptr) {
        errors_.invalid(path, Json(place), "is an invalid path: does not refer to a valid field");
        continue;
      }
      if (place == ".metadata" || place.starts_with(".metadata.")) {
        errors_.invalid(path, Json(place), "must not point to fields in metadata");
      }
      using enum structural::ValueType;
      if (node->type != kString && node->type != kBoolean && node->type != kInteger) {
        errors_.invalid(path, Json(place),
                        "must point to a field of type string, boolean or integer. Enum string fields and strings "
                        "with formats are allowed.");
      }
      if (!seen.insert(place).second) errors_.duplicate(path, Json(place));
    }
    if (seen.size() > kSelectableFieldsMax) errors_.too_many(at, seen.size(), kSelectableFieldsMax);
  }

  void check_versions_together() {
    const Json::Array& versions = elements(spec_, "versions");
    std::set<std::string_view> names;
    bool unique = true;
    std::size_t storage = 0;
    for (const Json& version : versions) {
      unique = names.insert(text(version, "name")).second && unique;
      if (is_true(version, "storage")) ++storage;
    }
    if (!unique) errors_.invalid("spec.versions", Json(versions), "must contain unique version names");
    if (storage != 1) {
      errors_.invalid("spec.versions", Json(versions), "must have exactly one version marked as storage version");
    }
  }

  void check_required_names() {
    for (const std::string_view name : {"plural", "singular", "kind", "listKind"}) {
      if (text(value_of(spec_, "names"), name).empty()) errors_.required(fmt::format("spec.names.{}", name));
    }
  }

  void check_conversion() {
    const Json& conversion = value_of(spec_, "conversion");
    if (!conversion.is_object()) return;
    const std::string_view strategy = text(conversion, "strategy");
    if (strategy.empty()) return errors_.required("spec.conversion.strategy");
    if (std::ranges::find(kStrategies, strategy) == kStrategies.end()) {
      return errors_.not_supported("spec.conversion.strategy", Json(strategy), kStrategies);
    }
    const Json& webhook = value_of(conversion, "webhook");
    if (strategy == "Webhook") return check_webhook(webhook);
    constexpr std::string_view kWhy = "should not be set when strategy is not set to Webhook";
    if (has(webhook, "clientConfig")) errors_.forbidden("spec.conversion.webhookClientConfig", kWhy);
    if (!elements(webhook, "conversionReviewVersions").empty()) {
      errors_.forbidden("spec.conversion.conversionReviewVersions", kWhy);
    }
  }

  void check_webhook(const Json& webhook) {
    constexpr std::string_view kClient = "spec.conversion.webhookClientConfig";
    if (is_true(spec_, "preserveUnknownFields")) {
      errors_.invalid("spec.conversion.strategy", Json("Webhook"),
                      "must be None if spec.preserveUnknownFields is true");
    }
    if (!has(webhook, "clientConfig")) {
      errors_.required(kClient, "required when strategy is set to Webhook");
    } else {
      const CheckedField client(&value_of(webhook, "clientConfig"), kClient, errors_);
      validate_webhook_client(client);
    }
    check_review_versions(webhook);
  }

  void check_review_versions(const Json& webhook) {
    constexpr std::string_view kPath = "spec.conversion.conversionReviewVersions";
    const Json::Array& versions = elements(webhook, "conversionReviewVersions");
    if (versions.empty()) return errors_.required(kPath);
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < versions.size() && !errors_.full(); ++i) {
      const std::string at = api::index_path(kPath, i);
      const std::string_view version = versions[i].string_at({});
      if (!seen.insert(version).second) {
        errors_.invalid(at, versions[i], "duplicate version");
        continue;
      }
      for (const std::string& problem : api::dns1035_label_errors(version)) errors_.invalid(at, versions[i], problem);
    }
    if (!seen.contains("v1") && !seen.contains("v1beta1")) {
      errors_.invalid(kPath, value_of(webhook, "conversionReviewVersions"), "must include at least one of v1, v1beta1");
    }
  }

  const Json& definition_;
  const Json& spec_;
  const Json* old_;
  FieldErrors& errors_;
};

void check_status_names(const Json& definition, FieldErrors& errors) {
  const Json& names = value_of(value_of(definition, "status"), "acceptedNames");
  if (names.is_object()) check_names(names, "status.acceptedNames", errors);
}

void check_definition(const Json& definition, const Json* old, FieldErrors& errors) {
  DefinitionRules rules(definition, old, errors);
  rules.check_spec();
  if (old != nullptr) rules.check_unchanging(*old);
  check_status_names(definition, errors);
  rules.check_stored_versions();
  rules.check_approval();
  rules.check_kept_fields();
}

}  // namespace

void validate_new_definition(const Json& definition, FieldErrors& errors) {
  const Json& spec = value_of(definition, "spec");
  const std::string wanted = fmt::format("{}.{}", text(value_of(spec, "names"), "plural"), text(spec, "group"));
  if (const std::string_view name = definition.string_at({"metadata", "name"}); name != wanted) {
    errors.invalid("metadata.name", Json(name), "must be spec.names.plural+\".\"+spec.group");
  }
  check_definition(definition, nullptr, errors);
}

void validate_changed_definition(const Json& definition, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint == Endpoint::kMain) return check_definition(definition, &old, errors);
  check_status_names(definition, errors);
}

}  // namespace spillway::apiserver::kinds
