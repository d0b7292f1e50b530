#include "policy/scheduling/extender_answer.h"

#include "api/json/document_bounds.h"
#include "base/ascii.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace spillway::scheduling {

namespace {

using api::Json;

constexpr std::int64_t kPointsPerScore = 10;  // a node's scores go to 100, those of extenders to 10
/// 5,000 whole nodes have about a million.
constexpr std::size_t kAnswerValuesMax = 2'000'000;

std::string one_line(std::string_view said) {
  std::string text = printable(said);
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\t', ' ');
  return shortened(trimmed(text), kSaidMax);
}

/// nullptr: missing or null.
const Json* member(const Json& object, std::string_view name) {
  const Json::Object* members = object.if_object();
  if (members == nullptr) return nullptr;
  const Json* found = members->find(name);
  for (auto at = members->begin(); found == nullptr && at != members->end(); ++at) {
    if (equal_ignoring_case(at->key, name)) found = &at->value;
  }
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string text_member(const Json& object, std::string_view name) {
  const Json* found = member(object, name);
  const std::string* text = found == nullptr ? nullptr : found->if_string();
  return text == nullptr ? std::string() : *text;
}

Result<Json> parse_answer(std::string_view body) {
  auto answer = api::parse_bounded_json(body, nullptr, kAnswerValuesMax);
  if (!answer) return invalid({}, "it did not answer in JSON: {}", answer.error().message);
  return answer;
}

Result<Json> parse_object(std::string_view body) {
  SPILLWAY_TRY(answer, parse_answer(body));
  if (!answer.is_object()) return invalid({}, "expected an object, it answered {}", api::type_phrase(answer));
  if (const std::string error = text_member(answer, "Error"); !error.empty()) return invalid({}, "{}", one_line(error));
  return answer;
}

bool is_asked(std::span<const std::string> asked, const std::string& name) {
  return std::ranges::binary_search(asked, name);
}

/// The names in NodeNames, or those of the nodes in Nodes; nullopt: the answer has neither.
Result<std::optional<std::set<std::string>>> allowed_names(const Extender& extender, const Json& answer) {
  const Json* list = extender.knows_nodes ? member(answer, "NodeNames") : nullptr;
  const bool by_name = list != nullptr;
  if (const Json* nodes = by_name ? nullptr : member(answer, "Nodes")) {
    list = member(*nodes, "items");
    if (list == nullptr) return std::optional<std::set<std::string>>();
  }
  if (list == nullptr) return std::optional<std::set<std::string>>();
  if (list->if_array() == nullptr) {
    return invalid({}, "expected a list of nodes, it answered {}", api::type_phrase(*list));
  }
  std::set<std::string> names;
  for (const Json& each : *list->if_array()) {
    const Json* metadata = by_name ? nullptr : member(each, "metadata");
    const std::string* text = by_name ? each.if_string() : nullptr;
    std::string name = text != nullptr ? *text : metadata != nullptr ? text_member(*metadata, "name") : std::string();
    if (name.empty()) return invalid({}, "it answered with a node that has no name");
    names.insert(std::move(name));
  }
  return std::optional(std::move(names));
}

/// Collects an extender's reasons for refusing nodes, at most kSayingsMax different ones.
class Sayings {
 public:
  void add(const Json* failed, bool resolvable, FilterAnswer& into) {
    const Json::Object* nodes = failed == nullptr ? nullptr : failed->if_object();
    if (nodes == nullptr) return;
    for (const auto& [name, said] : *nodes) {
      const auto found = into.refused.find(name);
      if (found == into.refused.end() || !explained_.insert(name).second) continue;
      const std::string* text = said.if_string();
      found->second = {keep(text == nullptr ? std::string() : one_line(*text)), resolvable};
    }
  }

 private:
  std::string keep(std::string text) {
    if (known_.contains(text)) return text;
    if (known_.size() == kSayingsMax) return "for one of several other reasons";
    known_.insert(text);
    return text;
  }

  std::set<std::string> known_;
  std::set<std::string> explained_;
};

Result<std::vector<PodPtr>> find_victims(const api::Pod& pod, const std::string& node, const Json& victims,
                                         const PreemptionView& view) {
  const Json* pods = member(victims, "Pods");
  std::vector<PodPtr> found;
  if (pods == nullptr) return found;
  if (pods->if_array() == nullptr) return invalid({}, "expected a list of pods, it answered {}", type_phrase(*pods));
  const std::vector<PodPtr> there = view.pods_on(node);
  for (const Json& each : *pods->if_array()) {
    const std::string uid = text_member(each, "UID");
    const auto known = std::ranges::find_if(there, [&uid](const PodPtr& other) { return other->metadata.uid == uid; });
    if (known == there.end()) {
      return invalid({}, "claims to preempt pod (UID: {}) on node: {}, but the pod is not found on that node",
                     one_line(uid), node);
    }
    if (api::priority_of(**known) >= api::priority_of(pod)) {
      return invalid({}, "claims to preempt pod {} on node: {}, whose priority is not lower", (*known)->key().text(),
                     node);
    }
    if (std::ranges::find(found, *known) == found.end()) found.push_back(*known);
  }
  return found;
}

}  // namespace

Result<FilterAnswer> read_filter_answer(const Extender& extender, std::span<const std::string> asked,
                                        std::string_view body) {
  SPILLWAY_TRY(answer, parse_object(body));
  SPILLWAY_TRY(allowed, allowed_names(extender, answer));
  FilterAnswer read;
  if (allowed) {
    for (const std::string& name : *allowed) {
      if (!is_asked(asked, name)) {
        return invalid({}, "claims a filtered node \"{}\" which is not found in the input node list", one_line(name));
      }
    }
  }
  for (const std::string& name : asked) {
    if (allowed && allowed->contains(name)) {
      read.allowed.push_back(name);
    } else {
      read.refused.try_emplace(name, ExtenderNo{.said = {}, .resolvable = false});
    }
  }
  Sayings sayings;
  sayings.add(member(answer, "FailedAndUnresolvableNodes"), false, read);
  sayings.add(member(answer, "FailedNodes"), true, read);
  return read;
}

Result<std::map<std::string, std::int64_t>> read_scores(const Extender& extender, std::span<const std::string> asked,
                                                        std::string_view body) {
  SPILLWAY_TRY(answer, parse_answer(body));
  if (answer.if_array() == nullptr) {
    return invalid({}, "expected a list of scores, it answered {}", api::type_phrase(answer));
  }
  std::map<std::string, std::int64_t> points;
  for (const Json& each : *answer.if_array()) {
    const std::string host = text_member(each, "Host");
    const Json* given = member(each, "Score");
    const std::optional<std::int64_t> score = given == nullptr ? 0 : given->if_int64();
    if (!score || *score < 0 || *score > kExtenderScoreMax) {
      return invalid({}, "scores node \"{}\" outside of 0 to {}", one_line(host), kExtenderScoreMax);
    }
    if (!is_asked(asked, host)) continue;
    if (!points.try_emplace(host, *score * extender.weight * kPointsPerScore).second) {
      return invalid({}, "scores node \"{}\" twice", one_line(host));
    }
  }
  return points;
}

Result<std::vector<PreemptionCandidate>> read_preemption_answer(const Extender& extender, const api::Pod& pod,
                                                                std::span<const PreemptionCandidate> asked,
                                                                const PreemptionView& view, std::string_view body) {
  SPILLWAY_TRY(answer, parse_object(body));
  const Json* nodes = member(answer, "NodeNameToMetaVictims");
  std::vector<PreemptionCandidate> candidates;
  if (nodes == nullptr) return candidates;
  if (nodes->if_object() == nullptr) {
    return invalid({}, "expected victims by node, it answered {}", api::type_phrase(*nodes));
  }
  for (const auto& [name, victims] : *nodes->if_object()) {
    if (std::ranges::find(asked, name, &PreemptionCandidate::node) == asked.end()) {
      return invalid({}, "claims victims on node \"{}\", which it did not get", one_line(name));
    }
  }
  for (const PreemptionCandidate& before : asked) {
    const Json* victims = nodes->if_object()->find(before.node);
    if (victims == nullptr) continue;
    SPILLWAY_TRY(pods, find_victims(pod, before.node, *victims, view));
    if (pods.empty()) {
      if (extender.ignorable) continue;
      return invalid({}, "expected at least one victim pod on node \"{}\"", before.node);
    }
    PreemptionCandidate candidate = candidate_of(before.node, std::move(pods), view.budgets);
    if (view.respects_budgets && candidate.budget_violations > 0) continue;
    if (!frees_enough(pod, candidate, view)) continue;
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

Outcome read_binding_answer(std::string_view body) {
  if (const auto answer = parse_object(body); !answer) return answer.error();
  return {};
}

Misfit misfit_of(const Extender& extender, const ExtenderNo& no) {
  std::string text = no.said.empty() ? fmt::format("node(s) were left out by extender {}", extender.url)
                                     : fmt::format("{} (extender {})", no.said, extender.url);
  policy::Reason reason{policy::ReasonCode::kNodeSelectorMismatch, {{"extender", extender.url}}};
  if (!no.said.empty()) reason.facts.push_back({"said", no.said});
  return {std::move(reason), std::move(text)};
}

}  // namespace spillway::scheduling
