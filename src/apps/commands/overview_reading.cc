#include "apps/commands/overview_reading.h"

#include "api/codec/codec.h"
#include "api/object/kind_id.h"
#include "apps/commands/node_standing.h"
#include "apps/process/progress_line.h"
#include "controllers/nodes/manual_hold.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace spillway::apps {

namespace {

class OverviewReader {
 public:
  OverviewReader(ClusterView& cluster, std::string name_space, Now now)
      : cluster_(cluster), ns_(std::move(name_space)), now_(now) {}

  Result<OverviewReading> read() {
    SPILLWAY_TRY_VOID(must_list("v1", "nodes", "", scene_.nodes));
    SPILLWAY_TRY_VOID(must_list("v1", "pods", ns_, scene_.pods));
    may_list("v1", "persistentvolumeclaims", ns_, scene_.claims);
    std::vector<outlook::ClassPtr> classes;
    if (may_list("storage.k8s.io/v1", "storageclasses", "", classes)) scene_.classes = std::move(classes);
    may_list("v1", "services", ns_, scene_.services);
    read_refusals();
    read_hold();
    ask_nodes();
    return OverviewReading{outlook::overview_of(scene_, now_.wall), std::move(unread_)};
  }

 private:
  template <typename T>
  Outcome must_list(std::string_view version, std::string_view resource, const std::string& ns,
                    std::vector<std::shared_ptr<const T>>& into, std::string_view query = {}) {
    SPILLWAY_TRY(document, cluster_.get(client::object_path(version, resource, ns) + std::string(query)));
    const api::Json* items = document.find("items");
    if (items == nullptr || items->if_array() == nullptr) return {};
    for (const api::Json& each : *items->if_array()) {
      if (auto value = api::decode<T>(each)) into.push_back(std::make_shared<const T>(*std::move(value)));
    }
    std::ranges::sort(into, {}, [](const auto& each) {
      return std::pair<std::string_view, std::string_view>(each->metadata.ns, each->metadata.name);
    });
    return {};
  }

  /// False: the list could not be read, and counts as empty.
  template <typename T>
  bool may_list(std::string_view version, std::string_view resource, const std::string& ns,
                std::vector<std::shared_ptr<const T>>& into, std::string_view query = {}) {
    const Outcome listed = must_list(version, resource, ns, into, query);
    if (!listed) unread_.push_back(fmt::format("{}: {}", resource, listed.error().text()));
    return listed.has_value();
  }

  /// Workloads are read where pods of their kind are refused, and not otherwise.
  void read_refusals() {
    may_list("v1", "events", ns_, scene_.refusals, "?fieldSelector=reason%3DFailedCreate");
    std::set<api::KindId> kinds;
    for (const auto& event : scene_.refusals) kinds.insert(api::kind_of(event->involved_object));
    if (kinds.contains(api::kind_of<api::ReplicaSet>())) read_makers<api::ReplicaSet>("replicasets");
    if (kinds.contains(api::kind_of<api::StatefulSet>())) read_makers<api::StatefulSet>("statefulsets");
    if (kinds.contains(api::kind_of<api::DaemonSet>())) read_makers<api::DaemonSet>("daemonsets");
    if (kinds.contains(api::kind_of<api::Job>())) read_makers<api::Job>("jobs");
  }

  template <typename T>
  void read_makers(std::string_view resource) {
    std::vector<std::shared_ptr<const T>> found;
    may_list(T::kApiVersion, resource, ns_, found);
    for (const auto& each : found) scene_.makers.push_back(outlook::maker_of(*each));
  }

  void read_hold() {
    const auto found = cluster_.get("/api/v1/namespaces/kube-system/configmaps/spillway-hold");
    if (!found) return;
    const lifecycle::ManualHold hold = controllers::manual_hold_of(*found);
    if (hold.everything) scene_.hold = hold.everything->empty() ? "no reason was given" : *hold.everything;
  }

  /// A node that is not Ready is not queried: the API server would wait for it until its time-out.
  void ask_nodes() {
    ProgressLine progress("asking nodes", ProgressLine::Shown::kOnTerminal);
    const std::size_t count = std::min(scene_.nodes.size(), kNodesAskedMax);
    for (std::size_t i = 0; i < count && !interrupted(); ++i) {
      progress.show(static_cast<double>(i) / static_cast<double>(count));
      const api::Node& node = *scene_.nodes[i];
      const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
      if (ready == nullptr || ready->status != "True") continue;
      if (auto decision = node_standing(cluster_, node.metadata.name, now_)) {
        scene_.standings.emplace(node.metadata.name, *std::move(decision));
      }
    }
    if (count < scene_.nodes.size()) {
      unread_.push_back(fmt::format("thresholds: only the first {} of {} nodes were read", count, scene_.nodes.size()));
    }
  }

  ClusterView& cluster_;
  std::string ns_;
  Now now_;
  outlook::OverviewScene scene_;
  std::vector<std::string> unread_;
};

}  // namespace

Result<OverviewReading> read_overview(ClusterView& cluster, const std::string& name_space, Now now) {
  return OverviewReader(cluster, name_space, now).read();
}

}  // namespace spillway::apps
