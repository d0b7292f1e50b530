#include "cli/text/decision_feed.h"

#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "cli/text/reason_sentence.h"
#include "policy/decision_json.h"
#include "policy/lifecycle/zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::cli {
namespace {

using policy::Reason;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool is_same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool has_reason(const Happening& happening, std::string_view wanted) {
  if (is_same_word(happening.reason, wanted)) return true;
  return happening.decision && std::ranges::any_of(happening.decision->reasons, [&](const Reason& each) {
           return is_same_word(policy::to_string(each.code), wanted);
         });
}

std::string key_of_pod(const policy::Subject& pod) {
  return pod.uid.empty() ? pod.ns + "/" + pod.name : pod.uid;
}

/// Forgets the oldest beyond `kept`.
void remember(std::set<std::string>& known, std::deque<std::string>& order, std::string key, std::size_t kept) {
  if (!known.insert(key).second) return;
  order.push_back(std::move(key));
  if (order.size() <= kept) return;
  known.erase(order.front());
  order.pop_front();
}

std::set<std::string> evicting_taints(const api::Node& node) {
  std::set<std::string> taints;
  for (const api::Taint& each : node.spec.taints) {
    if (each.effect == api::kNoExecute) taints.insert(each.value.empty() ? each.key : each.key + "=" + each.value);
  }
  return taints;
}

bool is_ready(const api::Node& node) {
  return std::ranges::any_of(node.status.conditions,
                             [](const auto& each) { return each.type == "Ready" && each.status == "True"; });
}

/// The reason of the event by which a kubelet reports this pressure; empty: the condition is none.
std::string_view problem_of(const api::NodeCondition& condition) {
  if (condition.status != "True") return {};
  if (condition.type == "MemoryPressure") return "NodeHasInsufficientMemory";
  if (condition.type == "DiskPressure") return "NodeHasDiskPressure";
  return condition.type == "PIDPressure" ? std::string_view("NodeHasInsufficientPID") : std::string_view();
}

std::optional<Reason> brake_in(const api::Json& document) {
  const api::Json* brake = document.find("brake");
  if (brake == nullptr) return std::nullopt;
  auto reason = policy::reason_from_json(*brake);
  return reason ? std::optional(*std::move(reason)) : std::nullopt;
}

/// True if an event reports this decision as well. A shadow's decision, or one that waits, has no event.
bool is_final(const policy::Decision& decision) {
  return decision.verdict == policy::Verdict::kActs || decision.verdict == policy::Verdict::kRefuses;
}

}  // namespace

bool HappeningFilter::lets_through(const Happening& happening) const {
  const policy::Subject& subject = happening.subject;
  if (!node.empty() && happening.node != node) return false;
  if (!ns.empty() && subject.ns != ns) return false;
  if (!pod.empty() && (subject.kind != "Pod" || subject.name != pod)) return false;
  if (!reasons.empty())
    return std::ranges::any_of(reasons, [&](const auto& each) { return has_reason(happening, each); });
  return happening.source != Happening::Source::kEvent || reports_decision(happening.reason);
}

bool DecisionFeed::is_new(const api::Json& event, const Happening& happening) {
  std::string uid(event.string_at({"metadata", "uid"}));
  const auto [seen, added] = seen_.emplace(uid, happening.count);
  if (!added) return std::exchange(seen->second, happening.count) < happening.count;
  seen_order_.push_back(std::move(uid));
  if (seen_order_.size() > kSeenMax) {
    seen_.erase(seen_order_.front());
    seen_order_.pop_front();
  }
  return true;
}

/// Remembers when a node first reported a problem, so that its end is worth a line.
void DecisionFeed::add_problem(const std::string& name, const std::string& reason, WallTime at) {
  if (nodes_.size() >= kNodesMax && !nodes_.contains(name)) return;
  const auto [known, added] = nodes_[name].problems.emplace(reason, at);
  if (!added) known->second = std::min(known->second, at);
}

/// True for an event by which a kubelet reports, as at each of its starts, that a node has no problem, if it had none.
bool DecisionFeed::is_normal_start(const Happening& happening) const {
  const std::string_view opposite = opposite_of(happening.reason);
  if (opposite.empty() || happening.source != Happening::Source::kEvent) return false;
  const auto node = nodes_.find(happening.subject.name);
  if (node == nodes_.end()) return nodes_.size() < kNodesMax;
  const auto problem = node->second.problems.find(std::string(opposite));
  return problem == node->second.problems.end() || problem->second > happening.at;
}

/// True for an event that repeats what the one before said of the same object, with another count or another name of a
/// pod that could not be created.
bool DecisionFeed::repeats(const Happening& happening) {
  if (happening.source != Happening::Source::kEvent || !is_shown_once(happening.reason)) return false;
  if (repeated_.size() >= kReportedMax)
    std::erase_if(repeated_, [&](const auto& each) { return happening.at - each.second > kQuietFor; });
  if (repeated_.size() >= kReportedMax) repeated_.clear();
  const auto [last, added] =
      repeated_.try_emplace(fmt::format("{} {}", happening.reason, happening.subject.text()), happening.at);
  if (added) return false;
  return happening.at - std::exchange(last->second, happening.at) <= kQuietFor;
}

