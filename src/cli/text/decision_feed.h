// The decisions in a cluster, each one once: those of the past in order of time, later ones as they become known. They
// are events as they are listed and watched, decisions of agents, taints of nodes, states of zones. An agent's decision
// about a pod replaces the event about it, so that such an event waits a little. Does no I/O; names the node to request
// decisions from next.
//
// Thread: any (single). Bounds: kSeenMax events are remembered, kWaitingMax wait for their decisions, kReportedMax pods
// whose decision was shown, and as many objects whose event is shown once; per node its zone, its taints, four problems
// and one time. Source: Kubernetes docs, "Taints and Tolerations".
#pragma once

#include "api/json/json.h"
#include "base/time.h"
#include "cli/text/happening.h"
#include "policy/reason.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cli {

/// Empty members match everything.
struct HappeningFilter {
  std::string node;
  std::string ns;
  std::string pod;
  std::vector<std::string> reasons;  // reasons of events or decisions, or codes; in any case

  /// Events whose reason is no decision are shown only if this filter names the reason.
  bool lets_through(const Happening& happening) const;
};

class DecisionFeed {
 public:
  static constexpr std::size_t kSeenMax = 65'536;
  static constexpr std::size_t kWaitingMax = 1'000;
  static constexpr std::size_t kReportedMax = 4'096;
  static constexpr std::size_t kNodesMax = 20'000;  // maximum of known nodes: events about others are shown unchanged
  static constexpr Duration kWaitsForDecision = seconds(5);
  static constexpr Duration kReadsEvery = seconds(2);   // from a node whose agent is ours
  static constexpr Duration kProbesEvery = minutes(5);  // interval of requests to a node without such a page
  // An event that is_shown_once() is shown again after this time without it. Controllers repeat a refusal after 1,000 s
  // at the latest, kubelets a restart after 300 s.
  static constexpr Duration kQuietFor = minutes(20);

  /// Decisions before `since` are not shown.
  DecisionFeed(HappeningFilter filter, WallTime since) : filter_(std::move(filter)), since_(since) {}

  /// Keeps happenings back until on_listed() and until each node that is ready was asked, or until `end`; then shows
  /// them in order of time. Called before anything is listed.
  void collect_until(Instant end) { collects_until_ = end; }

  /// The lists of events and nodes are complete.
  void on_listed() { is_listed_ = true; }

  /// kBefore: listed at first; it may be older than `since`, in whole seconds as events have them.
  enum class When { kBefore, kNow };
  void on_event(const api::Json& event, When when, Now now);
  /// `now`: the node as listed or watched.
  void on_node(const api::Json& node, Now now);

  void on_node_gone(const std::string& node) { nodes_.erase(node); }

  /// Adds a pod of the node in the filter: controllers do not report the node of a pod.
  void on_pod_of_node(const api::Json& pod);

  /// A node whose decisions should be requested now; it then counts as requested. nullopt: none.
  std::optional<std::string> next_to_ask(Now now);
  /// The decisions that the node's agent answered, oldest first.
  void on_decisions(const std::string& node, const std::vector<policy::Decision>& decisions, Now now);
  /// The request for decisions failed: events about the node's pods are shown unchanged.
  enum class Why { kNoAgent, kNoAnswer };
  void on_no_decisions(const std::string& node, Why why);
  /// No node can be asked any more.
  void on_nobody_to_ask();

  /// A ZoneList of the controllers.
  void on_zones(const api::Json& zones, Now now);

  /// The happenings to show now, in order of time.
  std::vector<Happening> take(Now now);

 private:
  struct Node {
    std::string zone;
    std::set<std::string> taints;  // with the effect NoExecute
    bool is_known = false;         // by the list of nodes; else by an event only
    bool is_ready = false;
    bool has_answered = false;  // since the last event that waits for its decisions; an error is an answer
    std::map<std::string, WallTime> problems;  // reasons of bad events, and when the first was seen
    std::optional<bool> is_ours;               // nullopt: no request yet
    std::optional<Instant> asked;
    std::optional<WallTime> last_decision;
  };

  struct Waiting {
    Happening happening;
    Instant until;
    bool is_past;
  };

  struct Zone {
    std::string state;
    std::optional<policy::Reason> brake;
  };

  bool is_new(const api::Json& event, const Happening& happening);
  void add_problem(const std::string& node, const std::string& reason, WallTime at);
  bool is_normal_start(const Happening& happening) const;
  bool repeats(const Happening& happening);
  bool is_complete() const;
  bool may_be_answered(const Happening& happening) const;
  void report(Happening happening);
  void report_taint(const std::string& name, const Node& node, const std::string& taint, bool is_set, Now now);
  void report_zone(std::string zone, std::string reason, std::string message, bool is_bad, WallTime at);
  void compare_zone(const std::string& name, const Zone& before, const Zone& after, WallTime at);
  bool was_reported(const policy::Subject& pod) const;
  void remember_reported(const policy::Subject& pod);

  HappeningFilter filter_;
  WallTime since_;
  std::map<std::string, std::int64_t> seen_;  // counts of events by uid
  std::deque<std::string> seen_order_;
  std::map<std::string, Node> nodes_;
  std::string last_asked_;
  std::deque<Waiting> waiting_;
  std::set<std::string> reported_;  // pods by uid
  std::deque<std::string> reported_order_;
  std::set<std::string> pods_of_node_;  // "namespace/name"
  std::deque<std::string> pods_of_node_order_;
  std::map<std::string, Zone> zones_;
  bool zones_known_ = false;
  std::map<std::string, WallTime> repeated_;  // last times of events that are shown once, by reason and object
  std::optional<Instant> collects_until_;     // nullopt: happenings are shown at once
  bool is_listed_ = false;
  std::vector<Happening> due_;
};

}  // namespace spillway::cli
