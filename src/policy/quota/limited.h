// Resources that may be used only where a quota of the namespace covers them: what the configuration of the plug-in
// ResourceQuota calls limitedResources. Pure.
// Source: Kubernetes docs, "Resource Quotas", limit priority class consumption by default; "kube-apiserver
// ResourceQuota Configuration (v1)".
#pragma once

#include "api/object/resource_quota.h"
#include "base/error.h"
#include "policy/quota/usage.h"

#include <span>
#include <string>
#include <vector>

namespace spillway::quota {

struct LimitedResource {
  std::string group;   // the objects' API group
  std::string plural;  // "pods"
  /// Amounts whose names contain one of these texts, as far as an object uses them, need a quota that counts them.
  std::vector<std::string> contains;
  /// A pod for which one of these scopes holds needs a quota with a scope of the same name that holds for it. As
  /// upstream, `group` and `plural` have no part in this.
  std::vector<api::QuotaScope> scopes;

  friend bool operator==(const LimitedResource&, const LimitedResource&) = default;
};

/// `quotas` are all of the namespace, `usage` is what the object uses, `pod` is null for objects of other kinds.
/// kForbidden: it uses an amount that no quota counts that is about it; kInternalError, as upstream: no quota has a
/// scope that must be covered. Both in upstream's words.
Outcome require_covered(std::span<const LimitedResource> limited, std::span<const api::ResourceQuota> quotas,
                        const CountedKind& kind, const api::Pod* pod, const api::ResourceList& usage);

}  // namespace spillway::quota
