// Extenders: other servers that are called over HTTP to filter and score nodes for a pod, to choose its victims, and to
// bind it. Here: which of them is called for a pod, and by which verbs.
// Thread: any (pure). Bounds: kExtendersMax. Source: Kubernetes docs, "Scheduler Configuration"; kube-scheduler
// configuration (v1), Extender; k8s.io/kube-scheduler extender v1 types.
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "policy/node_load.h"
#include "policy/scheduling/preemption.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

inline constexpr std::size_t kExtendersMax = 16;

struct Extender {
  std::string url;  // urlPrefix, by which messages name the extender
  // The paths of the four calls, below the URL; empty: the extender is not called for that.
  std::string filter_verb;
  std::string prioritize_verb;
  std::string preempt_verb;
  std::string bind_verb;
  std::int64_t weight = 0;  // weight of its scores; at least 1 with a prioritize_verb
  Duration timeout = seconds(5);
  bool knows_nodes = false;            // nodeCacheCapable: the extender receives names of nodes, not nodes
  std::vector<std::string> resources;  // managedResources: only pods that request one of them; empty: all pods
  bool ignorable = false;              // skipped if it does not answer

  friend bool operator==(const Extender&, const Extender&) = default;
};

enum class ExtenderVerb { kFilter, kPrioritize, kPreempt, kBind };

/// "filter", "prioritize", "preempt", "bind": stable, for metrics.
std::string_view to_string(ExtenderVerb verb);
/// The path of that verb; empty: the extender does not implement it.
const std::string& verb_of(const Extender& extender, ExtenderVerb verb);

/// True if the extender is called for this pod.
bool concerns(const Extender& extender, const api::Pod& pod);
/// Indices of the extenders that are called with this verb for the pod, in their order; ignorable ones last.
std::vector<std::size_t> extenders_for(std::span<const Extender> extenders, ExtenderVerb verb, const api::Pod& pod);

/// ExtenderArgs of filter and prioritize. `pod`: the document of the API. `names`: of nodes that are there.
api::Json node_question(const Extender& extender, const api::Json& pod, std::span<const std::string> names,
                        const std::map<std::string, policy::NodeLoad>& nodes);
/// ExtenderPreemptionArgs.
api::Json preemption_question(const Extender& extender, const api::Json& pod,
                              std::span<const PreemptionCandidate> candidates);
/// ExtenderBindingArgs.
api::Json binding_question(const api::Pod& pod, std::string_view node);

}  // namespace spillway::scheduling
