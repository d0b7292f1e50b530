// A pod that a file of the node, or an address, defines without the API server. The document becomes a pod with
// defaults, a uid that is computed from its content, and upstream's annotations; its mirror pod represents it in the
// API server. Thread: any (pure). Source: Kubernetes docs, "Create static Pods"; spec "Node agent", 16; "Pod
// admission", 1.
#pragma once

#include "agent/contract/static_manifests.h"
#include "api/json/json.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "base/error.h"
#include "base/time.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

struct StaticPod {
  api::Pod pod;
  api::Json document;                 // the pod for the API server, without defaulted fields
  std::vector<std::string> warnings;  // unknown fields
};

inline constexpr std::string_view kConfigHashAnnotation = "kubernetes.io/config.hash";
inline constexpr std::string_view kConfigSeenAnnotation = "kubernetes.io/config.seen";

/// The place that a static pod comes from.
struct ManifestOrigin {
  std::string name;  // the file, or the address with the place of the pod behind it; for messages
  ManifestSource source = ManifestSource::kFiles;
  std::string url = {};  // the address itself; empty for a file
};

/// The name gets "-NODE"; namespace "default" if there is none; the uid is a hash of the content and of node and file,
/// or of the address, and overrides one in the document; NoExecute taints are tolerated. kInvalid: names the origin,
/// the field and what is expected.
Result<StaticPod> make_static_pod(const api::Json& document, const ManifestOrigin& origin, const std::string& node_name,
                                  WallTime seen);

/// The mirror pod of a static pod, owned by `node`.
api::Json mirror_of(const StaticPod& pod, const api::Node& node);

}  // namespace spillway::agent
