// Validation of changes of a pod's status.
#include "api/text/names.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/rules.h"

#include <algorithm>
#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kSystemConditions{"Initialized", "PodScheduled", "Ready"};

/// At most one address of each family.
void check_addresses(const CheckedField& addresses) {
  bool any_v4 = false;
  bool any_v6 = false;
  for (const api::Json& address : addresses.elements()) {
    (text(address, "ip").find(':') == std::string_view::npos ? any_v4 : any_v6) = true;
  }
  const std::size_t count = addresses.size();
  if (count > 2 || (count == 2 && !(any_v4 && any_v6))) {
    addresses.invalid("may specify no more than one IP for each IP family");
  }
  std::set<std::string_view> taken;
  addresses.each([&taken](const CheckedField& address) {
    const std::string_view ip = text(address.json(), "ip");
    for (const std::string& problem : ip_errors(ip)) address.invalid(ip, problem);
    if (!taken.insert(ip).second) address.duplicate();
  });
}

void check_host_addresses(const CheckedField& status) {
  const CheckedField addresses = status["hostIPs"];
  if (addresses.empty()) return;
  const CheckedField first = addresses.at(0);
  const CheckedField ip = first["ip"];
  if (ip.text() != status["hostIP"].text()) ip.invalid("must be equal to `hostIP`");
  check_addresses(addresses);
}

bool is_sidecar(const api::Json& spec, std::string_view name) {
  return std::ranges::any_of(elements(spec, "initContainers"), [&](const api::Json& container) {
    return text(container, "name") == name && text(container, "restartPolicy") == "Always";
  });
}

/// A container that has ended for good stays ended.
void check_transitions(const CheckedField& statuses, const api::Json::Array& before, const api::Json& spec) {
  const std::string_view policy = text(spec, "restartPolicy");
  for (std::size_t i = 0; i < before.size() && !statuses.full(); ++i) {
    const api::Json& ended = value_of(value_of(before[i], "state"), "terminated");
    const std::string_view name = text(before[i], "name");
    if (!ended.is_object() || is_sidecar(spec, name)) continue;
    if (integer(ended, "exitCode").value_or(0) != 0 && policy == "OnFailure") continue;
    for (const api::Json& now : statuses.elements()) {
      if (text(now, "name") != name || has(value_of(now, "state"), "terminated")) continue;
      const CheckedField status = statuses.at(i);
      const CheckedField state = status["state"];
      state.forbidden("may not be transitioned to non-terminated state");
    }
  }
}

/// Errors of conditions name the metadata: upstream's slip, which clients know.
void check_conditions(const CheckedField& status) {
  const std::string_view kShown = "metadata.conditions";
  const CheckedField conditions(&status["conditions"].json(), kShown, status.errors());
  conditions.each([](const CheckedField& condition) {
    const std::string_view type = text(condition.json(), "type");
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
  check_conditions(status);
  const CheckedField nominated = status["nominatedNodeName"];
  if (!nominated.text().empty() && nominated.text() != text(before, "nominatedNodeName")) {
    nominated.require_valid(api::dns1123_subdomain_errors(nominated.text()));
  }
  const CheckedField qos = status["qosClass"];
  if (qos.text() != text(before, "qosClass")) qos.invalid(kImmutable);
  if (text(spec, "restartPolicy") != "Always") {
    for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
      check_transitions(status[list], elements(before, list), spec);
    }
  }
  const CheckedField claims = status["resourceClaimStatuses"];
  claims.each([](const CheckedField& claim) {
    const CheckedField name = claim["name"];
    name.invalid(name.text(), "must match the name of an entry in `spec.resourceClaims`");
  });
  check_addresses(status["podIPs"]);
  check_host_addresses(status);
}

}  // namespace spillway::apiserver::kinds
