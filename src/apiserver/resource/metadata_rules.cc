#include "apiserver/resource/metadata_rules.h"

#include "api/text/names.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::size_t kAnnotationBytesMax = std::size_t{256} * 1024;

const Json::Object* members(const Json& object, std::string_view name) {
  const Json* value = object.at({"metadata", name});
  return value == nullptr ? nullptr : value->if_object();
}

const Json::Array* elements(const Json& object, std::string_view name) {
  const Json* value = object.at({"metadata", name});
  return value == nullptr ? nullptr : value->if_array();
}

/// generateName is the beginning of a name.
void check_name(NameRule rule, const Json& object, FieldErrors& errors) {
  const std::string_view name = object.string_at({"metadata", "name"});
  const std::string_view prefix = object.string_at({"metadata", "generateName"});
  if (!prefix.empty()) {
    for (const std::string& problem : prefix_problems(rule, prefix)) {
      errors.invalid("metadata.generateName", prefix, problem);
    }
  }
  if (name.empty()) return errors.required("metadata.name", "name or generateName is required");
  for (const std::string& problem : name_problems(rule, name)) errors.invalid("metadata.name", name, problem);
}

void check_labels(const Json& object, FieldErrors& errors) {
  const Json::Object* labels = members(object, "labels");
  if (labels == nullptr) return;
  for (const auto& [key, value] : *labels) {
    if (errors.full()) return;
    for (const std::string& problem : api::qualified_name_errors(key)) errors.invalid("metadata.labels", key, problem);
    const std::string* text = value.if_string();
    if (text == nullptr) continue;
    for (const std::string& problem : api::label_value_errors(*text)) {
      errors.invalid("metadata.labels", *text, problem);
    }
  }
}

