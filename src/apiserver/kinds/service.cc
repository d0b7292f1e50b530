// Services: addresses from one range, ports, a selector. Nothing here forwards traffic.
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/tables.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 4> kTypes{"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"};
constexpr std::array<std::string_view, 3> kProtocols{"SCTP", "TCP", "UDP"};
constexpr std::string_view kNoAddress = "None";
constexpr int kAddressCount = 65534;  // 10.96.0.1 to 10.96.255.254

void default_service(api::Json& service) {
  api::Json& spec = service.make({"spec"});
  if (!spec.is_object()) spec = api::Json::object();
  set_default(spec, "type", "ClusterIP");
  set_default(spec, "sessionAffinity", "None");
  if (text(spec, "type") != "ExternalName") {
    set_default(spec, "internalTrafficPolicy", "Cluster");
    set_default(spec, "ipFamilyPolicy", "SingleStack");
    if (elements(std::as_const(spec), "ipFamilies").empty()) spec["ipFamilies"] = api::Json::array({"IPv4"});
  }
  if (api::Json::Array* ports = elements(spec, "ports")) {
    for (api::Json& port : *ports) {
      set_default(port, "protocol", "TCP");
      const api::Json* target = port.find("targetPort");
      if (target == nullptr || target->is_null() || target->if_int64() == 0)
        port["targetPort"] = api::Json(value_of(port, "port"));
    }
  }
}

std::string address(int index) {
  return fmt::format("10.96.{}.{}", index / 256, index % 256);
}

/// The lowest free address of the range.
api::StatusResult<void> admit_service(api::Json& service, const AdmissionContext& context) {
  api::Json& spec = service["spec"];
  if (text(spec, "type") == "ExternalName" || text(spec, "clusterIP") == kNoAddress) return {};
  std::set<std::string> taken;
  context.cluster.visit_field("services", "spec.clusterIP",
                              [&taken](const std::string& address) { taken.insert(address); });
  std::string chosen(text(spec, "clusterIP"));
  if (!chosen.empty() && taken.contains(chosen)) {
    api::FieldErrors errors;
    errors.invalid("spec.clusterIPs", api::Json::array({chosen}),
                   "failed to allocate IP: provided IP is already allocated");
    return api::invalid_status({"", "Service"}, service.string_at({"metadata", "name"}), errors);
  }
  for (int index = 1; chosen.empty() && index <= kAddressCount; ++index) {
    if (!taken.contains(address(index))) chosen = address(index);
  }
  if (chosen.empty()) {
    return api::Status(make_error(ErrorCode::kInternalError, "failed to allocate a serviceIP: range is full"));
  }
  spec["clusterIP"] = chosen;
  spec["clusterIPs"] = api::Json::array({chosen});
  return {};
}

void validate_service(const api::Json& service, api::FieldErrors& errors) {
  const api::Json& spec = value_of(service, "spec");
  require_one_of(spec, "type", "spec.type", kTypes, errors);
  const api::Json::Array& ports = elements(spec, "ports");
  if (ports.empty() && text(spec, "type") != "ExternalName" && text(spec, "clusterIP") != kNoAddress) {
    errors.required("spec.ports");
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < ports.size() && !errors.full(); ++i) {
    const std::string path = api::index_path("spec.ports", i);
    const std::string_view name = text(ports[i], "name");
    if (ports.size() > 1 && name.empty()) errors.required(path + ".name");
    if (!name.empty() && !names.insert(name).second) errors.duplicate(path + ".name", name);
    const std::int64_t port = integer(ports[i], "port").value_or(0);
    if (port < 1 || port > 65535) errors.invalid(path + ".port", port, "must be between 1 and 65535, inclusive");
    require_one_of(ports[i], "protocol", path + ".protocol", kProtocols, errors);
  }
}

/// The address stays when an update leaves it out.
void keep_address(api::Json& service, const api::Json& old, Endpoint) {
  api::Json& spec = service["spec"];
  for (const std::string_view key : {"clusterIP", "clusterIPs"}) {
    const api::Json& before = value_of(value_of(old, "spec"), key);
    const bool absent = !has(spec, key) || spec[key].string_at({}).empty();
    if (absent && !before.is_null() && !(spec[key].is_array() && !spec[key].if_array()->empty())) spec[key] = before;
  }
}

void validate_service_update(const api::Json& service, const api::Json& old, Endpoint endpoint,
                             api::FieldErrors& errors) {
  if (endpoint != Endpoint::kMain) return;
  validate_service(service, errors);
  const std::string_view before = old.string_at({"spec", "clusterIP"});
  if (!before.empty() && service.string_at({"spec", "clusterIP"}) != before &&
      service.string_at({"spec", "type"}) != "ExternalName") {
    errors.invalid("spec.clusterIPs[0]", service.string_at({"spec", "clusterIP"}), "may not change once set");
  }
}

}  // namespace

KindHooks service_hooks() {
  const TableDefinition table = service_table();
  return {.set_defaults = default_service,
          .admit_create = admit_service,
          .validate_create = validate_service,
          .prepare_update = keep_address,
          .validate_update = validate_service_update,
          .columns = table.columns,
          .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
