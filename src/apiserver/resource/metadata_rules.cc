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

constexpr std::size_t kLabelMax = 63;
constexpr std::size_t kAnnotationBytesMax = 256 * 1024;

constexpr std::string_view kDns1035Fault =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')";

const Json::Object* members(const Json& object, std::string_view name) {
  const Json* value = object.at({"metadata", name});
  return value == nullptr ? nullptr : value->if_object();
}

const Json::Array* elements(const Json& object, std::string_view name) {
  const Json* value = object.at({"metadata", name});
  return value == nullptr ? nullptr : value->if_array();
}

void check_name(const Resource& resource, const Json& object, FieldErrors& errors) {
  const std::string_view name = object.string_at({"metadata", "name"});
  const std::string_view prefix = object.string_at({"metadata", "generateName"});
  if (name.empty()) {
    if (prefix.empty()) errors.required("metadata.name", "name or generateName is required");
    return;
  }
  for (const std::string& problem : name_problems(resource.names, name)) {
    errors.invalid("metadata.name", name, problem);
  }
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
  const Json::Object* annotations = members(object, "annotations");
  if (annotations == nullptr) return;
  std::size_t bytes = 0;
  for (const auto& [key, value] : *annotations) {
    if (errors.full()) return;
    std::string lower = key;
    std::ranges::transform(lower, lower.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    for (const std::string& problem : api::qualified_name_errors(lower)) {
      errors.invalid("metadata.annotations", key, problem);
    }
    bytes += key.size() + (value.if_string() != nullptr ? value.if_string()->size() : 0);
  }
  if (bytes > kAnnotationBytesMax) errors.too_long("metadata.annotations", kAnnotationBytesMax);
}

void check_finalizers(const Json& object, FieldErrors& errors) {
  const Json::Array* finalizers = elements(object, "finalizers");
  if (finalizers == nullptr) return;
  bool orphan = false;
  bool foreground = false;
  for (std::size_t i = 0; i < finalizers->size() && !errors.full(); ++i) {
    const std::string* name = (*finalizers)[i].if_string();
    if (name == nullptr) continue;
    const std::string field = api::index_path("metadata.finalizers", i);
    orphan = orphan || *name == "orphan";
    foreground = foreground || *name == "foregroundDeletion";
    const bool standard = *name == "orphan" || *name == "foregroundDeletion" || *name == "kubernetes";
    const std::vector<std::string> problems = api::qualified_name_errors(*name);
    for (const std::string& problem : problems) errors.invalid(field, *name, problem);
    if (problems.empty() && !standard && name->find('/') == std::string::npos) {
      errors.invalid(field, *name, "name is neither a standard finalizer name nor is it fully qualified");
    }
  }
  if (orphan && foreground) {
    errors.invalid("metadata.finalizers", Json(*finalizers),
                   "finalizer orphan and foregroundDeletion cannot be both set");
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
    if (version.empty()) {
      errors.invalid("metadata.ownerReferences.apiVersion", version, "version must not be empty");
    } else if (std::ranges::count(version, '/') > 1) {
      errors.invalid("metadata.ownerReferences.apiVersion", version, "must be VERSION or GROUP/VERSION");
    }
    for (const std::string_view member : {"kind", "name", "uid"}) {
      if (!owner.string_at({member}).empty()) continue;
      errors.invalid(std::string(kField) + "." + std::string(member), "", std::string(member) + " must not be empty");
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

}  // namespace

std::vector<std::string> name_problems(NameRule rule, std::string_view name) {
  switch (rule) {
    case NameRule::kDnsSubdomain:
      return api::dns1123_subdomain_errors(name);
    case NameRule::kDnsLabel:
      return api::dns1123_label_errors(name);
    case NameRule::kDns1035Label:
      if (!api::dns1123_label_errors(name).empty() || (name.front() >= '0' && name.front() <= '9')) {
        return {name.size() > kLabelMax ? std::string("must be no more than 63 bytes") : std::string(kDns1035Fault)};
      }
      return {};
    case NameRule::kPathSegment:
      if (name == "." || name == "..") return {"may not be '" + std::string(name) + "'"};
      if (name.find('/') != std::string_view::npos) return {"may not contain '/'"};
      if (name.find('%') != std::string_view::npos) return {"may not contain '%'"};
      return {};
  }
  return {};
}

void validate_metadata(const Resource& resource, const Json& object, FieldErrors& errors) {
  check_name(resource, object, errors);
  check_labels(object, errors);
  check_annotations(object, errors);
  check_owners(object, errors);
  check_finalizers(object, errors);
}

void validate_metadata_update(const Resource& resource, const Json& object, const Json& old, FieldErrors& errors) {
  static_cast<void>(resource);
  check_labels(object, errors);
  check_annotations(object, errors);
  check_owners(object, errors);
  check_finalizers(object, errors);
  check_new_finalizers(object, old, errors);
}

}  // namespace spillway::apiserver
