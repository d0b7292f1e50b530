#include "apiserver/kinds/fields/resource_names.h"

#include "api/text/names.h"
#include "api/text/resource_names.h"

#include <algorithm>
#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kContainerResources{"cpu", "ephemeral-storage", "memory"};
/// Names without a domain that mean something somewhere, sorted.
constexpr std::array<std::string_view, 20> kKnownResources{"configmaps",
                                                           "cpu",
                                                           "ephemeral-storage",
                                                           "limits.cpu",
                                                           "limits.ephemeral-storage",
                                                           "limits.memory",
                                                           "memory",
                                                           "persistentvolumeclaims",
                                                           "pods",
                                                           "replicationcontrollers",
                                                           "requests.cpu",
                                                           "requests.ephemeral-storage",
                                                           "requests.memory",
                                                           "requests.storage",
                                                           "resourcequotas",
                                                           "secrets",
                                                           "services",
                                                           "services.loadbalancers",
                                                           "services.nodeports",
                                                           "storage"};
constexpr std::array<std::string_view, 2> kHugePageRequests{"hugepages-", "requests.hugepages-"};

template <std::size_t count>
bool is_listed(const std::array<std::string_view, count>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool has_domain(std::string_view name) {
  return name.find('/') != std::string_view::npos;
}

}  // namespace

void check_resource_name(std::string_view name, const CheckedField& at) {
  const auto problems = api::qualified_name_errors(name);
  for (const std::string& problem : problems) at.invalid(name, problem);
  if (!problems.empty() || has_domain(name) || is_listed(kKnownResources, name)) return;
  if (std::ranges::any_of(kHugePageRequests, [name](std::string_view prefix) { return name.starts_with(prefix); }))
    return;
  at.invalid(name, "must be a standard resource type or fully qualified");
}

void check_container_resource_name(std::string_view name, const CheckedField& at) {
  check_resource_name(name, at);
  if (!has_domain(name)) {
    if (!is_listed(kContainerResources, name) && !api::is_hugepage_resource(name)) {
      at.invalid(name, "must be a standard resource for containers");
    }
  } else if (!api::is_native_resource(name) && !api::is_extended_resource(name)) {
    at.invalid(name, "doesn't follow extended resource name standard");
  }
}

bool is_count_name(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kCounted{"configmaps",
                                                            "persistentvolumeclaims",
                                                            "pods",
                                                            "replicationcontrollers",
                                                            "resourcequotas",
                                                            "secrets",
                                                            "services",
                                                            "services.loadbalancers",
                                                            "services.nodeports"};
  return std::ranges::binary_search(kCounted, name);
}

bool is_counted_whole(std::string_view name) {
  return is_count_name(name) || api::is_extended_resource(name);
}

}  // namespace spillway::apiserver::kinds
