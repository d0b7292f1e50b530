// Validation of changes of a pod's status.
#include "api/codec/codec.h"
#include "api/object/pod.h"
#include "api/text/names.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/rules.h"
#include "policy/containers/restart_rules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kDeviceHealth{"Healthy", "Unhealthy", "Unknown"};
constexpr std::array<std::string_view, 3> kSystemConditions{"Initialized", "PodScheduled", "Ready"};

/// At most one address of each family. `before`: the addresses that an update replaces.
void check_addresses(const CheckedField& addresses, const api::Json::Array& before) {
  bool any_v4 = false;
  bool any_v6 = false;
  for (const api::Json& address : addresses.elements()) {
    (text(address, "ip").find(':') == std::string_view::npos ? any_v4 : any_v6) = true;
  }
  const std::size_t count = addresses.size();
  if (count > 2 || (count == 2 && !(any_v4 && any_v6))) {
    addresses.invalid("may specify no more than one IP for each IP family");
  }
  addresses.each([&before](const CheckedField& address) {
    const std::string_view ip = text(address.json(), "ip");
    const bool stays = std::ranges::any_of(before, [&](const api::Json& old) { return text(old, "ip") == ip; });
    for (const std::string& problem : stays ? kept_ip_errors(ip) : ip_errors(ip)) address.invalid(ip, problem);
  });
}

void check_host_addresses(const CheckedField& status, const api::Json& before) {
  const CheckedField addresses = status["hostIPs"];
  if (addresses.empty()) return;
  const CheckedField first = addresses.at(0);
  const CheckedField ip = first["ip"];
  if (ip.text() != status["hostIP"].text()) ip.invalid("must be equal to `hostIP`");
  check_addresses(addresses, elements(before, "hostIPs"));
}

const api::Json& ended_state(const api::Json& status) {
  return value_of(value_of(status, "state"), "terminated");
}

/// True if the container starts again after this exit, by its policy and rules or with all containers of its pod.
bool may_begin_again(const api::PodSpec& spec, std::string_view name, std::int32_t exit_code) {
  if (api::may_restart_all(spec)) return true;
  for (const auto* list : {&spec.init_containers, &spec.containers}) {
    const auto found = std::ranges::find(*list, name, &api::Container::name);
    if (found != list->end()) return containers::restarts_after(spec, *found, exit_code);
  }
  return exit_code != 0 && spec.restart_policy == "OnFailure";
}

/// A container that has ended for good stays ended.
void check_transitions(const CheckedField& statuses, const api::Json::Array& before, const api::Json& spec) {
  const auto has_ended = [](const api::Json& status) { return ended_state(status).is_object(); };
  if (std::ranges::none_of(before, has_ended)) return;
  const auto typed = api::decode<api::PodSpec>(spec);
  if (!typed) return;  // a stored pod can be read
  for (std::size_t i = 0; i < before.size() && !statuses.full(); ++i) {
    const api::Json& ended = ended_state(before[i]);
    const std::string_view name = text(before[i], "name");
    if (!ended.is_object()) continue;
    const auto exit_code = static_cast<std::int32_t>(integer(ended, "exitCode").value_or(0));
    if (may_begin_again(*typed, name, exit_code)) continue;
    for (const api::Json& now : statuses.elements()) {
      if (text(now, "name") != name || has(value_of(now, "state"), "terminated")) continue;
      const CheckedField status = statuses.at(i);
      const CheckedField state = status["state"];
      state.forbidden("may not be transitioned to non-terminated state");
    }
  }
}

bool asks_for(const api::Json::Array& containers, std::string_view container, std::string_view resource) {
  return std::ranges::any_of(containers, [&](const api::Json& one) {
    return text(one, "name") == container && has(value_of(value_of(one, "resources"), "requests"), resource);
  });
}

/// Validates the health of a container's devices: each resource once, one that the container requests, and each device
/// once.
void check_device_health(const CheckedField& status, const api::Json::Array& containers) {
  const CheckedField resources = status["allocatedResourcesStatus"];
  const std::string_view container = text(status.json(), "name");
  std::set<std::string_view> names;
  resources.each([&](const CheckedField& resource) {
    const CheckedField name = resource["name"];
    if (!names.insert(name.text()).second) name.duplicate();
    if (!asks_for(containers, container, name.text())) {
      name.invalid("must match one of the container's resource requests");
    }
    std::set<std::string_view> ids;
    const CheckedField devices = resource["resources"];
    devices.each([&ids](const CheckedField& device) {
      const CheckedField id = device["resourceID"];
      const CheckedField health = device["health"];
      if (!ids.insert(id.text()).second) id.duplicate();
      health.optional_one_of(kDeviceHealth);
    });
  });
}

void check_generation(const CheckedField& observed) {
  if (observed.integer().value_or(0) < 0) observed.invalid("must be a non-negative integer");
}

/// Errors of types name the field as Go spells it: upstream's slip, on which clients rely.
void check_conditions(const CheckedField& conditions) {
  conditions.each([](const CheckedField& condition) {
    const std::string_view type = text(condition.json(), "type");
    check_generation(condition["observedGeneration"]);
    if (std::ranges::find(kSystemConditions, type) != kSystemConditions.end()) return;
    const CheckedField shown = condition["Type"];
    for (const std::string& problem : api::qualified_name_errors(type)) shown.invalid(type, problem);
  });
}

}  // namespace

void check_status_change(const CheckedField& pod, const api::Json& old) {
  const CheckedField status = pod["status"];
  const api::Json& before = value_of(old, "status");
  const api::Json& spec = value_of(old, "spec");
  check_generation(status["observedGeneration"]);
  check_conditions(status["conditions"]);
  const CheckedField nominated = status["nominatedNodeName"];
  if (!nominated.text().empty() && nominated.text() != text(before, "nominatedNodeName")) {
    nominated.require_valid(api::dns1123_subdomain_errors(nominated.text()));
    if (!text(spec, "nodeName").empty()) {
      nominated.forbidden("may not be set on pods that are already bound to a node");
    }
  }
  const CheckedField qos = status["qosClass"];
  if (qos.text() != text(before, "qosClass")) qos.invalid(kImmutable);
  if (text(spec, "restartPolicy") != "Always") {
    for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
      check_transitions(status[list], elements(before, list), spec);
    }
  }
  for (const auto& [list, containers] :
       {std::pair("containerStatuses", "containers"), std::pair("initContainerStatuses", "initContainers")}) {
    const CheckedField statuses = status[list];
    const api::Json::Array& specified = elements(spec, containers);
    statuses.each([&specified](const CheckedField& one) { check_device_health(one, specified); });
  }
  const CheckedField claims = status["resourceClaimStatuses"];
  claims.each([](const CheckedField& claim) {
    const CheckedField name = claim["name"];
    name.invalid(name.text(), "must match the name of an entry in `spec.resourceClaims`");
  });
  check_addresses(status["podIPs"], elements(before, "podIPs"));
  check_host_addresses(status, before);
}

}  // namespace spillway::apiserver::kinds
