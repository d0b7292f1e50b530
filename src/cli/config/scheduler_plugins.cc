#include "cli/config/scheduler_plugins.h"

#include "api/object/node_affinity.h"
#include "base/edit_distance.h"
#include "cli/config/known_plugins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

using scheduling::Filter;
using scheduling::Profile;
using scheduling::ScoreWeights;
using scheduling::ScoringStrategy;
using yaml::Place;

constexpr std::string_view kAll = "*";
constexpr std::int64_t kWeightMax = 1'000'000;
constexpr std::int64_t kPercent = 100;

/// The points where switching a plug-in changes something here.
enum class Point { kFilter, kScore, kPostFilter, kOther };

struct ExtensionPoint {
  std::string_view name;
  Point point;
};

constexpr std::array<ExtensionPoint, 12> kPoints{{
    {"preEnqueue", Point::kOther},
    {"queueSort", Point::kOther},
    {"preFilter", Point::kOther},
    {"filter", Point::kFilter},
    {"postFilter", Point::kPostFilter},
    {"preScore", Point::kOther},
    {"score", Point::kScore},
    {"reserve", Point::kOther},
    {"permit", Point::kOther},
    {"preBind", Point::kOther},
    {"bind", Point::kOther},
    {"postBind", Point::kOther},
}};

bool works_at(const KnownPlugin& plugin, Point point) {
  switch (point) {
    case Point::kFilter:
      return plugin.filter.has_value();
    case Point::kScore:
      return plugin.weight != nullptr;
    case Point::kPostFilter:
      return plugin.name == kPreemption;
    case Point::kOther:
      return false;
  }
  return false;
}

void switch_plugin(const KnownPlugin& plugin, Point point, bool on, std::int64_t weight, Profile& into) {
  if (!works_at(plugin, point)) return;
  if (point == Point::kFilter) {
    on ? into.left_out.erase(*plugin.filter) : into.left_out.insert(*plugin.filter);
  } else if (point == Point::kScore) {
    into.weights.*plugin.weight = on ? weight : 0;
  } else {
    into.preempts = on;
  }
}

Result<const KnownPlugin*> known_plugin(const Place& entry) {
  SPILLWAY_TRY(name, entry.optional_text("name"));
  if (name.empty()) return entry.wrong("name is missing");
  const auto found = std::ranges::find(kPlugins, name, &KnownPlugin::name);
  if (found == kPlugins.end()) {
    std::vector<std::string_view> names;
    for (const KnownPlugin& plugin : kPlugins) names.push_back(plugin.name);
    return entry.member("name").wrong(
        fmt::format("there is no plug-in \"{}\"{}", name, nearest_word(name, names).suggestion()));
  }
  return &*found;
}

/// One set of plug-ins, of one extension point or of all.
class SetReader {
 public:
  SetReader(Profile& into, PluginRest& rest, std::set<std::string_view>& off) : into_(into), rest_(rest), off_(off) {}

  Outcome read(const Place& set, std::optional<Point> point) {
    SPILLWAY_TRY_VOID(set.check_members({"enabled", "disabled"}));
    SPILLWAY_TRY_VOID(set.for_each("disabled", [&](const Place& entry) { return disable(entry, point); }));
    return set.for_each("enabled", [&](const Place& entry) { return enable(entry, point); });
  }

 private:
  void apply(const KnownPlugin& plugin, std::optional<Point> point, bool on, std::int64_t weight) {
    if (point) return switch_plugin(plugin, *point, on, weight, into_);
    for (const Point each : {Point::kFilter, Point::kScore, Point::kPostFilter}) {
      switch_plugin(plugin, each, on, weight, into_);
    }
    if (on) {
      off_.erase(plugin.name);
    } else {
      off_.insert(plugin.name);
    }
  }

  bool matters(const KnownPlugin& plugin, std::optional<Point> point) const {
    if (point) return works_at(plugin, *point);
    const bool needed = plugin.name == kQueueSort || plugin.name == kBinder;
    return needed || works_at(plugin, Point::kFilter) || works_at(plugin, Point::kScore) ||
           works_at(plugin, Point::kPostFilter);
  }

  Outcome disable(const Place& entry, std::optional<Point> point) {
    SPILLWAY_TRY_VOID(entry.check_members({"name", "weight"}));
    SPILLWAY_TRY(name, entry.optional_text("name"));
    if (name == kAll) {
      for (const KnownPlugin& plugin : kPlugins) apply(plugin, point, false, 0);
      return {};
    }
    SPILLWAY_TRY(plugin, known_plugin(entry));
    apply(*plugin, point, false, 0);
    if (!matters(*plugin, point)) warn(entry, fmt::format("{} is not left out", plugin->name));
    return {};
  }

