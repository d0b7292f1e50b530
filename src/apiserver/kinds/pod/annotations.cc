// Annotations that mean something to a pod's spec: old names of security profiles, mirror pods, deletion costs.
#include "api/json/json.h"
#include "api/object/pod.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/pod/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kTolerationsAnnotation = "scheduler.alpha.kubernetes.io/tolerations";
constexpr std::string_view kDeletionCostAnnotation = "controller.kubernetes.io/pod-deletion-cost";
constexpr std::string_view kLocalhostPrefix = "localhost/";

/// A 32-bit integer without plus and leading zeros; "-0" and "-05" pass, as they do upstream.
bool is_deletion_cost(std::string_view text) {
  if (text.empty() || text.front() == '+' || (text.front() == '0' && text != "0")) return false;
  std::int32_t cost = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cost);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Validates tolerations in the annotation of old versions by the rules of the spec.
void check_toleration_annotation(const CheckedField& annotations, std::string_view written) {
  const auto parsed = api::parse_json(written);
  const api::Json::Array* list = parsed ? parsed->if_array() : nullptr;
  const bool good = list != nullptr && std::ranges::all_of(*list, [](const api::Json& one) { return one.is_object(); });
  if (!good && !(parsed && parsed->is_null()))
    return annotations.invalid(written, "must be a JSON list of tolerations");
  const CheckedField shown = annotations[kTolerationsAnnotation];
  const std::string path = shown.path();
  check_tolerations(CheckedField(&*parsed, path, annotations.errors()));
}

void check_seccomp_annotation(const CheckedField& annotation) {
  std::string_view profile = annotation.text();
  if (profile == "runtime/default" || profile == "docker/default" || profile == "unconfined") return;
  if (!profile.starts_with(kLocalhostPrefix)) return annotation.invalid("must be a valid seccomp profile");
  profile.remove_prefix(kLocalhostPrefix.size());
  annotation.require_valid(descending_path_errors(profile));
}

bool has_container(const CheckedField& spec, std::string_view name) {
  bool found = false;
  each_container(spec, [&](const CheckedField& container) { found = found || container["name"].text() == name; });
  return found;
}

void check_app_armor_annotation(const CheckedField& annotation, std::string_view container, const CheckedField& spec) {
  if (!has_container(spec, container)) annotation.invalid(container, "container not found");
  const std::string_view profile = annotation.text();
  if (profile.empty() || profile == "runtime/default" || profile == "unconfined" ||
      profile.starts_with(kLocalhostPrefix)) {
    return;
  }
  annotation.invalid(fmt::format("invalid AppArmor profile name: \"{}\"", profile));
}

/// Compares a profile in an annotation with the field that replaced the annotation.
void check_agreement(std::string_view annotation, const CheckedField& profile, std::string_view runtime_alias,
                     std::string_view what) {
  const CheckedField type = profile["type"];
  const CheckedField local = profile["localhostProfile"];
  const bool localhost = annotation.starts_with(kLocalhostPrefix);
  const bool is_default = annotation == "runtime/default" || annotation == runtime_alias;
  const std::string_view said = type.text();
  if ((said == "Unconfined" && annotation != "unconfined") || (said == "RuntimeDefault" && !is_default) ||
      (said == "Localhost" && !localhost)) {
    type.forbidden(fmt::format("{} type in annotation and field must match", what));
  } else if (said == "Localhost" && annotation.substr(kLocalhostPrefix.size()) != local.text()) {
    local.forbidden(fmt::format("{} profile in annotation and field must match", what));
  }
}

const std::string* annotation_of(const api::Json& annotations, std::string_view key) {
  const api::Json* value = annotations.find(key);
  return value != nullptr ? value->if_string() : nullptr;
}

void check_container_agreement(const api::Json& annotations, const CheckedField& container, std::string_view prefix,
                               std::string_view profile_name, std::string_view runtime_alias, std::string_view what) {
  const CheckedField context = container["securityContext"];
  const CheckedField profile = context[profile_name];
  if (!profile) return;
  const std::string key = fmt::format("{}{}", prefix, container["name"].text());
  if (const std::string* said = annotation_of(annotations, key)) check_agreement(*said, profile, runtime_alias, what);
}

}  // namespace

void check_pod_annotations(const CheckedField& annotations, const CheckedField& spec) {
  annotations.each_key([&](std::string_view key, const CheckedField& annotation) {
    if (key == api::kConfigMirrorAnnotation) {
      if (spec["nodeName"].text().empty()) {
        annotation.invalid("must set spec.nodeName if mirror pod annotation is set");
      }
    } else if (key == kTolerationsAnnotation) {
      if (!annotation.text().empty()) check_toleration_annotation(annotations, annotation.text());
    } else if (key == kDeletionCostAnnotation) {
      if (!is_deletion_cost(annotation.text())) annotation.invalid("must be a 32bit integer");
    } else if (key == kSeccompPodAnnotation || key.starts_with(kSeccompContainerAnnotationPrefix)) {
      check_seccomp_annotation(annotations[key]);
    } else if (key.starts_with(kAppArmorAnnotationPrefix)) {
      check_app_armor_annotation(annotation, key.substr(kAppArmorAnnotationPrefix.size()), spec);
    }
  });
}

void check_seccomp_agreement(const api::Json& annotations, const CheckedField& spec) {
  if (annotations.if_object() == nullptr) return;
  const CheckedField context = spec["securityContext"];
  const CheckedField of_pod = context["seccompProfile"];
  const std::string* said = annotation_of(annotations, kSeccompPodAnnotation);
  if (of_pod && said != nullptr) check_agreement(*said, of_pod, "docker/default", "seccomp");
  each_container(spec, [&annotations](const CheckedField& container) {
    check_container_agreement(annotations, container, kSeccompContainerAnnotationPrefix, "seccompProfile",
                              "docker/default", "seccomp");
  });
}

void check_app_armor_agreement(const api::Json& annotations, const CheckedField& spec) {
  const CheckedField system = spec["os"];
  if (annotations.if_object() == nullptr || system["name"].text() == "windows") return;
  each_container(spec, [&annotations](const CheckedField& container) {
    check_container_agreement(annotations, container, kAppArmorAnnotationPrefix, "appArmorProfile", "runtime/default",
                              "apparmor");
  });
}

void check_annotation_changes(const CheckedField& annotations, const api::Json& old) {
  const auto refuse = [&annotations](std::string_view key, std::string_view verb) {
    const CheckedField annotation = annotations.key(key);
    if (key.starts_with(kAppArmorAnnotationPrefix)) {
      annotation.forbidden(fmt::format("may not {} AppArmor annotations", verb));
    } else if (key == api::kConfigMirrorAnnotation) {
      annotation.forbidden(fmt::format("may not {} mirror pod annotation", verb));
    }
  };
  if (old.if_object() != nullptr) {
    for (const auto& member : *old.if_object()) {
      if (annotations.full()) return;
      const CheckedField now = annotations.key(member.key);
      if (!now || !(now.json() == member.value)) refuse(member.key, "remove or update");
    }
  }
  annotations.each_key([&](std::string_view key, const CheckedField&) {
    if (old.find(key) == nullptr) refuse(key, "add");
  });
}

}  // namespace spillway::apiserver::kinds
