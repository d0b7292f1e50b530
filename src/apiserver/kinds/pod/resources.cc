// Validation of the resource requests and limits of a container.
#include "api/codec/codec.h"
#include "api/exchange/status.h"
#include "api/object/pod_requests.h"
#include "api/text/quantity.h"
#include "api/text/resource_names.h"
#include "apiserver/kinds/fields/resource_names.h"
#include "apiserver/kinds/pod/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kHugePages = "hugepages-";
constexpr std::array<std::string_view, 2> kResizable{"cpu", "memory"};
constexpr std::array<std::string_view, 2> kResizePolicies{"NotRequired", "RestartContainer"};
/// Names for a whole pod, as the error lists them.
constexpr std::array<std::string_view, 3> kWholePodNames{"cpu", kHugePages, "memory"};

bool is_whole_pages(std::string_view name, const api::Quantity& amount) {
  const auto size = api::parse_quantity(name.substr(kHugePages.size()));
  if (!size || size->sign() <= 0 || size->milli_value() % 1000 != 0) return false;
  return amount.value() % size->value() == 0;
}

void check_amount(std::string_view name, const CheckedField& field) {
  check_container_resource_name(name, field);
  const auto amount = field.quantity();
  if (!amount) return;
  if (amount->sign() < 0) field.invalid("must be greater than or equal to 0");
  if (is_counted_whole(name) && amount->milli_value() % 1000 != 0) {
    field.invalid("must be an integer");
  }
  if (api::is_hugepage_resource(name) && !is_whole_pages(name, *amount)) {
    field.invalid(fmt::format("{} is not positive integer multiple of {}", amount->to_string(), name));
  }
}

/// Sorts of resources that a list names.
struct NamedResources {
  bool cpu_or_memory = false;
  bool huge_pages = false;
};

void mark_resource(std::string_view name, NamedResources& named) {
  if (name == "cpu" || name == "memory") named.cpu_or_memory = true;
  if (api::is_hugepage_resource(name)) named.huge_pages = true;
}

/// A request must not be above the limit, and must equal it for resources that cannot be shared.
void check_against_limit(std::string_view name, const CheckedField& amount, const CheckedField& requests,
                         const CheckedField& limits) {
  const bool shared = api::allows_overcommit(name);
  const CheckedField limit_field = limits.key(name);
  const auto limit = limit_field.quantity();
  const auto request = amount.quantity();
  if (!limit) {
    if (!shared) limits.required("Limit must be set for non overcommitable resources");
  } else if (request && *request != *limit && !shared) {
    requests.invalid(amount.json(), fmt::format("must be equal to {} limit of {}", name, limit->to_string()));
  } else if (request && *request > *limit) {
    requests.invalid(amount.json(),
                     fmt::format("must be less than or equal to {} limit of {}", name, limit->to_string()));
  }
}

void check_whole_pod_names(const CheckedField& amounts) {
  amounts.each_key([](std::string_view name, const CheckedField& amount) {
    if (!api::is_pod_level_resource(name)) {
      amount.errors().not_supported(amount.path(), api::Json(name), kWholePodNames);
    }
  });
}

/// Claims belong to containers. Each must name a claim of the pod.
void check_whole_pod_claims(const CheckedField& claims, const CheckedField& spec) {
  if (claims.empty()) return;
  claims.forbidden("claims may not be set for Resources at pod-level");
  const CheckedField known = spec["resourceClaims"];
  std::set<std::string_view> names;
  for (const api::Json& each : known.elements()) names.insert(each.string_at({"name"}));
  const std::string offered = names.empty() ? " which is empty" : fmt::format(": {}", fmt::join(names, ", "));
  claims.each([&](const CheckedField& claim) {
    const CheckedField name = claim["name"];
    if (names.contains(name.text())) return;
    claim.errors().add(
        {.reason = api::FieldReason::kNotFound,
         .message = fmt::format("Not found: \"{}\": must be one of the names in pod.spec.resourceClaims{}", name.text(),
                                offered),
         .field = claim.path()});
  });
}

/// Requests and limits of huge pages are at least those of the containers together.
void check_covers(const CheckedField& amounts, const api::ResourceList& stated, const api::ResourceList& aggregate,
                  std::string_view what) {
  for (const auto& [name, amount] : stated) {
    const auto sum = aggregate.find(name);
    if (!api::is_pod_level_resource(name) || sum == aggregate.end() || amount >= sum->second) continue;
    const CheckedField field = amounts.key(name);
    field.invalid(
        fmt::format("must be greater than or equal to aggregate container {} of {}", what, sum->second.to_string()));
  }
}