  Outcome enable(const Place& entry, std::optional<Point> point) {
    SPILLWAY_TRY_VOID(entry.check_members({"name", "weight"}));
    SPILLWAY_TRY(plugin, known_plugin(entry));
    SPILLWAY_TRY(weight, entry.number("weight", 0, kWeightMax));
    // Upstream counts a weight that is not given as one, also where the default is another.
    const std::int64_t counts = weight.value_or(0) == 0 ? 1 : *weight;
    if (point && *point != Point::kOther && !works_at(*plugin, *point)) {
      return entry.member("name").wrong(fmt::format("{} has nothing to say there", plugin->name));
    }
    if (weight && *weight != 0 && plugin->weight == nullptr) {
      warn(entry.member("weight"), fmt::format("{} gives no score", plugin->name));
    }
    apply(*plugin, point, true, counts);
    return {};
  }

  void warn(const Place& where, const std::string& what) {
    rest_.warnings.push_back(where.wrong(what + ": has no effect here").text());
  }

  Profile& into_;
  PluginRest& rest_;
  std::set<std::string_view>& off_;  // switched off everywhere
};

Outcome check_arguments_kind(const Place& arguments, std::string_view plugin) {
  if (arguments.has("apiVersion")) {
    SPILLWAY_TRY_VOID(arguments.expect("apiVersion", "kubescheduler.config.k8s.io/v1"));
  }
  return arguments.has("kind") ? arguments.expect("kind", fmt::format("{}Args", plugin)) : Outcome();
}

Outcome read_resources(const Place& around, std::int64_t weight_max, std::vector<ScoringStrategy::Resource>& into) {
  if (!around.has("resources") || around.member("resources").value() == api::Json::array()) return {};
  into.clear();
  return around.for_each("resources", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY_VOID(each.check_members({"name", "weight"}));
    ScoringStrategy::Resource resource;
    SPILLWAY_TRY(name, each.optional_text("name"));
    if (name.empty()) return each.wrong("name is missing");
    resource.name = std::move(name);
    SPILLWAY_TRY(weight, each.number("weight", 0, weight_max));
    resource.weight = weight.value_or(0) == 0 ? 1 : *weight;
    into.push_back(std::move(resource));
    return {};
  });
}

Outcome read_shape(const Place& ratio, std::vector<ScoringStrategy::Point>& shape) {
  constexpr std::int64_t kScoreMax = 10;
  SPILLWAY_TRY_VOID(ratio.check_members({"shape"}));
  SPILLWAY_TRY_VOID(ratio.for_each("shape", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY_VOID(each.check_members({"utilization", "score"}));
    SPILLWAY_TRY(utilization, each.number("utilization", 0, kPercent));
    SPILLWAY_TRY(score, each.number("score", 0, kScoreMax));
    const ScoringStrategy::Point point{utilization.value_or(0), score.value_or(0)};
    if (!shape.empty() && shape.back().utilization >= point.utilization) {
      return each.wrong("utilization must be above that of the point before");
    }
    shape.push_back(point);
    return {};
  }));
  return shape.empty() ? Outcome(ratio.wrong("shape must not be empty")) : Outcome();
}

Outcome read_fit(const Place& arguments, Profile& into) {
  SPILLWAY_TRY_VOID(
      arguments.check_members({"apiVersion", "kind", "ignoredResources", "ignoredResourceGroups", "scoringStrategy"}));
  SPILLWAY_TRY(names, arguments.words("ignoredResources"));
  SPILLWAY_TRY(groups, arguments.words("ignoredResourceGroups"));
  for (const std::string& group : groups) {
    if (group.find('/') == std::string::npos) continue;
    return arguments.member("ignoredResourceGroups").wrong("expected the part of resource names before the slash");
  }
  into.ignored = {std::move(names), std::move(groups)};
  const Place strategy = arguments.member("scoringStrategy");
  if (!arguments.has("scoringStrategy")) return {};
  SPILLWAY_TRY_VOID(strategy.check_members({"type", "resources", "requestedToCapacityRatio"}));
  SPILLWAY_TRY(type, strategy.optional_text("type"));
  if (type.empty() || type == "LeastAllocated") {
    into.fit.type = ScoringStrategy::Type::kLeastAllocated;
  } else if (type == "MostAllocated") {
    into.fit.type = ScoringStrategy::Type::kMostAllocated;
  } else if (type == "RequestedToCapacityRatio") {
    into.fit.type = ScoringStrategy::Type::kRequestedToCapacityRatio;
    SPILLWAY_TRY_VOID(read_shape(strategy.member("requestedToCapacityRatio"), into.fit.shape));
  } else {
    return strategy.member("type").wrong("expected LeastAllocated, MostAllocated or RequestedToCapacityRatio");
  }
  return read_resources(strategy, kPercent, into.fit.resources);
}

