// The path of the scale of an autoscaler's target: the autoscaler's author names a kind, and the API server's discovery
// has the name of its collection. No member of an autoscaler becomes part of a path without being checked or encoded.
// Thread: any (pure). Source: Kubernetes API reference, "CrossVersionObjectReference", "APIResourceList".
#pragma once

#include "api/json/json.h"
#include "api/object/horizontal_autoscaler.h"
#include "base/error.h"

#include <string>
#include <string_view>

namespace spillway::autoscaling {

/// "deployments" and "apps".
struct PluralKind {
  std::string plural;
  std::string group;

  /// "deployments.apps", "pods".
  std::string text() const { return group.empty() ? plural : plural + "." + group; }
};

/// "/apis/apps/v1", "/api/v1": the discovery document there has the names of its kinds. kInvalid: these are no group
/// and version.
Result<std::string> version_path(const std::string& api_version);
/// The kind's plural name in an answer to version_path(). kNotFound: the version has no such kind.
Result<PluralKind> plural_of(const api::Json& resources, const std::string& api_version, const std::string& kind);
/// The error for a kind that the API server does not serve.
Error unknown_kind(const std::string& api_version, const std::string& kind);

/// The scale subresource of the target. kInvalid: as version_path().
Result<std::string> scale_path(const api::HorizontalPodAutoscaler& autoscaler, const PluralKind& kind);

}  // namespace spillway::autoscaling
