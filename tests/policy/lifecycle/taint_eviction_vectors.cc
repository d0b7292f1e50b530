// vectors/lifecycle/taint_eviction: nodes, taints, pods and tolerations over time, and what is deleted when.
#include "policy/lifecycle/lines/kubernetes_line.h"
#include "policy/lifecycle/taint_eviction.h"
#include "support/vectors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::lifecycle {
namespace {

using api::Json;
using support::Mismatch;

constexpr int kDeleteTries = 5;

std::string text(const Json& in, std::string_view key) {
  return std::string(in.string_at({key}));
}

std::int64_t integer(const Json& in, std::string_view key) {
  return in.find(key)->if_int64().value();
}

std::vector<api::Taint> taints_of(const Json& in) {
  std::vector<api::Taint> taints;
  const Json* list = in.find("taints");
  if (list == nullptr || list->if_array() == nullptr) return taints;
  for (const Json& each : *list->if_array()) {
    taints.push_back({text(each, "key"), text(each, "value"), text(each, "effect"), {}});
  }
  return taints;
}

std::vector<api::Toleration> tolerations_of(const Json& in) {
  std::vector<api::Toleration> tolerations;
  const Json* list = in.find("tolerations");
  if (list == nullptr || list->if_array() == nullptr) return tolerations;
  for (const Json& each : *list->if_array()) {
    const Json* limit = each.find("tolerationSeconds");
    tolerations.push_back({text(each, "key"), text(each, "operator"), text(each, "value"), text(each, "effect"),
                           limit == nullptr ? std::nullopt : limit->if_int64()});
  }
  return tolerations;
}

class Model {
 public:
  explicit Model(const Json& row)
      : input_(*row.find("input")),
        line_(parse_line(row.string_at({"profile"})).value()),
        evictions_(upstream_profile(line_, EvictionMode::kTaint)) {}

  Json run() {
    for (const Json& node : *input_.find("nodes")->if_array()) nodes_[text(node, "name")] = taints_of(node);
    for (const Json& pod : *input_.find("pods")->if_array()) add_pod(pod);
    for (const auto& [name, taints] : nodes_) notify_node(name);
    carry_out();
    for (const auto& [key, pod] : std::map(pods_)) notify_pod(key);
    carry_out();
    for (const Json& event : *input_.find("events")->if_array()) {
      advance(integer(event, "t_ms"));
      apply(event);
      carry_out();
    }
    advance(integer(input_, "duration_ms"));
    Json pending = Json::object();
    for (const auto& [pod, timer] : evictions_.schedule().all()) pending[pod.text()] = ms_of(timer.due);
    Json first = Json::object();
    for (const auto& [pod, at_ms] : first_delete_ms_) first[pod] = at_ms;
    return Json::object({{"actions", Json(actions_)}, {"first_delete_ms", first}, {"pending_fire_ms", pending}});
  }

 private:
  static std::int64_t ms_of(Instant at) {
    return std::chrono::duration_cast<milliseconds>(at.time_since_epoch()).count();
  }

  Now now() const { return {Instant(milliseconds(t_ms_)), WallTime(milliseconds(t_ms_))}; }

  void add_pod(const Json& in) {
    api::Pod pod;
    pod.metadata.ns = text(in, "ns");
    pod.metadata.name = text(in, "name");
    pod.spec.node_name = text(in, "node");
    pod.spec.tolerations = tolerations_of(in);
    gone_ms_.erase(pod.key().text());
    pods_.insert_or_assign(pod.key().text(), pod);
  }

  void notify_node(const std::string& name) {
    const auto node = nodes_.find(name);
    if (node == nodes_.end()) return evictions_.on_node_gone(name);
    std::vector<const api::Pod*> pods;
    for (const auto& [key, pod] : pods_) {
      if (pod.spec.node_name == name) pods.push_back(&pod);
    }
    take(evictions_.on_node(name, no_execute_taints(node->second), pods, now()));
  }

  void notify_pod(const std::string& key) {
    const auto pod = pods_.find(key);
    if (pod != pods_.end()) return take(evictions_.on_pod(pod->second, now()));
    const std::size_t slash = key.find('/');
    take(evictions_.on_pod_gone({key.substr(0, slash), key.substr(slash + 1)}));
  }

