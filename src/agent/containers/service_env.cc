#include "agent/containers/service_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::string_view kMaster = "kubernetes";
constexpr std::string_view kMasterNamespace = "default";

/// "my-db" becomes MY_DB; dots stay.
std::string variable_name(std::string_view text) {
  std::string name;
  for (const char c : text) name += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::string lower(std::string_view text) {
  std::string name;
  for (const char c : text) name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

bool has_address(const api::Service& service) {
  return !service.cluster_ip.empty() && service.cluster_ip != "None";
}

api::Service service_at(const ApiServerAddress& address) {
  api::Service service;
  service.metadata.name = kMaster;
  service.metadata.ns = kMasterNamespace;
  service.cluster_ip = address.host;
  service.ports.push_back({.name = "https", .protocol = "TCP", .port = address.port});
  return service;
}

/// Variables by name. Counts the bytes of everything added, also of values that are replaced later.
class LinkVariables {
 public:
  void set(std::string name, std::string value) {
    bytes_ += name.size() + value.size();
    variables_.insert_or_assign(std::move(name), std::move(value));
  }

  bool too_large() const { return bytes_ > kServiceVariablesMax; }

  api::StringMap take() { return std::move(variables_); }

 private:
  api::StringMap variables_;
  std::size_t bytes_ = 0;
};

void add(LinkVariables& variables, const api::Service& service) {
  const std::string name = variable_name(service.metadata.name);
  const std::string& ip = service.cluster_ip;
  const std::string host = ip.contains(':') ? fmt::format("[{}]", ip) : ip;
  variables.set(name + "_SERVICE_HOST", ip);
  bool first = true;
  for (const api::ServicePort& port : service.ports) {
    const std::string number = std::to_string(port.port);
    const std::string protocol = port.protocol.empty() ? "TCP" : port.protocol;
    const std::string url = fmt::format("{}://{}:{}", lower(protocol), host, number);
    if (std::exchange(first, false)) {
      variables.set(name + "_SERVICE_PORT", number);
      variables.set(name + "_PORT", url);
    }
    if (!port.name.empty()) variables.set(fmt::format("{}_SERVICE_PORT_{}", name, variable_name(port.name)), number);
    const std::string prefix = fmt::format("{}_PORT_{}_{}", name, number, variable_name(protocol));
    variables.set(prefix, url);
    variables.set(prefix + "_PROTO", lower(protocol));
    variables.set(prefix + "_PORT", number);
    variables.set(prefix + "_ADDR", ip);
  }
}

}  // namespace

Result<api::StringMap> service_variables(const api::Pod& pod, const KnownServices& services) {
  if (!pod.spec.enable_service_links)
    return invalid({}, "nil pod.spec.enableServiceLinks encountered, cannot construct envvars");
  if (!services.read && !api::is_static(pod))
    return make_error(ErrorCode::kServiceUnavailable,
                      "services have not yet been read at least once, cannot construct envvars");
  std::optional<api::Service> direct;
  if (services.api_server && (services.api_server->reach == AddressReach::kAllPods || pod.spec.host_network)) {
    direct = service_at(*services.api_server);
  }
  std::map<std::string, const api::Service*> chosen;  // by name
  if (direct) chosen.emplace(kMaster, &*direct);
  for (const auto& each : services.all) {
    if (!has_address(*each)) continue;
    const std::string& ns = each->metadata.ns;
    if (direct && ns == kMasterNamespace && each->metadata.name == kMaster) continue;
    const bool own = *pod.spec.enable_service_links && ns == pod.metadata.ns;
    if (own) {
      chosen[each->metadata.name] = each.get();
    } else if (ns == kMasterNamespace && each->metadata.name == kMaster) {
      chosen.try_emplace(each->metadata.name, each.get());
    }
  }
  LinkVariables variables;
  for (const auto& [name, service] : chosen) {
    add(variables, *service);
    if (variables.too_large())
      return make_error(ErrorCode::kRequestEntityTooLarge,
                        "the variables of Services exceed {} bytes: argument list too long; "
                        "spec.enableServiceLinks: false leaves them out",
                        kServiceVariablesMax);
  }
  return variables.take();
}

}  // namespace spillway::agent