Outcome read_balanced(const Place& arguments, Profile& into) {
  SPILLWAY_TRY_VOID(arguments.check_members({"apiVersion", "kind", "resources"}));
  std::vector<ScoringStrategy::Resource> resources{{"cpu", 1}, {"memory", 1}};
  SPILLWAY_TRY_VOID(read_resources(arguments, 1, resources));
  into.balanced.clear();
  for (ScoringStrategy::Resource& resource : resources) into.balanced.push_back(std::move(resource.name));
  return {};
}

Outcome read_inter_pod(const Place& arguments, Profile& into) {
  SPILLWAY_TRY_VOID(
      arguments.check_members({"apiVersion", "kind", "hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"}));
  SPILLWAY_TRY(weight, arguments.number("hardPodAffinityWeight", 0, kPercent));
  into.hard_pod_affinity_weight = weight.value_or(into.hard_pod_affinity_weight);
  SPILLWAY_TRY(ignores, arguments.flag("ignorePreferredTermsOfExistingPods"));
  into.ignore_preferred_terms_of_existing_pods = ignores.value_or(false);
  return {};
}

Result<scheduling::SpreadConstraint> read_constraint(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"maxSkew", "topologyKey", "whenUnsatisfiable", "minDomains", "labelSelector",
                                         "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys"}));
  for (const std::string_view of_pods : {"labelSelector", "matchLabelKeys"}) {
    if (place.has(of_pods)) return place.member(of_pods).wrong("a default constraint gets it from the pod's owner");
  }
  scheduling::SpreadConstraint constraint;
  SPILLWAY_TRY(skew, place.number("maxSkew", 1, INT32_MAX));
  if (!skew) return place.wrong("maxSkew is missing");
  constraint.max_skew = *skew;
  SPILLWAY_TRY(key, place.optional_text("topologyKey"));
  if (key.empty()) return place.wrong("topologyKey is missing");
  constraint.topology_key = std::move(key);
  SPILLWAY_TRY(when, place.optional_text("whenUnsatisfiable"));
  constraint.required = when == "DoNotSchedule";
  if (!constraint.required && when != "ScheduleAnyway") {
    return place.member("whenUnsatisfiable").wrong("expected DoNotSchedule or ScheduleAnyway");
  }
  SPILLWAY_TRY(domains, place.number("minDomains", 1, INT32_MAX));
  if (domains && !constraint.required) {
    return place.member("minDomains").wrong("can only be there with whenUnsatisfiable DoNotSchedule");
  }
  constraint.min_domains = domains.value_or(1);
  const auto honors = [&place](std::string_view member, bool otherwise) -> Result<bool> {
    SPILLWAY_TRY(text, place.optional_text(member));
    if (text.empty()) return otherwise;
    if (text != "Honor" && text != "Ignore") return place.member(member).wrong("expected Honor or Ignore");
    return text == "Honor";
  };
  SPILLWAY_TRY(affinity, honors("nodeAffinityPolicy", true));
  SPILLWAY_TRY(taints, honors("nodeTaintsPolicy", false));
  constraint.honors_affinity = affinity;
  constraint.honors_taints = taints;
  return constraint;
}

Outcome read_spread(const Place& arguments, Profile& into) {
  SPILLWAY_TRY_VOID(arguments.check_members({"apiVersion", "kind", "defaultConstraints", "defaultingType"}));
  SPILLWAY_TRY(type, arguments.optional_text("defaultingType"));
  if (type.empty() || type == "System") {
    if (arguments.has("defaultConstraints") && arguments.member("defaultConstraints").value() != api::Json::array()) {
      return arguments.member("defaultConstraints").wrong("can only be there with defaultingType List");
    }
    into.default_constraints.reset();
    return {};
  }
  if (type != "List") return arguments.member("defaultingType").wrong("expected System or List");
  into.default_constraints.emplace();
  return arguments.for_each("defaultConstraints", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(constraint, read_constraint(each));
    into.default_constraints->push_back(std::move(constraint));
    return {};
  });
}

Outcome read_added_affinity(const Place& arguments, Profile& into) {
  SPILLWAY_TRY_VOID(arguments.check_members({"apiVersion", "kind", "addedAffinity"}));
  constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const Place added = arguments.member("addedAffinity");
  if (!arguments.has("addedAffinity")) return {};
  SPILLWAY_TRY_VOID(added.check_members({kRequired, kPreferred}));
  if (added.has(kRequired)) {
    const Place required = added.member(kRequired);
    SPILLWAY_TRY_VOID(required.check_members({"nodeSelectorTerms"}));
    api::NodeSelector selector = api::parse_node_selector(required.value());
    if (selector.terms.empty()) return required.wrong("nodeSelectorTerms must not be empty");
    if (const auto errors = selector.errors(); !errors.empty()) return required.wrong(errors.front());
    into.added_affinity.required = std::move(selector);
  }
  if (added.has(kPreferred)) {
    const Place preferred = added.member(kPreferred);
    auto terms = api::parse_preferred_node_terms(preferred.value());
    if (!terms) return preferred.wrong(terms.error().text());
    into.added_affinity.preferred = *std::move(terms);
  }
  return {};
}

