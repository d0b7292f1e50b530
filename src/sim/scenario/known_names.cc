#include "sim/scenario/known_names.h"

#include "base/edit_distance.h"
#include "sim/scenario/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

namespace spillway::sim {
namespace {

using yaml::Place;

constexpr std::size_t kListedMax = 8;

/// The namespace in a path: "shop" for "/apis/apps/v1/namespaces/shop/replicasets".
std::string namespace_of(const std::string& collection) {
  constexpr std::string_view kBefore = "/namespaces/";
  const std::size_t at = collection.find(kBefore);
  if (at == std::string::npos) return {};
  const std::size_t from = at + kBefore.size();
  return collection.substr(from, collection.find('/', from) - from);
}

class KnownNames {
 public:
  KnownNames(const Inventory& inventory, const std::vector<TimelineEvent>& timeline) {
    for (const MachineSpec& each : inventory.machines) nodes_.push_back(each.name);
    for (const PlacedObject& each : inventory.objects) {
      const std::string kind(each.object.string_at({"kind"}));
      if (kind != "ReplicaSet" && kind != "DaemonSet" && kind != "Deployment") continue;
      const std::string name =
          fmt::format("{}/{}", namespace_of(each.collection), each.object.string_at({"metadata", "name"}));
      owners_[kind].push_back(name);
      pod_beginnings_.push_back(name + "-");
    }
    for (const PlacedObject& each : inventory.pods) {
      pods_.push_back(fmt::format("{}/{}", namespace_of(each.collection), each.object.string_at({"metadata", "name"})));
    }
    for (const TimelineEvent& event : timeline) {
      const auto* const create = std::get_if<CreateObject>(&event.action);
      if (create != nullptr && create->kind == "Pod") pods_.push_back(create->ns + "/" + create->name);
    }
  }

  const std::vector<std::string>& nodes() const { return nodes_; }

  const std::vector<std::string>& owners(const std::string& kind) { return owners_[kind]; }

  /// Names of pods, including patterns for those of workloads: "default/web-…".
  std::vector<std::string> pods() const {
    std::vector<std::string> all = pods_;
    for (const std::string& each : pod_beginnings_) all.push_back(each + "*");
    return all;
  }

  /// True if a pod can have a name that matches the pattern.
  bool may_have_pod(std::string_view glob) const {
    const std::string_view literal = glob.substr(0, glob.find_first_of("*?["));
    return std::ranges::any_of(pods_, [glob](const std::string& each) { return matches_glob(glob, each); }) ||
           std::ranges::any_of(pod_beginnings_, [&](const std::string& each) {
             return literal.starts_with(each) || (literal.size() < glob.size() && each.starts_with(literal));
           });
  }

 private:
  std::vector<std::string> nodes_;
  std::map<std::string, std::vector<std::string>> owners_;  // namespace/name, by kind
  std::vector<std::string> pods_;                           // namespace/name
  std::vector<std::string> pod_beginnings_;                 // "default/web-"
};

Error no_such(const Place& place, std::string_view what, const std::string& wanted,
              const std::vector<std::string>& known) {
  return place.wrong(fmt::format("there is no {} \"{}\"{}; this cluster has {}", what, wanted,
                                 nearest_word(wanted, known).suggestion(), list_names(known)));
}

/// Checks the names in an action; errors are reported at the event's member that names the action.
class NameCheck {
 public:
  NameCheck(const Place& place, KnownNames& known) : place_(place), known_(known) {}

  Outcome operator()(const ScaleWorkload& action) const {
    const bool is_deployment = action.kind == "Deployment";
    return owner(place_.member(is_deployment ? "deployment" : "replicaSet"), action.kind, action.ns, action.name);
  }

  Outcome operator()(const RollOut& action) const {
    return owner(place_.member("deployment"), "Deployment", action.deployment.ns, action.deployment.name);
  }

  Outcome operator()(const PauseRollout& action) const { return deployment(action.deployment); }

  Outcome operator()(const ResumeRollout& action) const { return deployment(action.deployment); }

  Outcome operator()(const UndoRollout& action) const { return deployment(action.deployment); }

  Outcome operator()(const UseMemory& action) const { return pods(action.pods); }

  Outcome operator()(const FillDisk& action) const { return pods(action.pods); }

  Outcome operator()(const ReadFiles& action) const { return pods(action.pods); }

  Outcome operator()(const ForkProcesses& action) const { return pods(action.pods); }

  Outcome operator()(const HoldEndings& action) const { return pods(action.pods); }

  Outcome operator()(const DeleteObject& action) const {
    if (action.place || action.kind.empty()) return {};
    if (action.kind == "Node" && std::ranges::find(known_.nodes(), action.name) == known_.nodes().end()) {
      return no_such(place_.member("node"), "node", action.name, known_.nodes());
    }
    const std::string pod = action.ns + "/" + action.name;
    if (action.kind != "Pod" || known_.may_have_pod(pod)) return {};
    return no_such(place_.member("pod"), "pod", pod, known_.pods());
  }

  template <typename Other>
  Outcome operator()(const Other&) const {
    return {};
  }

 private:
  Outcome owner(const Place& place, const std::string& kind, const std::string& ns, const std::string& name) const {
    const std::string wanted = ns + "/" + name;
    const std::vector<std::string>& known = known_.owners(kind);
    if (std::ranges::find(known, wanted) != known.end()) return {};
    return no_such(place, kind, wanted, known);
  }

  Outcome deployment(const DeploymentChoice& choice) const {
    return owner(place_, "Deployment", choice.ns, choice.name);
  }

  Outcome pods(const PodChoice& choice) const {
    if (known_.may_have_pod(choice.pods)) return {};
    return no_such(place_.member("pods"), "pod", choice.pods, known_.pods());
  }

  const Place& place_;
  KnownNames& known_;
};

}  // namespace

std::string list_names(const std::vector<std::string>& known) {
  std::string names;
  for (std::size_t i = 0; i < std::min(known.size(), kListedMax); ++i) names += (i == 0 ? "" : ", ") + known[i];
  if (known.size() > kListedMax) names += fmt::format(" and {} more", known.size() - kListedMax);
  return known.empty() ? "none" : names;
}

Outcome check_names(const Place& root, const Scenario& scenario) {
  const auto* const imported = std::get_if<Inventory>(&scenario.cluster);
  KnownNames known(imported != nullptr ? *imported : inventory_of(std::get<GeneratedCluster>(scenario.cluster)),
                   scenario.timeline);
  std::size_t at = 0;
  return root.for_each("timeline", [&](const Place& event) -> Outcome {
    const TimelineEvent& read = scenario.timeline[at++];
    const Place place = event.member(read.text);
    return std::visit(NameCheck(place, known), read.action);
  });
}

}  // namespace spillway::sim
