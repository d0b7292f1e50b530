// Keeps a node to itself: which Nodes, Leases, CSINodes, pods and tokens its agent may write, and what in them.
// Thread: loop. Source: Kubernetes docs, "Admission Controllers", NodeRestriction; spec "API server contract", 19.7.
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/read/core.h"
#include "apiserver/resource/admission_check.h"

#include <string>
#include <string_view>

namespace spillway::apiserver {

/// Labels a node may set on itself.
bool node_may_label(std::string_view key);

class NodeRestriction final : public AdmissionCheck {
 public:
  NodeRestriction(Core& core, const Authorizer& authorizer) : core_(core), authorizer_(authorizer) {}

  api::StatusResult<void> check_create(const api::UserInfo& user, const Resource& resource,
                                       const api::Json& object) const override;
  api::StatusResult<void> check_update(const api::UserInfo& user, const Resource& resource, SubresourceId part,
                                       const api::Json& object, const api::Json& old) const override;
  /// True if the lease is the node's own.
  bool passes_renewal(const api::UserInfo& user, const Resource& resource, std::string_view ns,
                      std::string_view name) const override;
  /// A token that a node requests must be bound to one of its pods, and be for an audience that a volume of the pod
  /// names.
  api::StatusResult<void> check_token(const api::UserInfo& user, std::string_view ns, std::string_view account,
                                      const api::Json& request) const;

 private:
  api::StatusResult<void> check_mirror_pod(const std::string& node, const api::Json& pod) const;
  /// "": the API server's own audience.
  bool names_audience(const api::Json& pod, std::string_view ns, std::string_view audience) const;
  /// The CSI driver of the volume of a claim; empty: there is none.
  std::string driver_of_claim(std::string_view ns, const std::string& claim) const;
  /// The right to tokens of an audience that no volume names.
  bool may_request_audience(const api::UserInfo& user, std::string_view ns, std::string_view account,
                            std::string_view audience) const;

  Core& core_;
  const Authorizer& authorizer_;
};

}  // namespace spillway::apiserver
