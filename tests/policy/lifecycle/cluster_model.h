// A cluster as the lifecycle vectors describe it: nodes with kubelets that post, pods, injected API failures, and the
// node lifecycle run over it in steps of 100 ms exactly as vectors/lifecycle/README.md says. Records every action.
#pragma once

#include "api/json/json.h"
#include "api/object/lease.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/workload.h"
#include "policy/lifecycle/node_monitor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::lifecycle {

class ClusterModel {
 public:
  explicit ClusterModel(const api::Json& row);

  /// Runs to the end and returns {"actions":…[,"final":…]} in the form of the vectors, actions sorted.
  api::Json run();

 private:
  enum class Post { kBoth, kStatus, kLease };

  struct Machine {
    api::Node node;
    std::shared_ptr<const api::Node> copy;  // of node; null after a change
    std::optional<api::Lease> lease;
    std::shared_ptr<const api::Node> told;  // what the controller has heard of
    std::optional<api::Lease> told_lease;
    bool exists = false;
    bool up = true;
    std::string ready = "True";
    std::map<std::string, std::string> pressure;
    std::int64_t first_post_ms = 0;
    std::int64_t period_ms = 10000;
    std::int64_t skew_ms = 0;
    Post post = Post::kBoth;
    std::optional<std::int64_t> reported_ms;
  };

  using PodMap = std::map<std::string, api::Pod>;

  // Set-up and the world's own events.
  void add_group(const api::Json& group);
  void add_pod(const api::Json& pod);
  void apply(const api::Json& event);
  void apply_to(Machine& machine, const api::Json& event);
  std::vector<std::string> selected(const api::Json& event) const;
  void post(Machine& machine);
  void post_status(Machine& machine, WallTime stamp);
  bool status_due(const Machine& machine) const;
  std::vector<std::string> owned_conditions() const;

  // The controller.
  void tell(Machine& machine);
  void monitor_pass();
  void process_node(std::shared_ptr<const api::Node> node);
  bool update_health(std::shared_ptr<const api::Node>& node, Assessment& assessment);
  static std::shared_ptr<const api::Node> read(Machine& machine);
  void taint_step(const api::Node& node, const Assessment& assessment);
  void evict_step(const api::Node& node, const Assessment& assessment);
  void mark_step(const api::Node& node, const Assessment& assessment);
  void cloud_step(const api::Node& node, const Assessment& assessment);
  bool mark_pods(const std::vector<std::string>& pods, const std::string& node);
  bool mark_pod(const api::Pod& seen, const std::string& node);
  void queue_pass();
  NodeMonitor::Answer taint_entry(const std::string& name);
  NodeMonitor::Answer evict_entry(const std::string& name);
  bool delete_pods(const std::vector<std::string>& pods, const std::string& node);
  void on_pod_added(const std::string& key);
  void force_outdated(const std::string& key);

  // Its API calls.
  bool fails(const std::string& verb, const std::string& name);
  bool untaint(const api::Node& seen);
  bool swap_taint(const api::Node& seen, std::string_view add, std::string_view remove);
  bool remove_taint(const api::Node& seen, std::string_view key);
  bool delete_pod(const std::string& key, bool force);
  std::vector<std::string> pods_of(const std::string& node) const;

  // The record.
  void act(api::Json::Array action);
  void event(std::string_view kind, const std::string& object, std::string_view type, std::string_view reason,
             const std::string& message);
  using TaintSet = std::set<std::pair<std::string, std::string>>;
  void add_taints(const Machine& machine, TaintSet& taints) const;
  TaintSet taints_now() const;
  void record_taints(const TaintSet& before, const TaintSet& after);
  void record_zones();
  void record_health();
  std::map<std::string, std::set<std::string>> queued() const;
  api::Json conditions_of(const api::Node& node) const;
  api::Json final_state() const;

  bool is_background(std::string_view object) const { return object.starts_with("bg"); }

  Now now() const;
  WallTime wall(std::int64_t ms) const;
  std::int64_t ms_of(WallTime time) const;

  const api::Json& input_;
  Profile profile_;
  MonitorConfig config_;
  bool original_ = false;  // 1.7
  bool full_ = false;
  bool cloud_ = false;
  std::int64_t t_ms_ = 0;
  std::unique_ptr<NodeMonitor> monitor_;
  std::map<std::string, Machine> machines_;
  PodMap pods_;
  std::vector<api::DaemonSet> daemon_sets_;
  std::map<std::pair<std::string, std::string>, std::int64_t> failures_;
  std::set<std::string> cloud_gone_;
  std::vector<std::pair<std::int64_t, api::Json::Array>> actions_;
  std::map<std::string, std::pair<std::string, float>> zones_seen_;
  std::map<std::string, std::pair<Instant, Instant>> health_seen_;
};

}  // namespace spillway::lifecycle