  void apply(const Json& in) {
    const std::string ev = text(in, "ev");
    const std::string node = text(in, "node");
    const std::string key = text(in, "pod_key");
    if (ev == "node_taints") {
      const auto known = nodes_.find(node);
      const auto before = known == nodes_.end() ? std::vector<api::Taint>() : no_execute_taints(known->second);
      nodes_[node] = taints_of(in);
      if (known == nodes_.end() || no_execute_taints(nodes_[node]) != before) notify_node(node);
    } else if (ev == "node_add") {
      nodes_[node] = taints_of(in);
      notify_node(node);
    } else if (ev == "node_delete") {
      nodes_.erase(node);
      notify_node(node);
    } else if (ev == "pod_add") {
      add_pod(*in.find("pod"));
      notify_pod(text(*in.find("pod"), "ns") + "/" + text(*in.find("pod"), "name"));
    } else if (ev == "pod_tolerations" || ev == "pod_bind") {
      const auto pod = pods_.find(key);
      if (pod == pods_.end()) return;
      const api::PodSpec before = pod->second.spec;
      if (ev == "pod_bind") {
        pod->second.spec.node_name = node;
      } else {
        pod->second.spec.tolerations = tolerations_of(in);
      }
      if (pod->second.spec != before) notify_pod(key);
    } else if (ev == "pod_gone") {
      pods_.erase(key);
      notify_pod(key);
    } else if (ev == "delete_fail") {
      failures_[key] += integer(in, "times");
    }
  }

  /// Timers and disappearing pods up to `until`, in time order; a pod disappears before a timer of the same instant.
  void advance(std::int64_t until_ms) {
    for (;;) {
      std::optional<std::int64_t> next;
      if (const auto due = evictions_.next_due()) next = ms_of(*due);
      std::optional<std::string> gone;
      for (const auto& [key, at_ms] : gone_ms_) {
        if (at_ms > until_ms || (next && at_ms > *next)) continue;
        if (gone && gone_ms_.at(*gone) <= at_ms) continue;
        gone = key;
      }
      if (gone) {
        t_ms_ = gone_ms_.at(*gone);
        gone_ms_.erase(*gone);
        pods_.erase(*gone);
        notify_pod(*gone);
      } else if (next && *next <= until_ms) {
        t_ms_ = *next;
        take(evictions_.take_due(now()));
      } else {
        break;
      }
      carry_out();
    }
    t_ms_ = until_ms;
  }

  void take(std::vector<TaintEvictions::Order> orders) {
    for (TaintEvictions::Order& order : orders) {
      if (order.kind == TaintEvictions::OrderKind::kCancelled) {
        event(order.pod.text(), "Cancelling deletion of Pod ");
      } else {
        to_evict_.push_back(order.pod);
      }
    }
  }

  void event(const std::string& pod, const std::string& words) {
    actions_.push_back(Json::array({t_ms_, "event", pod, "Normal", "TaintManagerEviction", words + pod}));
  }

  void carry_out() {
    for (const api::PodKey& pod : std::exchange(to_evict_, {})) {
      event(pod.text(), "Marking for deletion Pod ");
      bool deleted = false;
      for (int i = 0; i < kDeleteTries && !deleted; ++i) deleted = delete_pod(pod.text());
      evictions_.on_evicted(pod, deleted, now());
    }
  }

  bool delete_pod(const std::string& key) {
    const auto pod = pods_.find(key);
    if (pod == pods_.end()) return false;
    auto& conditions = pod->second.status.conditions;
    if (line_ != Line::kV1_7 && api::find_condition(conditions, "DisruptionTarget") == nullptr) {
      const char* message = "Taint manager: deleting due to NoExecute taint";
      conditions.push_back({"DisruptionTarget", "True", "DeletionByTaintManager", message, {}, {}});
      actions_.push_back(
          Json::array({t_ms_, "condition", key, "DisruptionTarget", "True", "DeletionByTaintManager", message}));
    }
    if (failures_[key] > 0) {
      --failures_[key];
      actions_.push_back(Json::array({t_ms_, "delete_failed", key}));
      return false;
    }
    actions_.push_back(Json::array({t_ms_, "delete", key}));
    if (first_delete_ms_.try_emplace(key, t_ms_).second) {
      const auto termination = input_.find("termination_ms")->if_int64();
      if (termination) gone_ms_[key] = t_ms_ + *termination;
    }
    return true;
  }

  const Json& input_;
  Line line_;
  TaintEvictions evictions_;
  std::int64_t t_ms_ = 0;
  std::map<std::string, std::vector<api::Taint>> nodes_;
  std::map<std::string, api::Pod> pods_;
  std::map<std::string, std::int64_t> gone_ms_;
  std::map<std::string, std::int64_t> failures_;
  std::vector<api::PodKey> to_evict_;
  Json::Array actions_;
  std::map<std::string, std::int64_t> first_delete_ms_;
};

const bool kRegistered = support::add_vector_check("lifecycle/taint_eviction", [](const Json& row) {
  return support::compare(*row.find("expected"), Model(row).run());
});

}  // namespace
}  // namespace spillway::lifecycle
