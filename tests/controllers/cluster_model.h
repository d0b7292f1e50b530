// A cluster as the lifecycle vectors describe it: nodes with kubelets that post, pods, an API without delay that fails
// on order, a cloud. The product's controller (DrivenController) runs over it in steps of 100 ms exactly as in the
// vectors; its requests to the API are recorded.
#pragma once

#include "api/json/json.h"
#include "api/object/lease.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/workload.h"
#include "controllers/driven_controller.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::controllers {

class ClusterModel {
 public:
  explicit ClusterModel(const api::Json& row);

  /// Runs to the end and returns {"actions":…[,"final":…]} in the form of the vectors, actions sorted.
  api::Json run();

 private:
  enum class Post { kBoth, kStatus, kLease };

  struct Machine {
    api::Node node;
    std::optional<api::Lease> lease;
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

  // The controller, and the events that it receives.
  void start_controller();
  void restart_controller();
  void exchange_events();
  void run_due(Instant until);
  void pass();
  void tick();
  void answer_cloud();

  // The API. Every change has a revision and is sent to all watchers.
  template <typename T>
  void publish(std::string_view collection, std::string_view type, const T& object);
  void changed(Machine& machine);
  void renewed(Machine& machine);
  void removed(Machine& machine);
  void changed(api::Pod& pod, std::string_view type = "MODIFIED");
  void execute(const client::ApiCommand& command);
  api::Response answer(const api::Request& request);
  api::Response list(std::string_view collection) const;
  api::Response patch_node(const std::string& name, bool status, const api::Json& patch);
  api::Response patch_pod(const std::string& key, const api::Json& patch);
  api::Response delete_pod(const std::string& key, const api::Json& options);
  api::Response delete_node(const std::string& name);
  api::Response write_event(const std::string& name, const api::Json& event);
  bool fails(const std::string& verb, const std::string& name);

  // The record.
  void act(api::Json::Array action);
  void event(std::string_view kind, const std::string& object, std::string_view type, std::string_view reason,
             const std::string& message);
  using TaintSet = std::set<std::pair<std::string, std::string>>;
  TaintSet taints_now() const;
  void record_taints(const TaintSet& before, const TaintSet& after);
  void record_zones();
  void record_health();
  using Queued = std::map<std::string, std::set<std::string>>;
  Queued queued() const;
  void record_queues(const char* kind, const Queued& more, const Queued& less);
  api::Json conditions_of(const api::Node& node) const;
  api::Json final_state() const;

  bool is_background(std::string_view object) const { return object.starts_with("bg"); }

  Now now() const;
  WallTime wall(std::int64_t ms) const;
  std::int64_t ms_of(WallTime time) const;

  const api::Json& input_;
  lifecycle::Profile profile_;
  lifecycle::MonitorConfig config_;
  Duration period_;
  bool original_ = false;  // 1.7
  bool full_ = false;
  bool cloud_ = false;
  std::int64_t t_ms_ = 0;
  Duration past_{};  // since the beginning of the step
  std::unique_ptr<DrivenController> controller_;
  std::deque<client::ApiEvent> inbox_;
  std::map<std::string, client::CallId, std::less<>> watches_;  // by collection
  std::uint64_t revision_ = 1;
  std::map<std::string, std::pair<api::Json, std::int64_t>> events_;  // as posted, and how often it was
  std::map<std::string, Machine> machines_;
  PodMap pods_;
  std::vector<api::DaemonSet> daemon_sets_;
  std::map<std::pair<std::string, std::string>, std::int64_t> failures_;
  std::set<std::string> cloud_gone_;
  std::vector<std::pair<std::int64_t, api::Json::Array>> actions_;
  std::map<std::string, std::pair<std::string, float>> zones_seen_;
  std::map<std::string, std::pair<Instant, Instant>> health_seen_;
};

}  // namespace spillway::controllers