/// True if a Spillway agent may have a decision about this event.
bool DecisionFeed::may_be_answered(const Happening& happening) const {
  const bool is_decided = reports_decision(happening.reason) && !is_shown_once(happening.reason);
  if (happening.subject.kind != "Pod" || happening.node.empty() || !is_decided) return false;
  const auto node = nodes_.find(happening.node);
  return node == nodes_.end() ? nodes_.size() < kNodesMax : node->second.is_ours.value_or(true);
}

void DecisionFeed::on_event(const api::Json& event, When when, Now now) {
  auto happening = happening_of(event);
  if (!happening || !is_new(event, *happening)) return;
  if (happening->subject.kind == "Node" && has_opposite(happening->reason))
    add_problem(happening->subject.name, happening->reason, happening->at);
  if (when == When::kBefore && happening->at < std::chrono::floor<std::chrono::seconds>(since_)) return;
  if (happening->node.empty() && happening->subject.kind == "Pod" &&
      pods_of_node_.contains(happening->subject.ns + "/" + happening->subject.name)) {
    happening->node = filter_.node;
  }
  if (!may_be_answered(*happening) || waiting_.size() >= kWaitingMax) return report(*std::move(happening));
  if (was_reported(happening->subject) || !filter_.lets_through(*happening)) return;
  Node& node = nodes_[happening->node];
  node.asked.reset();
  node.has_answered = false;
  waiting_.push_back({*std::move(happening), now.mono + kWaitsForDecision, when == When::kBefore});
}

void DecisionFeed::on_node(const api::Json& document, Now now) {
  const auto object = api::decode<api::Node>(document);
  if (!object) return;
  const std::string& name = object->metadata.name;
  Node& node = nodes_[name];
  node.zone = lifecycle::readable_zone(lifecycle::zone_key(object->metadata.labels));
  node.is_ready = is_ready(*object);
  std::set<std::string> taints = evicting_taints(*object);
  for (const api::NodeCondition& each : object->status.conditions) {
    const std::string_view problem = problem_of(each);
    if (!problem.empty()) add_problem(name, std::string(problem), each.last_transition_time.value_or(WallTime::min()));
  }
  const bool was_known = std::exchange(node.is_known, true);
  std::swap(taints, node.taints);
  if (!was_known) return;
  for (const std::string& each : node.taints) {
    if (!taints.contains(each)) report_taint(name, node, each, true, now);
  }
  for (const std::string& each : taints) {
    if (!node.taints.contains(each)) report_taint(name, node, each, false, now);
  }
}

void DecisionFeed::on_pod_of_node(const api::Json& pod) {
  remember(pods_of_node_, pods_of_node_order_,
           fmt::format("{}/{}", pod.string_at({"metadata", "namespace"}), pod.string_at({"metadata", "name"})),
           kReportedMax);
}

void DecisionFeed::report_taint(const std::string& name, const Node& node, const std::string& taint, bool is_set,
                                Now now) {
  report({.at = now.wall,
          .source = Happening::Source::kNode,
          .node = name,
          .zone = node.zone,
          .reason = is_set ? "Tainted" : "Untainted",
          .subject = {.kind = "Node", .ns = {}, .name = name, .uid = {}},
          .message = fmt::format("{}:NoExecute: {}", taint,
                                 is_set ? "pods without a toleration are evicted" : "its pods may stay"),
          .is_bad = is_set,
          .decision = {}});
}

/// First the nodes whose events wait for a decision; then each node in turn, but for those that are not Ready, which
/// would only cost a time-out.
std::optional<std::string> DecisionFeed::next_to_ask(Now now) {
  const auto is_due = [&](const Node& node) {
    if (!node.asked) return true;
    return now.mono - *node.asked >= (node.is_ours.value_or(false) ? kReadsEvery : kProbesEvery);
  };
  const auto ask = [&](const std::string& name, Node& node) {
    node.asked = now.mono;
    return name;
  };
  for (const Waiting& each : waiting_) {
    Node& node = nodes_[each.happening.node];
    if (!node.asked) return ask(each.happening.node, node);
  }
  const auto start = nodes_.upper_bound(last_asked_);
  auto at = start;
  for (std::size_t i = 0; i < nodes_.size(); ++i, ++at) {
    if (at == nodes_.end()) at = nodes_.begin();
    if (!at->second.is_known || !at->second.is_ready || !is_due(at->second)) continue;
    if (!filter_.node.empty() && at->first != filter_.node) continue;
    last_asked_ = at->first;
    return ask(at->first, at->second);
  }
  return std::nullopt;
}

void DecisionFeed::on_decisions(const std::string& name, const std::vector<policy::Decision>& decisions, Now) {
  Node& node = nodes_[name];
  node.is_ours = true;
  node.has_answered = true;
  for (const policy::Decision& each : decisions) {
    if (each.at < since_ || (node.last_decision && each.at <= *node.last_decision)) continue;
    if (is_final(each) && each.subject.kind == "Pod") {
      remember_reported(each.subject);
      std::erase_if(waiting_, [&](const Waiting& one) {
        return one.happening.node == name && key_of_pod(one.happening.subject) == key_of_pod(each.subject);
      });
    }
    report(happening_of(each, name));
  }
  for (const policy::Decision& each : decisions)
    node.last_decision = std::max(node.last_decision.value_or(each.at), each.at);
}

