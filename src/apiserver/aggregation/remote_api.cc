#include "apiserver/aggregation/remote_api.h"

#include "api/json/json_values.h"
#include "api/text/base64.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::int64_t kServiceHttpsPort = 443;
constexpr ApiPriority kCustom{.group = 1'000, .version = 100};

struct BuiltIn {
  std::string_view group;
  std::string_view version;
  ApiPriority priority;
};

/// Upstream's priorities; metrics.k8s.io has the one with which metrics-server registers.
constexpr auto kBuiltIn = std::to_array<BuiltIn>({
    {"apiregistration.k8s.io", "v1", {20'001, 1}},  // above all that an APIService may request
    {"", "v1", {18'000, 1}},
    {"apps", "v1", {17'800, 15}},
    {"events.k8s.io", "v1", {17'750, 15}},
    {"authentication.k8s.io", "v1", {17'700, 15}},
    {"authorization.k8s.io", "v1", {17'600, 15}},
    {"autoscaling", "v2", {17'500, 30}},
    {"autoscaling", "v1", {17'500, 15}},
    {"batch", "v1", {17'400, 15}},
    {"certificates.k8s.io", "v1", {17'300, 15}},
    {"networking.k8s.io", "v1", {17'200, 15}},
    {"policy", "v1", {17'100, 15}},
    {"rbac.authorization.k8s.io", "v1", {17'000, 15}},
    {"storage.k8s.io", "v1", {16'800, 15}},
    {"apiextensions.k8s.io", "v1", {16'700, 15}},
    {"admissionregistration.k8s.io", "v1", {16'700, 15}},
    {"scheduling.k8s.io", "v1", {16'600, 15}},
    {"coordination.k8s.io", "v1", {16'500, 15}},
    {"node.k8s.io", "v1", {16'300, 15}},
    {"discovery.k8s.io", "v1", {16'200, 15}},
    {"flowcontrol.apiserver.k8s.io", "v1", {16'100, 21}},
    {"metrics.k8s.io", "v1beta1", {100, 100}},
});

bool is_available(const Json& api_service) {
  const Json* list = api_service.at({"status", "conditions"});
  if (list == nullptr || list->if_array() == nullptr) return false;
  return std::ranges::any_of(*list->if_array(), [](const Json& condition) {
    return condition.string_at({"type"}) == "Available" && condition.string_at({"status"}) == "True";
  });
}

}  // namespace

std::optional<RemoteApi> remote_api(const Json& api_service) {
  const Json* spec = api_service.find("spec");
  const Json* service = spec == nullptr ? nullptr : spec->find("service");
  if (service == nullptr || !service->is_object()) return std::nullopt;
  const auto bundle = api::decode_base64(spec->string_at({"caBundle"}));
  const Json* insecure = spec->find("insecureSkipTLSVerify");
  return RemoteApi{.name = std::string(api_service.string_at({"metadata", "name"})),
                   .uid = std::string(api_service.string_at({"metadata", "uid"})),
                   .group = std::string(spec->string_at({"group"})),
                   .version = std::string(spec->string_at({"version"})),
                   .service_ns = std::string(service->string_at({"namespace"})),
                   .service_name = std::string(service->string_at({"name"})),
                   .port = api::integer_at(*service, {"port"}, kServiceHttpsPort),
                   .authority_pem = bundle ? *bundle : std::string(),
                   .verifies = insecure == nullptr || !insecure->if_bool().value_or(false),
                   .group_priority = api::integer_at(*spec, {"groupPriorityMinimum"}, 0),
                   .version_priority = api::integer_at(*spec, {"versionPriority"}, 0),
                   .available = is_available(api_service)};
}

std::string path_of(const RemoteApi& api) {
  return fmt::format("/apis/{}/{}", api.group, api.version);
}

ApiPriority local_priority(std::string_view group, std::string_view version) {
  const auto found =
      std::ranges::find_if(kBuiltIn, [&](const BuiltIn& row) { return row.group == group && row.version == version; });
  return found == kBuiltIn.end() ? kCustom : found->priority;
}

}  // namespace spillway::apiserver
