#include "apiserver/aggregation/service_server.h"

#include "api/json/json_values.h"
#include "api/text/ip_address.h"
#include "apiserver/proxy/pod_server.h"
#include "apiserver/webhooks/webhook_address.h"
#include "base/ascii.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::int64_t kServicePortMax = 65'535;

Error no_server(std::string why) {
  return make_error(ErrorCode::kServiceUnavailable, "{}", why);
}

const Json::Array& items_at(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json::Array kNothing;
  const Json* found = object.at(path);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNothing : *list;
}

bool selects_pods(const Json& service) {
  const Json* selector = service.at({"spec", "selector"});
  const Json::Object* wanted = selector == nullptr ? nullptr : selector->if_object();
  return wanted != nullptr && !wanted->empty();
}

/// The port of a Service by its number; null: it has none.
const Json* port_of(const Json& service, std::int64_t number) {
  for (const Json& port : items_at(service, {"spec", "ports"})) {
    if (api::integer_at(port, {"port"}, 0) == number) return &port;
  }
  return nullptr;
}

/// The places at which Endpoints serve a port of that name.
std::vector<ServicePlace> places_in(const Json& endpoints, std::string_view port_name) {
  std::vector<ServicePlace> places;
  for (const Json& subset : items_at(endpoints, {"subsets"})) {
    for (const Json& port : items_at(subset, {"ports"})) {
      if (port.string_at({"name"}) != port_name) continue;
      const std::int64_t number = api::integer_at(port, {"port"}, 0);
      if (number <= 0 || number > kServicePortMax) continue;
      for (const Json& address : items_at(subset, {"addresses"})) {
        places.push_back({std::string(address.string_at({"ip"})), number});
      }
    }
  }
  return places;
}

ObjectPtr find_object(const Core& core, std::string_view plural, const RemoteApi& api) {
  return core.cache.of(core.registry.get(plural)).find(object_key(api.service_ns, api.service_name));
}

Result<ServicePlace> find_place(Core& core, const RemoteApi& api) {
  const ObjectPtr service = find_object(core, "services", api);
  if (service && service->document().string_at({"spec", "type"}) != "ExternalName" &&
      !selects_pods(service->document())) {
    const ObjectPtr endpoints = find_object(core, "endpoints", api);
    const Json document = service->document();
    const Json* port = port_of(document, api.port);
    if (endpoints && port != nullptr) {
      std::vector<ServicePlace> places = places_in(endpoints->document(), port->string_at({"name"}));
      if (!places.empty()) return std::move(places[core.rng.below(places.size())]);
    }
  }
  return place_of(core, {.ns = api.service_ns, .name = api.service_name, .path = {}, .port = api.port});
}

bool names_this_machine(std::string_view host) {
  const std::string name = lower_case(host);
  return name == "localhost" || name.ends_with(".localhost") || name == "localhost.";
}

}  // namespace

Result<AggregatedServer> server_of(Core& core, const RemoteApi& api) {
  SPILLWAY_TRY(place, find_place(core, api));
  if (place.host.empty()) return no_server(fmt::format("service \"{}\" has no address", api.service_name));
  std::string host = place.host;
  if (api::parse_ip(host)) {
    const auto allowed = proxyable_address(host);
    if (!allowed) return make_error(ErrorCode::kForbidden, "address not allowed");
    host = *allowed;
  } else if (names_this_machine(host)) {
    return make_error(ErrorCode::kForbidden, "address not allowed");
  }
  return AggregatedServer{.host = std::move(host),
                          .port = static_cast<std::uint16_t>(place.port),
                          .tls_name = fmt::format("{}.{}.svc", api.service_name, api.service_ns),
                          .authority_pem = api.authority_pem,
                          .verifies = api.verifies};
}

std::optional<Availability> service_problem(const Core& core, const RemoteApi& api) {
  const auto failed = [](std::string_view reason, std::string message) {
    return Availability{.status = "False", .reason = std::string(reason), .message = std::move(message)};
  };
  const std::string named = fmt::format("service/{} in \"{}\"", api.service_name, api.service_ns);
  const ObjectPtr found = find_object(core, "services", api);
  if (!found) return failed("ServiceNotFound", named + " is not present");
  const Json service = found->document();
  if (service.string_at({"spec", "type"}) != "ClusterIP") return std::nullopt;
  const Json* port = port_of(service, api.port);
  if (port == nullptr) {
    return failed("ServicePortError", fmt::format("{} is not listening on port {}", named, api.port));
  }
  const ObjectPtr endpoints = find_object(core, "endpoints", api);
  if (!endpoints) return failed("EndpointsNotFound", "cannot find endpoints for " + named);
  const std::string_view port_name = port->string_at({"name"});
  if (places_in(endpoints->document(), port_name).empty()) {
    return failed("MissingEndpoints",
                  fmt::format("endpoints for {} have no addresses with port name \"{}\"", named, port_name));
  }
  return std::nullopt;
}

}  // namespace spillway::apiserver
