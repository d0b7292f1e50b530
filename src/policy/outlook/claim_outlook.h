// The state of a PersistentVolumeClaim, and the thing it waits for: a pod that uses it, a StorageClass, a provisioner.
// Thread: any (pure). Bounds: kRowsMax rows in a part. Source: Kubernetes docs, "Persistent Volumes", binding;
// "Storage Classes", volumeBindingMode.
#pragma once

#include "api/object/pod.h"
#include "api/object/storage.h"
#include "policy/outlook/outlook.h"
#include "policy/workloads/pod_state.h"

#include <memory>
#include <optional>
#include <vector>

namespace spillway::outlook {

using ClassPtr = std::shared_ptr<const api::StorageClass>;

struct ClaimScene {
  const api::PersistentVolumeClaim& claim;
  std::optional<std::vector<ClassPtr>> classes;        // nullopt: not read
  std::optional<std::vector<workloads::PodPtr>> pods;  // pods of the claim's namespace, by name; nullopt: not read
  std::optional<std::string> last_message;             // the last warning about the claim
};

/// The first remark names no claim: it is about the subject of the outlook.
Outlook explain_claim(const ClaimScene& scene, WallTime now);

/// The remark about a claim that is not bound, with the claim's name in the fact "claim" when it is shown elsewhere.
Remark unbound_claim(const api::PersistentVolumeClaim& claim, const std::optional<std::vector<ClassPtr>>& classes);

}  // namespace spillway::outlook
