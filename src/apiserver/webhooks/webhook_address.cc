#include "apiserver/webhooks/webhook_address.h"

#include "api/json/json_values.h"
#include "api/object/selector.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using webhooks::ServiceReference;
using webhooks::Webhook;

constexpr std::int64_t kServicePortMax = 65'535;
constexpr std::size_t kShownBytesMax = 256;  // bytes shown in a message

const Json::Array& list_at(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json::Array kNothing;
  const Json* found = object.at(path);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNothing : *list;
}

std::string origin_of(const ServicePlace& place) {
  const bool v6 = place.host.find(':') != std::string::npos;
  return fmt::format("https://{}{}{}:{}", v6 ? "[" : "", place.host, v6 ? "]" : "", place.port);
}

std::string timeout_query(const Webhook& webhook) {
  return fmt::format("?timeout={}s", std::chrono::duration_cast<std::chrono::seconds>(webhook.timeout).count());
}

std::string service_target(const ServiceReference& service, const Webhook& webhook) {
  const bool rooted = service.path.starts_with('/');
  return fmt::format("{}{}{}", rooted ? "" : "/", service.path, timeout_query(webhook));
}

Error unreachable(std::string_view why) {
  return make_error(ErrorCode::kServiceUnavailable, "{}", why);
}

bool is_ready(const Json& pod) {
  if (pod.string_at({"status", "podIP"}).empty() || !pod.string_at({"metadata", "deletionTimestamp"}).empty()) {
    return false;
  }
  for (const Json& condition : list_at(pod, {"status", "conditions"})) {
    if (condition.string_at({"type"}) == "Ready") return condition.string_at({"status"}) == "True";
  }
  return false;
}

/// The port of the pod that a port of the service leads to; 0: it has none of that name.
std::int64_t target_port(const Json& port, const Json& pod) {
  const Json* target = port.find("targetPort");
  if (target == nullptr || target->is_null()) return api::integer_at(port, {"port"}, 0);
  if (const auto number = target->if_int64()) return *number == 0 ? api::integer_at(port, {"port"}, 0) : *number;
  for (const Json& container : list_at(pod, {"spec", "containers"})) {
    for (const Json& named : list_at(container, {"ports"})) {
      if (named.string_at({"name"}) == target->string_at({})) return api::integer_at(named, {"containerPort"}, 0);
    }
  }
  return 0;
}

/// Addresses at which ready pods of a service listen. Empty also for a service that selects none.
std::vector<ServicePlace> places_of(Core& core, const Json& service, const Json& port) {
  std::vector<ServicePlace> places;
  const Json* selector = service.at({"spec", "selector"});
  const Json::Object* wanted = selector == nullptr ? nullptr : selector->if_object();
  if (wanted == nullptr || wanted->empty()) return places;
  const std::string ns(service.string_at({"metadata", "namespace"}));
  core.cache.of(core.registry.get("pods")).visit(ns + "/", {}, [&](const ObjectPtr& pod) {
    for (const auto& [key, value] : *wanted) {
      const auto label = pod->meta.labels.find(key);
      if (label == pod->meta.labels.end() || label->second != value.string_at({})) return true;
    }
    const api::DocumentPtr document = pod->shared_document();
    if (!is_ready(*document)) return true;
    const std::int64_t number = target_port(port, *document);
    if (number > 0 && number <= kServicePortMax) {
      places.push_back({std::string(document->string_at({"status", "podIP"})), number});
    }
    return true;
  });
  return places;
}

}  // namespace

Result<ServicePlace> place_of(Core& core, const ServiceReference& reference) {
  const ObjectPtr found = core.cache.of(core.registry.get("services")).find(object_key(reference.ns, reference.name));
  if (!found) return unreachable(fmt::format("service \"{}\" not found", reference.name));
  const Json service = found->document();
  if (service.string_at({"spec", "type"}) == "ExternalName") {
    return ServicePlace{std::string(service.string_at({"spec", "externalName"})), reference.port};
  }
  const Json* port = nullptr;
  for (const Json& one : list_at(service, {"spec", "ports"})) {
    if (api::integer_at(one, {"port"}, 0) == reference.port) port = &one;
  }
  if (port == nullptr) {
    return unreachable(fmt::format("no service port {} found for service \"{}\"", reference.port, reference.name));
  }
  std::vector<ServicePlace> places = places_of(core, service, *port);
  if (!places.empty()) return std::move(places[core.rng.below(places.size())]);
  const std::string_view address = service.string_at({"spec", "clusterIP"});
  if (address.empty() || address == "None") {
    return unreachable(fmt::format("no endpoints available for service \"{}\"", reference.name));
  }
  return ServicePlace{std::string(address), reference.port};
}

std::string shown_url(const Webhook& webhook) {
  if (!webhook.service) return webhook.url + timeout_query(webhook);
  const ServiceReference& service = *webhook.service;
  return fmt::format("https://{}.{}.svc:{}{}", service.name, service.ns, service.port,
                     service_target(service, webhook));
}

std::string refusal_text(const api::Response& response) {
  constexpr int kUnauthorized = 401;
  constexpr int kNotFound = 404;
  constexpr int kServerError = 500;
  if (response.status == kNotFound) return "the server could not find the requested resource";
  if (response.status == kUnauthorized) return "the server has asked for the client to provide credentials";
  if (response.status >= kServerError) {
    return fmt::format("an error on the server (\"{}\") has prevented the request from succeeding",
                       is_utf8(response.body) ? shortened(response.body, kShownBytesMax) : "unknown");
  }
  return fmt::format("the server responded with the status code {} but did not return more information",
                     response.status);
}

Result<WebhookCall> call_of(Core& core, const Webhook& webhook) {
  WebhookCall call{.origin = {},
                   .target = {},
                   .tls_name = {},
                   .authority_pem = webhook.authority_pem,
                   .body = {},
                   .timeout = webhook.timeout};
  if (webhook.service) {
    SPILLWAY_TRY(place, place_of(core, *webhook.service));
    call.origin = origin_of(place);
    call.target = service_target(*webhook.service, webhook);
    call.tls_name = fmt::format("{}.{}.svc", webhook.service->name, webhook.service->ns);
    return call;
  }
  constexpr std::string_view kScheme = "https://";
  if (!webhook.url.starts_with(kScheme)) return unreachable("the webhook has no address");
  const std::size_t path = std::min(webhook.url.find_first_of("/?#", kScheme.size()), webhook.url.size());
  call.origin = webhook.url.substr(0, path);
  std::string_view rest = std::string_view(webhook.url).substr(path);
  rest = rest.substr(0, rest.find_first_of("?#"));
  call.target = fmt::format("{}{}", rest.empty() ? "/" : rest, timeout_query(webhook));
  return call;
}

}  // namespace spillway::apiserver
