// One sync of a StatefulSet: the pods and claims to create, mend and delete, in their order, and the status. Thread:
// any (pure). Bounds: kStatefulBurstMax pods are created in one sync; the rest follows in the next one. Source:
// Kubernetes docs, "StatefulSet"; spec "Scheduler and workloads", 13; vectors workloads/statefulset_actions.
#pragma once

#include "api/json/json.h"
#include "api/object/controller_revision.h"
#include "api/object/workload.h"
#include "policy/workloads/pod_state.h"
#include "policy/workloads/stateful_claims.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::workloads {

inline constexpr std::string_view kStatefulPodName = "statefulset.kubernetes.io/pod-name";
inline constexpr std::string_view kPodIndex = "apps.kubernetes.io/pod-index";

inline constexpr std::size_t kStatefulBurstMax = 500;

struct StatefulView {
  const api::StatefulSet& set;
  const std::vector<PodPtr>& pods;  // pods that the set owns
  // finds a claim of the namespace; null: it does not exist
  const std::function<ClaimPtr(const std::string& name)>& claim;
  const api::ControllerRevision& current;
  const api::ControllerRevision& update;
  /// The wait before the pod of that name may be made; nullopt, or empty: none.
  const std::function<std::optional<Duration>(const std::string& pod)> held = {};
};

// Steps of a plan; each is about one pod.

struct CreateClaim {
  std::string pod;
  api::Json document;
};

struct CreateStatefulPod {
  std::string pod;
  api::Json document;  // document of the pod, without owner
};

/// Changes the owners of a claim.
struct OwnClaim {
  std::string pod;
  ClaimPtr claim;
  std::vector<api::OwnerReference> owners;
};

/// The pod gets its identity, and its claims if they have to be others (null: they are unchanged).
struct RepairPod {
  PodPtr pod;
  api::StringMap labels;
  api::Json volumes;
};

struct DeleteStatefulPod {
  PodPtr pod;
  bool is_recreated = false;  // the pod has ended, and is created again under its name
};

/// The pod cannot be made yet.
struct CannotCreate {
  std::string pod;
  std::string why;
};

using StatefulStep = std::variant<CreateClaim, CreateStatefulPod, OwnClaim, RepairPod, DeleteStatefulPod, CannotCreate>;

/// Name of the step's pod: if a step fails, later steps of the same pod are skipped.
const std::string& pod_of(const StatefulStep& step);

struct StatefulPlan {
  std::vector<StatefulStep> steps;
  api::StatefulSetStatus status;
  std::optional<Duration> requeue_after;  // a pod will have been ready for long enough, or may be made
};

StatefulPlan plan_stateful(const StatefulView& view, WallTime now);

/// All are made and removed at once.
bool is_parallel(const api::StatefulSet& set);

/// "db", 3 of "db-3"; nullopt: the name has no ordinal.
std::optional<std::pair<std::string_view, std::int32_t>> name_and_ordinal(std::string_view pod_name);

/// The pod of that ordinal as it is created, without its owner.
api::Json stateful_pod(const api::StatefulSet& set, const api::ControllerRevision& revision, std::int32_t ordinal);

}  // namespace spillway::workloads
