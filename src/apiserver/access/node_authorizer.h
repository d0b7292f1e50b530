// The permissions of a node: its own Node, Lease, CSINode and VolumeAttachments, the pods bound to it and what these
// refer to.
// Thread: loop. Source: Kubernetes docs, "Using Node Authorization"; spec "API server contract", 19.7.
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/access/pod_references.h"
#include "apiserver/read/core.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

/// "n1" of system:node:n1 in the group system:nodes; nullopt for all other users.
std::optional<std::string> node_identity(const api::UserInfo& user);

class NodeAuthorizer final : public Authorizer {
 public:
  explicit NodeAuthorizer(Core& core);

  /// A refusal without a reason: the user is no node, or this authorizer has no opinion on the request.
  Verdict authorize(const api::UserInfo& user, const RequestAttributes& request) const override;

 private:
  Verdict authorize_pods(const std::string& node, const RequestAttributes& request) const;
  /// True if a pod on the node names that object of its namespace.
  bool any_pod_refers(const std::string& node, std::string_view ns, ReferenceKind kind, std::string_view name) const;

  /// True if the volume and a claim that a pod on the node names are bound to each other.
  bool any_pod_mounts(const std::string& node, std::string_view volume) const;

  /// True if the VolumeAttachment names that node.
  bool is_attached_to(const std::string& node, std::string_view attachment) const;

  const ResourceCache& pods_;
  const ResourceCache& volumes_;
  const ResourceCache& claims_;
  const ResourceCache& attachments_;
};

}  // namespace spillway::apiserver
