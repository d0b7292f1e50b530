// The configuration of the plug-in ResourceQuota: limitedResources. Thread: any.
// Source: Kubernetes docs, "kube-apiserver ResourceQuota Configuration (v1)".
#pragma once

#include "cli/config/admission_source.h"
#include "policy/quota/limited.h"

#include <vector>

namespace spillway::cli {

/// Parses a ResourceQuotaConfiguration at `place`; errors are reported to `source`. As strict as upstream about
/// members, and stricter about scopes: one that no pod can have would cover nothing and limit nothing.
void read_limited_resources(AdmissionSource& source, const api::Json& value, const AdmissionPlace& place,
                            std::vector<quota::LimitedResource>& into);

}  // namespace spillway::cli
