#include "policy/webhooks/webhook.h"

#include "api/json/json_values.h"
#include "api/text/base64.h"

#include <algorithm>
#include <utility>

namespace spillway::webhooks {

namespace {

using api::Json;

constexpr std::int64_t kSecondsDefault = 10;  // as in the API
constexpr std::int64_t kSecondsMax = 30;      // as in the API
constexpr std::int64_t kHttpsPort = 443;

const Json::Array& list_at(const Json& object, std::string_view key) {
  static const Json::Array kNothing;
  const Json* found = object.find(key);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNothing : *list;
}

std::optional<ServiceReference> service_of(const Json& webhook) {
  const Json* service = webhook.at({"clientConfig", "service"});
  if (service == nullptr || !service->is_object()) return std::nullopt;
  return ServiceReference{.ns = std::string(service->string_at({"namespace"})),
                          .name = std::string(service->string_at({"name"})),
                          .path = std::string(service->string_at({"path"})),
                          .port = api::integer_at(*service, {"port"}, kHttpsPort)};
}

Webhook webhook_of(Phase phase, std::string_view configuration, const Json& webhook) {
  const std::string_view effects = webhook.string_at({"sideEffects"});
  Webhook made{.phase = phase,
               .configuration = std::string(configuration),
               .name = std::string(webhook.string_at({"name"})),
               .rules = {},
               .namespaces = selector_at(webhook, "namespaceSelector"),
               .objects = selector_at(webhook, "objectSelector"),
               .fails_open = webhook.string_at({"failurePolicy"}) == "Ignore",
               .equivalent = webhook.string_at({"matchPolicy"}) != "Exact",
               .dry_run_safe = effects == "None" || effects == "NoneOnDryRun",
               .asked_again = webhook.string_at({"reinvocationPolicy"}) == "IfNeeded",
               .timeout = seconds(std::clamp<std::int64_t>(
                   api::integer_at(webhook, {"timeoutSeconds"}, kSecondsDefault), 1, kSecondsMax)),
               .url = std::string(webhook.string_at({"clientConfig", "url"})),
               .service = service_of(webhook),
               .authority_pem = api::decode_base64(webhook.string_at({"clientConfig", "caBundle"})).value_or(""),
               .conditions = match_conditions_of(webhook)};
  for (const Json& rule : list_at(webhook, "rules")) made.rules.push_back(rule_of(rule));
  return made;
}

}  // namespace

api::LabelSelector selector_at(const Json& object, std::string_view key) {
  const Json* said = object.find(key);
  if (said == nullptr || said->is_null()) return {};
  return api::label_selector_from_json(said).value_or(api::LabelSelector{});
}

Rule rule_of(const Json& rule) {
  const std::string_view scope = rule.string_at({"scope"});
  return {.operations = api::strings_at(rule, {"operations"}),
          .groups = api::strings_at(rule, {"apiGroups"}),
          .versions = api::strings_at(rule, {"apiVersions"}),
          .resources = api::strings_at(rule, {"resources"}),
          .scope = scope == "Cluster"      ? Scope::kCluster
                   : scope == "Namespaced" ? Scope::kNamespaced
                                           : Scope::kAny,
          .names = api::strings_at(rule, {"resourceNames"})};
}

std::vector<Webhook> webhooks_of(Phase phase, const Json& configuration) {
  std::vector<Webhook> found;
  const std::string_view name = configuration.string_at({"metadata", "name"});
  for (const Json& webhook : list_at(configuration, "webhooks")) found.push_back(webhook_of(phase, name, webhook));
  return found;
}

}  // namespace spillway::webhooks
