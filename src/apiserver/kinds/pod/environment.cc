// Environment variables, and the fields and resources they and downwardAPI volumes name.
#include "api/text/names.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/pod/rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

/// Fields of a pod that have a name at all; "spec.host" is an old one.
constexpr std::array<std::string_view, 15> kPodFields{"metadata.annotations", "metadata.labels",
                                                      "metadata.name",        "metadata.namespace",
                                                      "metadata.uid",         "spec.host",
                                                      "spec.nodeName",        "spec.restartPolicy",
                                                      "spec.schedulerName",   "spec.serviceAccountName",
                                                      "status.hostIP",        "status.hostIPs",
                                                      "status.phase",         "status.podIP",
                                                      "status.podIPs"};
constexpr std::array<std::string_view, 10> kEnvironmentFields{
    "metadata.name",           "metadata.namespace", "metadata.uid",   "spec.host",    "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP",      "status.hostIPs", "status.podIP", "status.podIPs"};
constexpr std::array<std::string_view, 5> kVolumeFields{"metadata.annotations", "metadata.labels", "metadata.name",
                                                        "metadata.namespace", "metadata.uid"};
constexpr std::array<std::string_view, 6> kResourceFields{
    "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
constexpr std::array<std::string_view, 2> kHugePagePrefixes{"limits.hugepages-", "requests.hugepages-"};
constexpr std::array<std::string_view, 2> kCpuDivisors{"1", "1m"};
constexpr std::array<std::string_view, 13> kByteDivisors{"1",   "1k",  "1M",  "1G",  "1T",  "1P", "1E",
                                                         "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& known, std::string_view text) {
  return std::ranges::find(known, text) != known.end();
}

bool names_huge_pages(std::string_view resource) {
  return std::ranges::any_of(kHugePagePrefixes, [&](std::string_view prefix) { return resource.starts_with(prefix); });
}

/// "metadata.labels['a']" is ("metadata.labels", "a"); nullopt for a path without a key in brackets.
std::optional<std::pair<std::string_view, std::string_view>> subscripted(std::string_view path) {
  if (!path.ends_with("']")) return std::nullopt;
  path.remove_suffix(2);
  const std::size_t open = path.find("['");
  if (open == std::string_view::npos || open == 0) return std::nullopt;
  return std::pair(path.substr(0, open), path.substr(open + 2));
}

void check_divisor(const CheckedField& divisor, std::string_view resource) {
  const auto amount = divisor.quantity();
  if (!amount || amount->is_zero()) return;
  const std::string written = amount->to_string();
  if (resource.ends_with(".cpu") && is_one_of(kResourceFields, resource)) {
    if (!is_one_of(kCpuDivisors, written))
      divisor.invalid("only divisor's values 1m and 1 are supported with the cpu resource");
  } else if (is_one_of(kResourceFields, resource) || names_huge_pages(resource)) {
    if (!is_one_of(kByteDivisors, written)) {
      divisor.invalid("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported");
    }
  }
}

/// A key of a ConfigMap or Secret.
void check_key_reference(const CheckedField& reference) {
  const CheckedField name = reference["name"];
  name.require_valid(api::dns1123_subdomain_errors(name.text()));
  const CheckedField key = reference["key"];
  if (key.require_text()) key.require_valid(config_key_errors(key.text()));
}

bool is_printable_but_equals(char c) {
  return c >= ' ' && c <= '~' && c != '=';
}

/// A variable of a file in a volume of the pod.
void check_file_reference(const CheckedField& reference, const VolumesByName& volumes) {
  const CheckedField key = reference["key"];
  if (key.require_text() && !std::ranges::all_of(key.text(), is_printable_but_equals)) {
    key.invalid("a valid environment variable name must consist only of printable ASCII characters other than '='");
  }
  const CheckedField volume = reference["volumeName"];
  if (volume.require_text()) volume.require_valid(api::dns1123_label_errors(volume.text()));
  const auto known = volumes.find(volume.text());
  if (known == volumes.end()) {
    volume.errors().not_found(volume.path(), api::Json(volume.text()));
  } else if (known->second->find("emptyDir") == nullptr) {
    volume.invalid("referenced volume must be of type emptyDir");
  }
  const CheckedField path = reference["path"];
  if (path.require_text()) path.require_valid(backstep_errors(path.text()));
}

void check_value_source(const CheckedField& from, std::string_view value, const VolumesByName& volumes) {
  if (!from) return;
  int sources = 0;
  if (const CheckedField field = from["fieldRef"]) {
    ++sources;
    check_field_reference(field, FieldUse::kEnvironment);
  }
  if (const CheckedField resource = from["resourceFieldRef"]) {
    ++sources;
    check_resource_reference(resource, FieldUse::kEnvironment);
  }
  for (const std::string_view name : {"configMapKeyRef", "secretKeyRef"}) {
    const CheckedField reference = from[name];
    if (!reference) continue;
    ++sources;
    check_key_reference(reference);
  }
  if (const CheckedField file = from["fileKeyRef"]) {
    ++sources;
    check_file_reference(file, volumes);
  }
  if (sources == 0) {
    from.invalid("",
                 "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
                 "`fileKeyRef`");
  } else if (!value.empty()) {
    from.invalid("", "may not be specified when `value` is not empty");
  } else if (sources > 1) {
    from.invalid("", "may not have more than one field specified at a time");
  }
}

void check_variable(const CheckedField& variable, const VolumesByName& volumes) {
  const CheckedField name = variable["name"];
  if (name.require_text()) name.require_valid(environment_name_errors(name.text()));
  check_value_source(variable["valueFrom"], variable["value"].text(), volumes);
}

/// Errors about the number of sources are reported at the list.
void check_bulk_source(const CheckedField& source, const CheckedField& list) {
  const CheckedField prefix = source["prefix"];
  if (!prefix.text().empty()) prefix.require_valid(environment_name_errors(prefix.text()));
  int sources = 0;
  for (const std::string_view name : {"configMapRef", "secretRef"}) {
    const CheckedField reference = source[name];
    if (!reference) continue;
    ++sources;
    const CheckedField object = reference["name"];
    if (object.require_text()) object.require_valid(api::dns1123_subdomain_errors(object.text()));
  }
  if (sources == 0) {
    list.invalid("", "must specify one of: `configMapRef` or `secretRef`");
  } else if (sources > 1) {
    list.invalid("", "may not have more than one field specified at a time");
  }
}

}  // namespace

