// Rules for the volumes of a container: mounted directories and devices.
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/pod/rules.h"

#include <algorithm>
#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kPropagations{"Bidirectional", "HostToContainer", "None"};
constexpr std::array<std::string_view, 3> kRecursiveModes{"Disabled", "Enabled", "IfPossible"};

/// Any element whose member is that text.
bool any_has(const CheckedField& list, std::string_view member, std::string_view text) {
  return std::ranges::any_of(list.elements(), [&](const api::Json& one) { return one.string_at({member}) == text; });
}

// Errors of these members are reported at the list: upstream leaves the index out.

void check_sub_paths(const CheckedField& mount, const CheckedField& mounts) {
  const CheckedField path = mount["subPath"];
  const CheckedField expression = mount["subPathExpr"];
  const auto check_path = [&](const CheckedField& field, std::string_view name) {
    if (field.text().empty()) return;
    const CheckedField shown = mounts[name];
    for (const std::string& problem : descending_path_errors(field.text())) shown.invalid(field.json(), problem);
  };
  check_path(path, "subPath");
  if (!expression.text().empty() && !path.text().empty()) {
    expression.invalid("subPathExpr and subPath are mutually exclusive");
  }
  check_path(expression, "subPathExpr");
}

void check_propagation(const CheckedField& mount, const CheckedField& mounts, bool privileged) {
  const CheckedField propagation = mount["mountPropagation"];
  if (!propagation) return;
  const CheckedField shown = mounts["mountPropagation"];
  if (std::ranges::find(kPropagations, propagation.text()) == kPropagations.end()) {
    shown.errors().not_supported(shown.path(), propagation.json(), kPropagations);
  }
  if (propagation.text() == "Bidirectional" && !privileged) {
    shown.forbidden("Bidirectional mount propagation is available only to privileged containers");
  }
}

void check_recursion(const CheckedField& mount, const CheckedField& mounts) {
  const CheckedField mode = mount["recursiveReadOnly"];
  if (!mode || mode.text() == "Disabled") return;
  const CheckedField shown = mounts["recursiveReadOnly"];
  if (std::ranges::find(kRecursiveModes, mode.text()) == kRecursiveModes.end()) {
    return shown.errors().not_supported(shown.path(), mode.json(), kRecursiveModes);
  }
  if (!mount["readOnly"].is_true()) shown.forbidden("may only be specified when readOnly is true");
  const CheckedField propagation = mount["mountPropagation"];
  if (propagation && propagation.text() != "None") {
    shown.forbidden("may only be specified when mountPropagation is None or not specified");
  }
}

void check_directories(const CheckedField& container, const VolumesByName& volumes) {
  const CheckedField mounts = container["volumeMounts"];
  const CheckedField devices = container["volumeDevices"];
  const CheckedField security = container["securityContext"];
  const bool privileged = security["privileged"].is_true();
  std::set<std::string_view> paths;
  mounts.each([&](const CheckedField& mount) {
    const CheckedField name = mount["name"];
    const CheckedField path = mount["mountPath"];
    name.require_text();
    if (!volumes.contains(name.text())) name.not_found();
    path.require_text();
    if (!paths.insert(path.text()).second) path.invalid("must be unique");
    if (any_has(devices, "name", name.text())) name.invalid("must not already exist in volumeDevices");
    if (any_has(devices, "devicePath", path.text())) path.invalid("must not already exist as a path in volumeDevices");
    check_sub_paths(mount, mounts);
    check_propagation(mount, mounts, privileged);
    check_recursion(mount, mounts);
  });
}

void check_device_volume(const CheckedField& name, const VolumesByName& volumes) {
  const auto volume = volumes.find(name.text());
  if (volume == volumes.end()) return name.not_found();
  if (volume->second->find("persistentVolumeClaim") == nullptr && volume->second->find("ephemeral") == nullptr) {
    name.invalid("can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
  }
}

void check_devices(const CheckedField& container, const VolumesByName& volumes) {
  const CheckedField devices = container["volumeDevices"];
  const CheckedField mounts = container["volumeMounts"];
  std::set<std::string_view> names;
  std::set<std::string_view> paths;
  devices.each([&](const CheckedField& device) {
    const CheckedField name = device["name"];
    const CheckedField path = device["devicePath"];
    name.require_text();
    if (names.contains(name.text())) name.invalid("must be unique");
    check_device_volume(name, volumes);
    path.require_text();
    if (paths.contains(path.text())) path.invalid("must be unique");
    if (!backstep_errors(path.text()).empty()) {
      path.invalid("can not contain backsteps ('..')");
    } else {
      paths.insert(path.text());
    }
    if (any_has(mounts, "name", name.text())) name.invalid("must not already exist in volumeMounts");
    if (any_has(mounts, "mountPath", path.text())) path.invalid("must not already exist as a path in volumeMounts");
    if (!name.text().empty()) names.insert(name.text());
  });
}

}  // namespace

void check_mounts(const CheckedField& container, const VolumesByName& volumes) {
  check_directories(container, volumes);
  check_devices(container, volumes);
}

}  // namespace spillway::apiserver::kinds
