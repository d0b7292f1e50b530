// A whole control plane on a clock that the test moves: the real API server over the store in memory, engines connected
// to it without delay, and kubelets reduced to what the controllers see of them.
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"
#include "apiserver/server.h"
#include "client/engine.h"
#include "store/memory_store.h"
#include "store/store.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class TestCluster : private store::Watcher {
 public:
  TestCluster();
  ~TestCluster() override;
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  /// Starts the engine; it must outlive the cluster or be stopped.
  void run(client::ApiEngine& engine);
  /// The engine receives nothing from now on, as after a crash.
  void stop(client::ApiEngine& engine);
  /// Nothing reaches the engine nor the server from it until it is connected again. Nothing is broken visibly.
  void cut(client::ApiEngine& engine);
  void connect(client::ApiEngine& engine);
  /// The next `times` requests of this method whose target contains `part` (with a $ behind it: whose path
  /// ends so) are answered with this status and body;
  /// kLostAnswer: they are carried out and not answered.
  static constexpr int kLostAnswer = 0;
  void fail(api::Method method, std::string part, int status, int times, std::string body = "injected");

  /// Answers to requests of this method whose target contains `part` take so long, and watch events overtake them.
  void delay_answers(api::Method method, std::string part, Duration by);

  /// Something happens just before the next request of this method for this path (without query) is carried out: what
  /// the engine decided on is not so any more.
  void before(api::Method method, std::string path, std::function<void()> act);
  /// As above, right after the request was executed: no other program has acted on it yet.
  void after(api::Method method, std::string path, std::function<void()> act);

  /// Every answer arrives a second time, a second later.
  void repeat_answers() { repeats_answers_ = true; }

  /// The next `times` events that contain `text`, of watches whose target contains `part`, are lost without a sign.
  void swallow_events(std::string part, int times, std::string text = {});

  void swallow_nothing() { swallowings_.clear(); }

  /// Events of watches whose target contains `part` take so long, in order.
  void delay_events(std::string part, Duration by);

  void advance(Duration by);

  /// Everything that is due now.
  void run_until_idle() { advance(Duration::zero()); }

  Now now() const { return now_; }

  // The API, as its administrator sees it. Calls must succeed, except that get answers null for 404.
  api::Json get(std::string target);
  std::vector<api::Json> list(std::string target);
  api::Json create(std::string target, const api::Json& object);
  api::Json merge(std::string target, const api::Json& patch);
  void remove(std::string target);

  // Kubelets. A node posts its status and lease every ten seconds while it is up, runs the pods bound to it, and lets
  // go of terminating ones.
  void add_node(const std::string& name, api::StringMap labels = {}, std::string_view memory = "1Gi");
  void set_up(const std::string& node, bool up);

  /// From now on the node renews its lease alone, like a kubelet whose status does not change.
  void renew_lease_only(const std::string& node) { kubelets_.at(node).posts_status = false; }

  void set_ready(const std::string& node, bool ready);
  void set_pressure(const std::string& node, std::string_view condition, bool pressure);

  // Queries of the cluster's state.
  std::string ready_status(const std::string& node);
  /// "key:Effect" of every taint, sorted.
  std::set<std::string> taints(const std::string& node);
  std::set<std::string> pod_names(std::string_view ns = "default");
  /// Reasons of the events about the object, with their counts.
  std::map<std::string, std::int64_t> events_about(std::string_view name);
  /// Requests the engines have sent, "PATCH /api/v1/…".
  std::vector<std::string> requests;

 private:
  class Connection;

  struct Kubelet {
    api::StringMap labels;
    std::string memory;
    bool up = true;
    bool ready = true;
    bool posts_status = true;
    std::map<std::string, bool> pressure;
    std::set<std::string> started;  // uids of pods
  };

  struct Failure {
    api::Method method;
    std::string part;
    int status;
    int times;
    std::string body;
  };

  struct Surprise {
    api::Method method;
    std::string path;
    std::function<void()> act;
  };

  struct Swallowing {
    std::string part;
    int times = 0;
    std::string text;
  };

  struct EventDelay {
    std::string part;
    Duration by{};
  };

  struct Delay {
    api::Method method;
    std::string part;
    Duration by{};
  };

  // Pods changed.
  void on_changes(const std::vector<store::Change>&) override { pods_changed_ = true; }

  void on_watch_end(const Error& error) override;

  void at(Instant due, std::function<void()> task);
  void run_store_tasks();
  void step(Connection& connection, const std::function<void(client::ApiEngine&)>& event);
  std::optional<Instant> next_due() const;
  std::optional<api::Response> injected(const api::Request& request);
  Duration answer_delay(const api::Request& request) const;
  /// Carries out the actions in `surprises` that belong to this request, and removes them.
  static void surprise(std::vector<Surprise>& surprises, const api::Request& request);
  bool swallows(std::string_view watch_target, std::string_view event);
  Duration event_delay(std::string_view watch_target) const;
  api::Response call(api::Request request);
  void post_status(const std::string& name, Kubelet& kubelet);
  void sync_pods();
  void tick_kubelets();

  Now now_;
  std::deque<std::move_only_function<void()>> store_tasks_;
  std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> tasks_;
  std::uint64_t last_task_ = 0;
  store::MemoryStore store_;
  telemetry::Registry metrics_;
  std::unique_ptr<apiserver::ApiServer> server_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Failure> failures_;
  std::vector<Delay> delays_;
  std::vector<Surprise> surprises_;
  std::vector<Surprise> after_;  // after
  std::vector<Swallowing> swallowings_;
  std::vector<EventDelay> event_delays_;
  bool repeats_answers_ = false;
  std::map<std::string, Kubelet> kubelets_;
  bool pods_changed_ = true;  // or a kubelet did: since they last synced their pods
};

/// A pod document for default/name that requests `memory`.
api::Json pod_json(std::string_view name, std::string_view memory = "64Mi", std::string_view node = {});
/// A ReplicaSet or DaemonSet in default whose pods are labelled app=name.
api::Json workload_json(std::string_view kind, std::string_view name, std::optional<int> replicas = {});

}  // namespace spillway::controllers