void DecisionFeed::on_no_decisions(const std::string& name, Why why) {
  nodes_[name].has_answered = true;
  if (why == Why::kNoAgent) nodes_[name].is_ours = false;
  for (Waiting& each : waiting_) {
    if (each.happening.node == name) each.until = Instant{};
  }
}

void DecisionFeed::on_nobody_to_ask() {
  for (auto& [name, node] : nodes_) {
    node.is_ours = false;
    node.has_answered = true;
  }
  for (Waiting& each : waiting_) each.until = Instant{};
}

bool DecisionFeed::was_reported(const policy::Subject& pod) const {
  return reported_.contains(key_of_pod(pod));
}

void DecisionFeed::remember_reported(const policy::Subject& pod) {
  remember(reported_, reported_order_, key_of_pod(pod), kReportedMax);
}

void DecisionFeed::on_zones(const api::Json& document, Now now) {
  const api::Json* items = document.find("items");
  if (items == nullptr || items->if_array() == nullptr) return;
  std::map<std::string, Zone> zones;
  const bool is_disrupted =
      document.find("masterDisruption") != nullptr && document.find("masterDisruption")->if_bool().value_or(false);
  zones[""] = {.state = is_disrupted ? "MasterDisruption" : "Normal", .brake = brake_in(document)};
  for (const api::Json& each : *items->if_array()) {
    const std::string name(each.string_at({"zone"}));
    Zone& zone = zones[name.empty() ? "-" : name];
    zone = {.state = std::string(each.string_at({"state"})), .brake = brake_in(each)};
    if (zone.brake == zones[""].brake || (is_disrupted && zone.brake)) zone.brake.reset();  // reported for all zones
  }
  std::swap(zones, zones_);
  if (!std::exchange(zones_known_, true)) return;
  for (const auto& [name, zone] : zones_) {
    const auto before = zones.find(name);
    if (before != zones.end()) compare_zone(name.empty() ? "all" : name, before->second, zone, now.wall);
  }
}

void DecisionFeed::compare_zone(const std::string& name, const Zone& before, const Zone& after, WallTime at) {
  if (before.state != after.state && before.state != "Initial") {
    const std::string message = after.state == "MasterDisruption" ? "every zone is fully disrupted: nothing is evicted"
                                : before.state == "MasterDisruption" ? "at least one zone is no longer fully disrupted"
                                                                     : fmt::format("was {}", before.state);
    report_zone(name, after.state, message, after.state != "Normal", at);
  }
  const bool was_held = before.brake.has_value();
  if (after.brake && (!was_held || before.brake->code != after.brake->code)) {
    report_zone(name, "Held", sentence_of(*after.brake), true, at);
  } else if (!after.brake && was_held) {
    report_zone(name, "Resumed", fmt::format("no longer {}", words_of(before.brake->code)), false, at);
  }
}

void DecisionFeed::report_zone(std::string zone, std::string reason, std::string message, bool is_bad, WallTime at) {
  report({.at = at,
          .source = Happening::Source::kZone,
          .node = {},
          .zone = zone,
          .reason = std::move(reason),
          .subject = {.kind = "Zone", .ns = {}, .name = std::move(zone), .uid = {}},
          .message = std::move(message),
          .is_bad = is_bad,
          .decision = {}});
}

void DecisionFeed::report(Happening happening) {
  if (const auto node = nodes_.find(happening.node); node != nodes_.end()) happening.zone = node->second.zone;
  if (filter_.lets_through(happening)) due_.push_back(std::move(happening));
}

/// Every list is complete, and no node's decisions about the past are still unknown.
bool DecisionFeed::is_complete() const {
  return is_listed_ && std::ranges::all_of(nodes_, [this](const auto& entry) {
           const auto& [name, node] = entry;
           return !node.is_known || !node.is_ready || node.has_answered ||
                  (!filter_.node.empty() && name != filter_.node);
         });
}

std::vector<Happening> DecisionFeed::take(Now now) {
  if (collects_until_) {
    if (now.mono < *collects_until_ && !is_complete()) return {};
    collects_until_.reset();
    for (Waiting& each : waiting_) {
      if (each.is_past) each.until = Instant{};  // its node has no decision about it, or does not answer
    }
  }
  for (Waiting& each : waiting_) {
    if (each.until <= now.mono) report(std::move(each.happening));
  }
  std::erase_if(waiting_, [&](const Waiting& each) { return each.until <= now.mono; });
  std::ranges::stable_sort(due_, {}, &Happening::at);
  if (filter_.reasons.empty())
    std::erase_if(due_, [this](const Happening& each) { return is_normal_start(each) || repeats(each); });
  return std::exchange(due_, {});
}

}  // namespace spillway::cli
