#include "policy/quota/charge.h"

#include "api/object/pod_requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace spillway::quota {
namespace {

using api::Quantity;
using api::ResourceList;

constexpr std::size_t kNamesMax = 100;  // names of containers in one answer

/// The amounts that every container of a pod must state if a quota counts them, and the member that states them.
struct Stated {
  std::string_view amount;
  std::string_view resource;
  bool limit = false;
};

constexpr std::array<Stated, 6> kStated{{{"cpu", "cpu", false},
                                         {"limits.cpu", "cpu", true},
                                         {"limits.memory", "memory", true},
                                         {"memory", "memory", false},
                                         {"requests.cpu", "cpu", false},
                                         {"requests.memory", "memory", false}}};

/// "limits.cpu for: a; requests.memory for: a,b"; empty: all is stated, by the containers or for the whole pod.
std::string unstated(const api::Pod& pod, const std::vector<std::string_view>& counted) {
  std::vector<std::string> parts;
  for (const Stated& each : kStated) {
    if (std::ranges::find(counted, each.amount) == counted.end()) continue;
    const api::Quantity* whole =
        each.limit ? api::pod_level_limit(pod.spec, each.resource) : api::pod_level_request(pod.spec, each.resource);
    if (whole != nullptr) continue;
    std::set<std::string_view> names;
    const auto collect = [&](const std::vector<api::Container>& containers) {
      for (const api::Container& container : containers) {
        const ResourceList& amounts = each.limit ? container.resources.limits : container.resources.requests;
        if (!amounts.contains(each.resource) && names.size() < kNamesMax) names.insert(container.name);
      }
    };
    collect(pod.spec.containers);
    collect(pod.spec.init_containers);
    if (!names.empty()) parts.push_back(fmt::format("{} for: {}", each.amount, fmt::join(names, ",")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

Error refused(std::string message) {
  return Error{ErrorCode::kForbidden, std::move(message), {}};
}

/// Checks that the request states every amount that the quota requires.
Outcome may_judge(const api::ResourceQuota& quota, const Request& request) {
  const std::vector<std::string_view> counted = concerned(request.kind, quota.status.hard);
  if (request.pod != nullptr) {
    const std::string missing = unstated(*request.pod, counted);
    if (!missing.empty()) {
      return refused(fmt::format("failed quota: {}: must specify {}", quota.metadata.name, missing));
    }
  }
  if (std::ranges::all_of(counted, [&](std::string_view each) { return quota.status.used.contains(each); })) return {};
  return refused(
      fmt::format("status unknown for quota: {}, resources: {}", quota.metadata.name, fmt::join(counted, ",")));
}

std::string amounts_of(const ResourceList& amounts, const std::vector<std::string_view>& names) {
  std::vector<std::string> parts;
  for (const std::string_view name : names) {
    const auto at = amounts.find(name);
    if (at != amounts.end()) parts.push_back(fmt::format("{}={}", name, at->second.to_string()));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

/// The quota's usage with `more` added; an error if that exceeds the quota.
Result<ResourceList> raised(const api::ResourceQuota& quota, const ResourceList& more) {
  ResourceList used = quota.status.used;
  std::vector<std::string_view> exceeded;
  for (const auto& [name, hard] : quota.status.hard) {
    const auto added = more.find(name);
    if (added == more.end()) continue;
    Quantity& sum = used[name];
    sum += added->second;
    if (sum > hard) exceeded.emplace_back(name);
  }
  if (exceeded.empty()) return used;
  return refused(fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}", quota.metadata.name,
                             amounts_of(more, exceeded), amounts_of(quota.status.used, exceeded),
                             amounts_of(quota.status.hard, exceeded)));
}

}  // namespace

ResourceList increase(const Request& request) {
  ResourceList more;
  for (const auto& [name, amount] : request.usage) {
    const auto old = request.before.find(name);
    Quantity added = old == request.before.end() ? amount : amount - old->second;
    if (added.sign() > 0) more.emplace(name, std::move(added));
  }
  return more;
}

Result<std::vector<Raised>> charge(std::span<const api::ResourceQuota> quotas, const Request& request,
                                   std::span<const LimitedResource> limited) {
  std::vector<std::size_t> matching;
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    if (!matches(quotas[i], request.kind, request.pod)) continue;
    SPILLWAY_TRY_VOID(may_judge(quotas[i], request));
    matching.push_back(i);
  }
  const ResourceList more = increase(request);
  if (!more.empty()) {
    SPILLWAY_TRY_VOID(require_covered(limited, quotas, request.kind, request.pod, request.usage));
  }
  std::vector<Raised> all;
  for (const std::size_t i : matching) {
    SPILLWAY_TRY(used, raised(quotas[i], more));
    if (used != quotas[i].status.used) all.push_back({i, std::move(used)});
  }
  return all;
}

}  // namespace spillway::quota