/// No container has a limit above that of the pod.
void check_container_limits(const CheckedField& resources, const api::PodSpec& spec) {
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    for (const auto& [name, limit] : spec.containers[i].resources.limits) {
      const api::Quantity* whole = api::pod_level_limit(spec, name);
      if (whole == nullptr || api::is_hugepage_resource(name) || limit <= *whole) continue;
      resources.errors().invalid(fmt::format("{}.containers[{}][{}].limits", resources.path(), i, name),
                                 api::Json(limit.to_string()),
                                 fmt::format("must be less than or equal to pod limits of {}", whole->to_string()));
    }
  }
}

api::ResourceList huge_pages_of(const api::ResourceList& amounts) {
  api::ResourceList pages;
  for (const auto& each : amounts) {
    if (api::is_hugepage_resource(each.first)) pages.insert(each);
  }
  return pages;
}

}  // namespace

void check_whole_pod_resources(const CheckedField& spec) {
  const CheckedField resources = spec["resources"];
  if (!resources) return;
  if (spec.json().string_at({"os", "name"}) == "windows") {
    return resources.forbidden("may not be set for a windows pod");
  }
  const CheckedField claims = resources["claims"];
  check_whole_pod_claims(claims, spec);
  check_resources(resources);
  const CheckedField limits = resources["limits"];
  const CheckedField requests = resources["requests"];
  check_whole_pod_names(limits);
  check_whole_pod_names(requests);
  const auto typed = api::decode<api::PodSpec>(spec.json());
  if (!typed || !typed->resources) return;  // typed decoding refuses the pod
  check_covers(requests, typed->resources->requests, api::aggregate_requests(*typed), "requests");
  check_covers(limits, huge_pages_of(typed->resources->limits), api::aggregate_limits(*typed), "limits");
  check_container_limits(resources, *typed);
}

void check_resources(const CheckedField& resources) {
  const CheckedField limits = resources["limits"];
  const CheckedField requests = resources["requests"];
  NamedResources named;
  limits.each_key([&](std::string_view name, const CheckedField& amount) {
    check_amount(name, amount);
    mark_resource(name, named);
  });
  requests.each_key([&](std::string_view name, const CheckedField& amount) {
    check_amount(name, amount);
    check_against_limit(name, amount, requests, limits);
    mark_resource(name, named);
  });
  if (named.huge_pages && !named.cpu_or_memory) resources.forbidden("HugePages require cpu or memory");
}

void check_resize_policy(const CheckedField& policies, std::string_view restarts_refused) {
  std::set<std::string_view> named;
  policies.each([&](const CheckedField& policy) {
    const CheckedField resource = policy["resourceName"];
    const CheckedField restarts = policy["restartPolicy"];
    if (!resource.text().empty() && !named.insert(resource.text()).second) {
      policies.errors().duplicate(policy.path(), resource.json());
    }
    // Errors of the members are reported at the list, as upstream does.
    if (resource.text().empty()) {
      policies.required();
    } else if (std::ranges::find(kResizable, resource.text()) == kResizable.end()) {
      policies.errors().not_supported(policies.path(), resource.json(), kResizable);
    }
    if (restarts.text().empty()) {
      policies.required();
    } else if (std::ranges::find(kResizePolicies, restarts.text()) == kResizePolicies.end()) {
      policies.errors().not_supported(policies.path(), restarts.json(), kResizePolicies);
    } else if (restarts.text() == "RestartContainer" && !restarts_refused.empty()) {
      restarts.invalid(restarts_refused);
    }
  });
}

void check_overhead(const CheckedField& overhead) {
  const CheckedField limits = overhead.member({}, "limits");
  NamedResources named;
  if (overhead.json().if_object() == nullptr) return;
  for (const auto& member : *overhead.json().if_object()) {
    if (overhead.full()) return;
    const std::string at = api::key_path(limits.path(), member.key);
    check_amount(member.key, CheckedField(&member.value, at, overhead.errors()));
    mark_resource(member.key, named);
  }
  if (named.huge_pages && !named.cpu_or_memory) overhead.forbidden("HugePages require cpu or memory");
}

}  // namespace spillway::apiserver::kinds