Outcome read_preemption(const Place& arguments, Profile& into) {
  SPILLWAY_TRY_VOID(
      arguments.check_members({"apiVersion", "kind", "minCandidateNodesPercentage", "minCandidateNodesAbsolute"}));
  SPILLWAY_TRY(percent, arguments.number("minCandidateNodesPercentage", 0, kPercent));
  SPILLWAY_TRY(absolute, arguments.number("minCandidateNodesAbsolute", 0, INT32_MAX));
  into.preemption.percent = percent.value_or(into.preemption.percent);
  into.preemption.absolute = absolute.value_or(into.preemption.absolute);
  if (into.preemption.percent != 0 || into.preemption.absolute != 0) return {};
  return arguments.wrong("minCandidateNodesPercentage and minCandidateNodesAbsolute must not both be 0");
}

Outcome read_volume_binding(const Place& arguments, PluginRest& rest) {
  constexpr std::int64_t kSecondsMax = 24 * 3600;
  SPILLWAY_TRY_VOID(arguments.check_members({"apiVersion", "kind", "bindTimeoutSeconds", "shape"}));
  SPILLWAY_TRY(timeout, arguments.number("bindTimeoutSeconds", 0, kSecondsMax));
  if (timeout) rest.claims_timeout = seconds(*timeout);
  if (arguments.has("shape")) {
    rest.warnings.push_back(arguments.member("shape").wrong("volumes give no score: has no effect here").text());
  }
  return {};
}

Outcome read_arguments_of(std::string_view plugin, const Place& arguments, Profile& into, PluginRest& rest) {
  SPILLWAY_TRY_VOID(check_arguments_kind(arguments, plugin));
  if (plugin == "NodeResourcesFit") return read_fit(arguments, into);
  if (plugin == "NodeResourcesBalancedAllocation") return read_balanced(arguments, into);
  if (plugin == "InterPodAffinity") return read_inter_pod(arguments, into);
  if (plugin == "PodTopologySpread") return read_spread(arguments, into);
  if (plugin == "NodeAffinity") return read_added_affinity(arguments, into);
  if (plugin == kPreemption) return read_preemption(arguments, into);
  if (plugin == "VolumeBinding") return read_volume_binding(arguments, rest);
  return arguments.wrong(fmt::format("{} takes no arguments", plugin));
}

}  // namespace

Outcome read_plugins(const Place& profile, Profile& into, PluginRest& rest) {
  if (!profile.has("plugins")) return {};
  const Place plugins = profile.member("plugins");
  SPILLWAY_TRY_VOID(plugins.check_members({"preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore",
                                           "score", "reserve", "permit", "preBind", "bind", "postBind", "multiPoint"}));
  std::set<std::string_view> off;
  SetReader sets(into, rest, off);
  if (plugins.has("multiPoint")) SPILLWAY_TRY_VOID(sets.read(plugins.member("multiPoint"), std::nullopt));
  std::set<std::string> named;  // again, at a point of their own
  for (const auto& [name, point] : kPoints) {
    if (!plugins.has(name)) continue;
    const Place set = plugins.member(name);
    SPILLWAY_TRY_VOID(sets.read(set, point));
    SPILLWAY_TRY_VOID(set.for_each("enabled", [&](const Place& entry) -> Outcome {
      SPILLWAY_TRY(plugin, entry.optional_text("name"));
      named.insert(std::move(plugin));
      return {};
    }));
  }
  for (const std::string_view needed : {kQueueSort, kBinder}) {
    if (off.contains(needed) && !named.contains(std::string(needed))) {
      return plugins.wrong(fmt::format("{} is off and nothing is there in its place", needed));
    }
  }
  return {};
}

Outcome read_plugin_arguments(const Place& profile, Profile& into, PluginRest& rest) {
  std::set<std::string_view> seen;
  return profile.for_each("pluginConfig", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY_VOID(each.check_members({"name", "args"}));
    SPILLWAY_TRY(plugin, known_plugin(each));
    if (!seen.insert(plugin->name).second) {
      return each.member("name").wrong(fmt::format("{} is there twice", plugin->name));
    }
    return each.has("args") ? read_arguments_of(plugin->name, each.member("args"), into, rest) : Outcome();
  });
}

}  // namespace spillway::cli
