#include "policy/autoscaling/scale_path.h"

#include "api/exchange/exchange.h"
#include "api/text/names.h"

#include <fmt/format.h>

namespace spillway::autoscaling {

namespace {

std::string group_of(const std::string& api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string::npos ? std::string() : api_version.substr(0, slash);
}

}  // namespace

Result<std::string> version_path(const std::string& api_version) {
  if (api_version.empty()) return std::string("/api/v1");
  const std::size_t slash = api_version.find('/');
  const bool core = slash == std::string::npos;
  const std::string group = group_of(api_version);
  const std::string version = core ? api_version : api_version.substr(slash + 1);
  if ((!core && !api::dns1123_subdomain_errors(group).empty()) || !api::dns1123_label_errors(version).empty()) {
    return make_error(ErrorCode::kInvalid, "unexpected GroupVersion string: {}", api_version);
  }
  return core ? "/api/" + version : fmt::format("/apis/{}/{}", group, version);
}

Error unknown_kind(const std::string& api_version, const std::string& kind) {
  return make_error(ErrorCode::kNotFound, "no matches for kind \"{}\" in group \"{}\"", kind, group_of(api_version));
}

Result<PluralKind> plural_of(const api::Json& resources, const std::string& api_version, const std::string& kind) {
  const api::Json* list = resources.find("resources");
  if (list == nullptr || list->if_array() == nullptr) return unknown_kind(api_version, kind);
  for (const api::Json& resource : *list->if_array()) {
    const std::string_view name = resource.string_at({"name"});
    const bool is_it = resource.string_at({"kind"}) == kind && !name.empty() && !name.contains('/');
    if (is_it) return PluralKind{std::string(name), group_of(api_version)};
  }
  return unknown_kind(api_version, kind);
}

Result<std::string> scale_path(const api::HorizontalPodAutoscaler& autoscaler, const PluralKind& kind) {
  SPILLWAY_TRY(version, version_path(autoscaler.target.api_version));
  return fmt::format("{}/namespaces/{}/{}/{}/scale", version, api::percent_encode(autoscaler.metadata.ns), kind.plural,
                     api::percent_encode(autoscaler.target.name));
}

}  // namespace spillway::autoscaling
