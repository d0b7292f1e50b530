// Keeps a node to itself: which Nodes, Leases, CSINodes, pods and tokens its agent may write, and what in them.
// Thread: loop. Source: Kubernetes docs, "Admission Controllers", NodeRestriction; spec "API server contract", 19.7.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/resource/admission_check.h"

#include <string_view>

namespace spillway::apiserver {

/// Labels a node may set on itself.
bool node_may_label(std::string_view key);

class NodeRestriction final : public AdmissionCheck {
 public:
  explicit NodeRestriction(Core& core) : core_(core) {}

  api::StatusResult<void> check_create(const api::UserInfo& user, const Resource& resource,
                                       const api::Json& object) const override;
  api::StatusResult<void> check_update(const api::UserInfo& user, const Resource& resource, SubresourceId part,
                                       const api::Json& object, const api::Json& old) const override;
  /// True if the lease is the node's own.
  bool passes_renewal(const api::UserInfo& user, const Resource& resource, std::string_view ns,
                      std::string_view name) const override;
  /// A token that a node requests must be bound to one of its pods.
  api::StatusResult<void> check_token(const api::UserInfo& user, std::string_view ns, std::string_view account,
                                      const api::Json& request) const;

 private:
  api::StatusResult<void> check_mirror_pod(const std::string& node, const api::Json& pod) const;

  Core& core_;
};

}  // namespace spillway::apiserver
