// spec.os, and the fields that a pod for one operating system may not set.
#include "apiserver/kinds/pod/rules.h"

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 2> kSystems{"linux", "windows"};
constexpr std::string_view kNotOnWindows = "cannot be set for a windows pod";

/// Members of the pod that a Windows pod may not set; false equals absent.
constexpr std::array<std::string_view, 2> kLinuxPodFlags{"hostIPC", "hostPID"};
/// Fields for Linux alone in the pod's security context.
constexpr std::array<std::string_view, 11> kLinuxPodContext{"appArmorProfile",
                                                            "fsGroup",
                                                            "fsGroupChangePolicy",
                                                            "runAsGroup",
                                                            "runAsUser",
                                                            "seLinuxOptions",
                                                            "seLinuxChangePolicy",
                                                            "sysctls",
                                                            "seccompProfile",
                                                            "supplementalGroups",
                                                            "supplementalGroupsPolicy"};
/// Fields for Linux alone in a container's security context.
constexpr std::array<std::string_view, 10> kLinuxContainerContext{
    "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "privileged",     "procMount",
    "readOnlyRootFilesystem",   "runAsGroup",      "runAsUser",    "seLinuxOptions", "seccompProfile"};

template <std::size_t count>
void forbid_all(const CheckedField& holder, const std::array<std::string_view, count>& names) {
  for (const std::string_view name : names) {
    const CheckedField field = holder[name];
    if (field) field.forbidden(kNotOnWindows);
  }
}

void check_for_windows(const CheckedField& spec) {
  for (const std::string_view name : kLinuxPodFlags) {
    const CheckedField flag = spec[name];
    if (flag.is_true()) flag.forbidden(kNotOnWindows);
  }
  for (const std::string_view name : {"hostUsers", "shareProcessNamespace"}) {
    const CheckedField given = spec[name];
    if (given) given.forbidden(kNotOnWindows);
  }
  const CheckedField context = spec["securityContext"];
  forbid_all(context, kLinuxPodContext);
  each_container(spec, [](const CheckedField& container) {
    const CheckedField of_container = container["securityContext"];
    forbid_all(of_container, kLinuxContainerContext);
  });
}

void check_for_linux(const CheckedField& spec) {
  const auto check_context = [](const CheckedField& holder) {
    const CheckedField context = holder["securityContext"];
    const CheckedField options = context["windowsOptions"];
    if (options) options.forbidden("windows options cannot be set for a linux pod");
  };
  check_context(spec);
  each_container(spec, check_context);
}

}  // namespace

void check_operating_system(const CheckedField& spec) {
  const CheckedField system = spec["os"];
  if (!system) return;
  const CheckedField name = system["name"];
  if (!name.require_text("cannot be empty")) return;
  if (name.text() == "windows") return check_for_windows(spec);
  if (name.text() == "linux") return check_for_linux(spec);
  system.errors().not_supported(system.path(), name.json(), kSystems);
}

}  // namespace spillway::apiserver::kinds
