// The usage of a quota by an object, and the quotas that count it. Pure.
// Source: Kubernetes docs, "Resource Quotas"; spec "Scheduler and workloads", 18; vectors workloads/quota_usage.
#pragma once

#include "api/object/pod.h"
#include "api/object/resource_quota.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::quota {

/// A resource of the API: {"", "pods"}, {"batch", "jobs"}.
struct CountedKind {
  std::string_view group;
  std::string_view plural;

  friend bool operator==(const CountedKind&, const CountedKind&) = default;
};

inline constexpr CountedKind kPods{"", "pods"};
inline constexpr CountedKind kServices{"", "services"};
inline constexpr CountedKind kClaims{"", "persistentvolumeclaims"};

/// "count/pods", "count/jobs.batch".
std::string count_name(const CountedKind& kind);

/// A pod that is over, or whose end is past its grace, is counted as an object only.
api::ResourceList usage_of(const api::Pod& pod, WallTime now);
api::ResourceList usage_of(const api::CountedService& service);
api::ResourceList usage_of(const api::CountedClaim& claim);
/// The usage of an object of any other kind.
api::ResourceList usage_of(const CountedKind& kind);

/// The amounts that objects of the kind use up, of those named: in their order.
std::vector<std::string_view> concerned(const CountedKind& kind, const api::ResourceList& amounts);

/// The scope holds for the pod.
bool holds(const api::QuotaScope& scope, const api::Pod& pod);

/// All scopes of the quota hold for the object. `pod`: null of other kinds, for which no scope holds.
bool holds_for(const api::ResourceQuota& quota, const api::Pod* pod);

/// The quota is about the object.
bool matches(const api::ResourceQuota& quota, const CountedKind& kind, const api::Pod* pod);

}  // namespace spillway::quota