void check_field_reference(const CheckedField& reference, FieldUse use) {
  const CheckedField version = reference["apiVersion"];
  const CheckedField path = reference["fieldPath"];
  if (!version.require_text() || !path.require_text()) return;
  if (version.text() != "v1") {
    return path.invalid(fmt::format("error converting fieldPath: unsupported pod version: {}", version.text()));
  }
  const auto parts = subscripted(path.text());
  if (!parts) {
    if (!is_one_of(kPodFields, path.text())) {
      path.invalid(fmt::format("error converting fieldPath: field label not supported: {}", path.text()));
    } else if (use == FieldUse::kEnvironment) {
      path.require_one_of(kEnvironmentFields);
    } else {
      path.require_one_of(kVolumeFields);
    }
  } else if (parts->first == "metadata.labels") {
    for (const std::string& problem : api::qualified_name_errors(parts->second)) {
      reference.invalid(parts->second, problem);
    }
  } else if (parts->first == "metadata.annotations") {
    for (const std::string& problem : annotation_key_errors(parts->second)) reference.invalid(parts->second, problem);
  } else {
    path.invalid(fmt::format("error converting fieldPath: field label does not support subscript: {}", path.text()));
  }
}

void check_resource_reference(const CheckedField& reference, FieldUse use) {
  const CheckedField container = reference["containerName"];
  const CheckedField resource = reference["resource"];
  if (use == FieldUse::kVolume && container.text().empty()) {
    container.required();
  } else if (resource.require_text() && !names_huge_pages(resource.text())) {
    resource.require_one_of(kResourceFields);
  }
  check_divisor(reference["divisor"], resource.text());
}

void check_environment(const CheckedField& container, const VolumesByName& volumes) {
  const CheckedField variables = container["env"];
  variables.each([&volumes](const CheckedField& variable) { check_variable(variable, volumes); });
  const CheckedField sources = container["envFrom"];
  sources.each([&sources](const CheckedField& source) { check_bulk_source(source, sources); });
}

}  // namespace spillway::apiserver::kinds