void check_annotations(const Json& object, FieldErrors& errors) {
  constexpr std::string_view kField = "metadata.annotations";
  const Json::Object* annotations = members(object, "annotations");
  if (annotations == nullptr) return;
  std::size_t bytes = 0;
  for (const auto& [key, value] : *annotations) {
    if (errors.full()) return;
    std::string lower = key;
    std::ranges::transform(lower, lower.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    for (const std::string& problem : api::qualified_name_errors(lower)) errors.invalid(kField, key, problem);
    bytes += key.size() + value.string_at({}).size();
  }
  if (bytes > kAnnotationBytesMax) errors.too_long(kField, kAnnotationBytesMax);
}

void check_finalizers(const Json& object, FieldErrors& errors) {
  constexpr std::string_view kField = "metadata.finalizers";
  const Json::Array* finalizers = elements(object, "finalizers");
  if (finalizers == nullptr) return;
  bool orphan = false;
  bool foreground = false;
  for (const Json& finalizer : *finalizers) {
    if (errors.full()) return;
    const std::string_view name = finalizer.string_at({});
    orphan = orphan || name == "orphan";
    foreground = foreground || name == "foregroundDeletion";
    for (const std::string& problem : api::qualified_name_errors(name)) errors.invalid(kField, name, problem);
  }
  if (orphan && foreground) {
    errors.invalid(kField, Json(*finalizers), "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

void check_standard_finalizers(const Json& object, FieldErrors& errors) {
  const Json::Array* finalizers = elements(object, "finalizers");
  if (finalizers == nullptr) return;
  for (std::size_t i = 0; i < finalizers->size() && !errors.full(); ++i) {
    const std::string_view name = (*finalizers)[i].string_at({});
    if (is_finalizer_of_somebody(name)) continue;
    errors.invalid(api::index_path("metadata.finalizers", i), name, kUnknownFinalizer);
  }
}

void check_owners(const Json& object, FieldErrors& errors) {
  constexpr std::string_view kField = "metadata.ownerReferences";
  const Json::Array* owners = elements(object, "ownerReferences");
  if (owners == nullptr) return;
  std::string controller;
  for (const Json& owner : *owners) {
    if (errors.full()) return;
    const std::string_view version = owner.string_at({"apiVersion"});
    if (version.substr(version.find('/') + 1).empty()) {
      errors.invalid("metadata.ownerReferences.apiVersion", version, "must not be empty");
    } else if (std::ranges::count(version, '/') > 1) {
      errors.invalid("metadata.ownerReferences.apiVersion", version, "must be VERSION or GROUP/VERSION");
    }
    for (const std::string_view member : {"kind", "name", "uid"}) {
      if (!owner.string_at({member}).empty()) continue;
      errors.invalid(std::string(kField) + "." + std::string(member), "", "must not be empty");
    }
    if (owner.string_at({"kind"}) == "Event" && version == "v1") {
      errors.invalid(kField, owner, "v1 Event is disallowed from being an owner");
    }
    const Json* is_controller = owner.find("controller");
    if (is_controller == nullptr || !is_controller->if_bool().value_or(false)) continue;
    const std::string who = std::string(owner.string_at({"kind"})) + "/" + std::string(owner.string_at({"name"}));
    if (!controller.empty()) {
      errors.invalid(kField, Json(*owners),
                     "Only one reference can have Controller set to true. Found \"true\" in references for " +
                         controller + " and " + who);
    }
    controller = who;
  }
}

void check_new_finalizers(const Json& object, const Json& old, FieldErrors& errors) {
  if (old.string_at({"metadata", "deletionTimestamp"}).empty()) return;
  const Json::Array* now = elements(object, "finalizers");
  if (now == nullptr) return;
  const Json::Array* before = elements(old, "finalizers");
  std::set<std::string_view> known;
  if (before != nullptr) {
    for (const Json& finalizer : *before) known.insert(finalizer.string_at({}));
  }
  std::string added;
  for (const Json& finalizer : *now) {
    if (known.contains(finalizer.string_at({}))) continue;
    if (!added.empty()) added += ", ";
    added += finalizer.if_string() != nullptr ? *finalizer.if_string() : std::string();
  }
  if (added.empty()) return;
  errors.forbidden(
      "metadata.finalizers",
      "no new finalizers can be added if the object is being deleted, found new finalizers [" + added + "]");
}

/// Members that no update may change; a deletion begins with a DELETE.
void check_immutable_members(const Json& object, const Json& old, FieldErrors& errors) {
  static const Json kAbsent;
  for (const std::string_view member : {"uid", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    const Json* now = object.at({"metadata", member});
    const Json* before = old.at({"metadata", member});
    const Json& value = now != nullptr ? *now : kAbsent;
    if (value == (before != nullptr ? *before : kAbsent)) continue;
    errors.invalid("metadata." + std::string(member), value, "field is immutable");
  }
}

/// Checks for both new and changed objects.
void check_common(const Json& object, FieldErrors& errors) {
  check_labels(object, errors);
  check_annotations(object, errors);
  check_owners(object, errors);
}

void check_whole(NameRule rule, const Json& object, FieldErrors& errors) {
  check_name(rule, object, errors);
  check_common(object, errors);
  check_finalizers(object, errors);
}

void add_times(int times, const FieldErrors& found, FieldErrors& errors) {
  for (int i = 0; i < times && !found.empty(); ++i) errors.add(found);
}

}  // namespace

std::vector<std::string> name_problems(NameRule rule, std::string_view name) {
  switch (rule) {
    case NameRule::kDnsSubdomain:
      return api::dns1123_subdomain_errors(name);
    case NameRule::kDnsLabel:
      return api::dns1123_label_errors(name);
    case NameRule::kPathSegment:
      return api::path_segment_errors(name);
  }
  return {};
}

std::vector<std::string> prefix_problems(NameRule rule, std::string_view prefix) {
  if (rule == NameRule::kPathSegment) return api::path_segment_part_errors(prefix);
  if (prefix.size() < 2 || !prefix.ends_with('-')) return name_problems(rule, prefix);
  // A dash at the end will have something behind it.
  return name_problems(rule, std::string(prefix.substr(0, prefix.size() - 2)) + "a");
}

bool is_finalizer_of_somebody(std::string_view name) {
  return name == "orphan" || name == "foregroundDeletion" || name == "kubernetes" ||
         name.find('/') != std::string_view::npos;
}

void validate_metadata(const Resource& resource, const Json& object, FieldErrors& errors) {
  if (resource.metadata.create == 0) return;
  check_whole(resource.names, object, errors);
  if (resource.metadata.standard_finalizers) check_standard_finalizers(object, errors);
}

void validate_any_metadata(const Json& object, FieldErrors& errors) {
  check_whole(NameRule::kPathSegment, object, errors);
}

void validate_metadata_update(const Resource& resource, UpdatedPart part, const Json& object, const Json& old,
                              FieldErrors& errors) {
  const MetadataChecks& checks = resource.metadata;
  const bool status = part == UpdatedPart::kStatus;
  const int whole = status ? checks.status_whole : checks.update_whole;
  const int change = status ? checks.status_change : checks.update_change;
  // Each check runs once and counts as often as upstream runs it; the first run is that of objects of any kind.
  const auto count_check = [&errors](int times, auto check) {
    if (times == 0) return;
    FieldErrors found;
    check(found);
    add_times(times, found, errors);
  };
  count_check(1, [&](FieldErrors& found) { check_name(NameRule::kPathSegment, object, found); });
  count_check(whole, [&](FieldErrors& found) { check_name(resource.names, object, found); });
  count_check(1 + whole, [&](FieldErrors& found) { check_finalizers(object, found); });
  count_check(1 + change, [&](FieldErrors& found) {
    check_new_finalizers(object, old, found);
    check_immutable_members(object, old, found);
  });
  count_check(1 + whole + 1 + change, [&](FieldErrors& found) { check_common(object, found); });
  const int own = checks.standard_finalizers ? whole + change : 0;
  count_check(own, [&](FieldErrors& found) { check_standard_finalizers(object, found); });
}

}  // namespace spillway::apiserver
