#include "policy/scheduling/extender.h"

#include "api/codec/codec.h"

#include <algorithm>
#include <utility>

namespace spillway::scheduling {

namespace {

bool names_any(const api::ResourceList& amounts, const std::vector<std::string>& resources) {
  return std::ranges::any_of(resources, [&amounts](const std::string& name) { return amounts.contains(name); });
}

bool asks_for_any(const std::vector<api::Container>& containers, const std::vector<std::string>& resources) {
  return std::ranges::any_of(containers, [&resources](const api::Container& container) {
    return names_any(container.resources.requests, resources) || names_any(container.resources.limits, resources);
  });
}

api::Json victims_json(const Extender& extender, const PreemptionCandidate& candidate) {
  api::Json::Array pods;
  for (const PodPtr& victim : candidate.victims) {
    pods.push_back(extender.knows_nodes ? api::Json::object({{"UID", victim->metadata.uid}}) : api::encode(*victim));
  }
  return api::Json::object({{"Pods", api::Json(std::move(pods))},
                            {"NumPDBViolations", static_cast<std::int64_t>(candidate.budget_violations)}});
}

}  // namespace

std::string_view to_string(ExtenderVerb verb) {
  switch (verb) {
    case ExtenderVerb::kFilter:
      return "filter";
    case ExtenderVerb::kPrioritize:
      return "prioritize";
    case ExtenderVerb::kPreempt:
      return "preempt";
    case ExtenderVerb::kBind:
      return "bind";
  }
  return {};
}

const std::string& verb_of(const Extender& extender, ExtenderVerb verb) {
  switch (verb) {
    case ExtenderVerb::kFilter:
      return extender.filter_verb;
    case ExtenderVerb::kPrioritize:
      return extender.prioritize_verb;
    case ExtenderVerb::kPreempt:
      return extender.preempt_verb;
    case ExtenderVerb::kBind:
      break;
  }
  return extender.bind_verb;
}

bool concerns(const Extender& extender, const api::Pod& pod) {
  return extender.resources.empty() || asks_for_any(pod.spec.containers, extender.resources) ||
         asks_for_any(pod.spec.init_containers, extender.resources);
}

std::vector<std::size_t> extenders_for(std::span<const Extender> extenders, ExtenderVerb verb, const api::Pod& pod) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < extenders.size(); ++i) {
    if (!verb_of(extenders[i], verb).empty() && concerns(extenders[i], pod)) numbers.push_back(i);
  }
  std::ranges::stable_partition(numbers, [extenders](std::size_t i) { return !extenders[i].ignorable; });
  return numbers;
}

api::Json node_question(const Extender& extender, const api::Json& pod, std::span<const std::string> names,
                        const std::map<std::string, policy::NodeLoad>& nodes) {
  api::Json::Array listed;
  for (const std::string& name : names) {
    listed.push_back(extender.knows_nodes ? api::Json(name) : api::encode(*nodes.at(name).node));
  }
  if (extender.knows_nodes) {
    return api::Json::object({{"Pod", pod}, {"Nodes", api::Json()}, {"NodeNames", api::Json(std::move(listed))}});
  }
  const api::Json list = api::Json::object({{"apiVersion", "v1"},
                                            {"kind", "NodeList"},
                                            {"metadata", api::Json::object()},
                                            {"items", api::Json(std::move(listed))}});
  return api::Json::object({{"Pod", pod}, {"Nodes", list}, {"NodeNames", api::Json()}});
}

api::Json preemption_question(const Extender& extender, const api::Json& pod,
                              std::span<const PreemptionCandidate> candidates) {
  api::Json victims = api::Json::object();
  for (const PreemptionCandidate& candidate : candidates) {
    victims[candidate.node] = victims_json(extender, candidate);
  }
  const std::string_view filled = extender.knows_nodes ? "NodeNameToMetaVictims" : "NodeNameToVictims";
  const std::string_view other = extender.knows_nodes ? "NodeNameToVictims" : "NodeNameToMetaVictims";
  return api::Json::object({{"Pod", pod}, {filled, std::move(victims)}, {other, api::Json()}});
}

api::Json binding_question(const api::Pod& pod, std::string_view node) {
  return api::Json::object({{"PodName", pod.metadata.name},
                            {"PodNamespace", pod.metadata.ns},
                            {"PodUID", pod.metadata.uid},
                            {"Node", node}});
}

}  // namespace spillway::scheduling
