// Containers of the three lists: what all have in common, and what each list allows and forbids.
#include "api/text/names.h"
#include "apiserver/kinds/pod/rules.h"
#include "base/ascii.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 2> kMessagePolicies{"FallbackToLogsOnError", "File"};

/// Members that only restartable init containers may have.
constexpr std::array<std::string_view, 4> kServiceFields{"lifecycle", "livenessProbe", "readinessProbe",
                                                         "startupProbe"};
/// Members that a container for debugging may not have; "resources" only if they are not empty.
constexpr std::array<std::string_view, 9> kNotForDebugging{"lifecycle",      "livenessProbe",      "ports",
                                                           "readinessProbe", "resizePolicy",       "resources",
                                                           "restartPolicy",  "restartPolicyRules", "startupProbe"};

using ContainerNames = std::set<std::string_view>;

ContainerNames names_in(const CheckedField& containers) {
  ContainerNames names;
  for (const api::Json& container : containers.elements()) names.insert(container.string_at({"name"}));
  return names;
}

void check_every_container(const CheckedField& container, const ContainerContext& context) {
  const CheckedField name = container["name"];
  if (name.require_text()) name.require_valid(api::dns1123_label_errors(name.text()));
  const CheckedField image = container["image"];
  image.require_text();
  const CheckedField message_policy = container["terminationMessagePolicy"];
  if (message_policy.require_text()) message_policy.require_one_of(kMessagePolicies);
  const CheckedField pull_policy = container["imagePullPolicy"];
  if (pull_policy.require_text()) pull_policy.require_one_of(kPullPolicies);
  check_ports(container["ports"]);
  check_environment(container, context.volumes);
  check_mounts(container, context.volumes);
  check_resources(container["resources"]);
  check_container_security(container["securityContext"], context.host_users);
}

constexpr std::string_view kNeverRestarted = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
constexpr std::string_view kRunsOnce = "must not be set to 'RestartContainer' for non-sidecar initContainers";

void check_service_fields(const CheckedField& container, const ContainerContext& context) {
  check_lifecycle(container["lifecycle"], context.grace_seconds);
  check_probes(container, context.grace_seconds);
}

void check_regular_containers(const CheckedField& containers, const ContainerContext& context) {
  if (containers.empty()) return containers.required();
  ContainerNames names;
  std::vector<CheckedField> all;
  for (std::size_t i = 0; i < containers.size() && !containers.full(); ++i) {
    const CheckedField& container = all.emplace_back(containers.at(i));
    check_every_container(container, context);
    const CheckedField name = container["name"];
    if (!names.insert(name.text()).second) name.duplicate();
    check_service_fields(container, context);
    check_resize_policy(container["resizePolicy"], context.restart_policy == "Never" ? kNeverRestarted : "");
    check_restart_policy(container);
  }
  check_host_port_clashes(all);
}

/// `names`: of the regular containers; those of init containers are added.
void check_init_container(const CheckedField& container, ContainerNames& names, const ContainerContext& context) {
  check_every_container(container, context);
  const CheckedField restarts = container["restartPolicy"];
  check_restart_policy(container);
  const CheckedField name = container["name"];
  if (names.contains(name.text())) {
    name.duplicate();
  } else if (!name.text().empty()) {
    names.insert(name.text());
  }
  // Init containers run one after the other: each has the ports of the host for itself.
  check_host_port_clashes({&container, 1});
  const bool restarts_always = restarts.text() == "Always";
  check_resize_policy(container["resizePolicy"], restarts_always ? "" : kRunsOnce);
  if (restarts.text() == "Always") return check_service_fields(container, context);
  for (const std::string_view key : kServiceFields) {
    const CheckedField field = container[key];
    if (field) field.forbidden("may not be set for init containers without restartPolicy=Always");
  }
}

void check_debug_container(const CheckedField& container, ContainerNames& names, const ContainerNames& targets,
                           const ContainerContext& context) {
  check_every_container(container, context);
  const CheckedField image = container["image"];
  check_image_edges(image);
  const CheckedField name = container["name"];
  if (!names.insert(name.text()).second) name.duplicate();
  const CheckedField target = container["targetContainerName"];
  if (!target.text().empty() && !targets.contains(target.text())) target.not_found();
  for (const std::string_view key : kNotForDebugging) {
    const CheckedField field = container[key];
    const api::Json::Object* members = field.json().if_object();
    const bool says_nothing = key == "resources" && members != nullptr && members->empty();
    if (field && !says_nothing) field.forbidden("cannot be set for an Ephemeral Container");
  }
  const CheckedField mounts = container["volumeMounts"];
  mounts.each([](const CheckedField& mount) {
    for (const std::string_view key : {"subPath", "subPathExpr"}) {
      const CheckedField path = mount[key];
      if (!path.text().empty()) path.forbidden("cannot be set for an Ephemeral Container");
    }
  });
}

}  // namespace

void check_image_edges(const CheckedField& image) {
  if (trimmed(image.text(), kWhiteSpace).size() == image.text().size()) return;
  image.invalid("must not have leading or trailing whitespace");
}

void check_containers(const CheckedField& spec, const ContainerContext& context) {
  const CheckedField regular = spec["containers"];
  check_regular_containers(regular, context);
  ContainerNames names = names_in(regular);
  const CheckedField init = spec["initContainers"];
  init.each([&](const CheckedField& container) { check_init_container(container, names, context); });
  const CheckedField debugging = spec["ephemeralContainers"];
  if (debugging.empty()) return;
  ContainerNames targets = names_in(regular);
  targets.merge(names_in(init));
  ContainerNames taken = targets;
  debugging.each([&](const CheckedField& container) { check_debug_container(container, taken, targets, context); });
}

}  // namespace spillway::apiserver::kinds
