#include "cli/config/scheduler_document.h"

#include "api/text/base64.h"
#include "api/text/duration.h"
#include "cli/config/known_plugins.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

using api::Json;
using scheduling::Profile;
using scheduling::ScoringStrategy;

constexpr std::string_view kDocumentApi = "kubescheduler.config.k8s.io/v1";

std::int64_t whole_seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

void append(Json& list, Json each) {
  list.if_array()->push_back(std::move(each));
}

/// Strings that are not empty.
void put(Json& object, std::string_view name, const std::string& text) {
  if (!text.empty()) object[name] = text;
}

void put_flag(Json& object, std::string_view name, bool flag) {
  if (flag) object[name] = true;
}

Json words(const std::vector<std::string>& list) {
  Json out = Json::array();
  for (const std::string& each : list) append(out, each);
  return out;
}

struct PluginState {
  bool filters = false;
  std::int64_t weight = 0;  // 0: gives no score
  bool is_on = false;       // enabled at one extension point at least
};

PluginState state_of(const KnownPlugin& plugin, const Profile& profile) {
  PluginState state;
  state.filters = plugin.filter && !profile.left_out.contains(*plugin.filter);
  state.weight = plugin.weight == nullptr ? 0 : profile.weights.*plugin.weight;
  const bool is_switched = plugin.filter || plugin.weight != nullptr || plugin.name == kPreemption;
  const bool preempts = plugin.name == kPreemption && profile.preempts;
  state.is_on = !is_switched || state.filters || state.weight != 0 || preempts;
  return state;
}

Json plugin_entry(const KnownPlugin& plugin, const PluginState& state) {
  Json entry = Json::object({{"name", plugin.name}});
  if (state.weight != 0) entry["weight"] = state.weight;
  return entry;
}

/// All that are on by name; those that are on at some of their points are left out at the others.
Json plugins_document(const Profile& profile) {
  Json enabled = Json::array();
  Json without_filter = Json::array();
  Json without_score = Json::array();
  for (const KnownPlugin& plugin : kPlugins) {
    const PluginState state = state_of(plugin, profile);
    if (!state.is_on) continue;
    append(enabled, plugin_entry(plugin, state));
    if (plugin.filter && !state.filters) append(without_filter, Json::object({{"name", plugin.name}}));
    if (plugin.weight != nullptr && state.weight == 0) append(without_score, Json::object({{"name", plugin.name}}));
  }
  const bool some_are_off = enabled.if_array()->size() != kPlugins.size();
  Json everywhere = Json::object();
  if (some_are_off) everywhere["disabled"] = Json::array({Json::object({{"name", "*"}})});
  everywhere["enabled"] = std::move(enabled);
  Json plugins = Json::object({{"multiPoint", std::move(everywhere)}});
  if (!without_filter.if_array()->empty()) plugins["filter"] = Json::object({{"disabled", std::move(without_filter)}});
  if (!without_score.if_array()->empty()) plugins["score"] = Json::object({{"disabled", std::move(without_score)}});
  return plugins;
}

std::string_view operator_text(api::LabelRequirement::Op op) {
  using Op = api::LabelRequirement::Op;
  switch (op) {
    case Op::kIn:
    case Op::kEquals:
    case Op::kDoubleEquals:
      return "In";
    case Op::kNotIn:
    case Op::kNotEquals:
      return "NotIn";
    case Op::kExists:
      return "Exists";
    case Op::kDoesNotExist:
      return "DoesNotExist";
    case Op::kGt:
      return "Gt";
    case Op::kLt:
      return "Lt";
  }
  return {};
}

Json requirements(const std::vector<api::LabelRequirement>& list) {
  Json out = Json::array();
  for (const api::LabelRequirement& each : list) {
    Json entry = Json::object({{"key", each.key}, {"operator", operator_text(each.op)}});
    if (!each.values.empty()) entry["values"] = words(each.values);
    append(out, std::move(entry));
  }
  return out;
}

Json node_term(const api::NodeSelectorTerm& term) {
  Json out = Json::object();
  if (!term.expressions.empty()) out["matchExpressions"] = requirements(term.expressions);
  if (!term.fields.empty()) out["matchFields"] = requirements(term.fields);
  return out;
}

Json affinity_arguments(const Profile& profile) {
  Json added = Json::object();
  if (profile.added_affinity.required) {
    Json terms = Json::array();
    for (const api::NodeSelectorTerm& term : profile.added_affinity.required->terms) append(terms, node_term(term));
    added["requiredDuringSchedulingIgnoredDuringExecution"] = Json::object({{"nodeSelectorTerms", std::move(terms)}});
  }
  if (!profile.added_affinity.preferred.empty()) {
    Json terms = Json::array();
    for (const api::PreferredNodeTerm& each : profile.added_affinity.preferred) {
      append(terms, Json::object({{"weight", each.weight}, {"preference", node_term(each.term)}}));
    }
    added["preferredDuringSchedulingIgnoredDuringExecution"] = std::move(terms);
  }
  const bool adds = !added.if_object()->empty();
  return adds ? Json::object({{"addedAffinity", std::move(added)}}) : Json::object();
}

Json resources_document(const std::vector<ScoringStrategy::Resource>& resources) {
  Json out = Json::array();
  for (const auto& [name, weight] : resources) append(out, Json::object({{"name", name}, {"weight", weight}}));
  return out;
}

std::string_view strategy_text(ScoringStrategy::Type type) {
  switch (type) {
    case ScoringStrategy::Type::kLeastAllocated:
      return "LeastAllocated";
    case ScoringStrategy::Type::kMostAllocated:
      return "MostAllocated";
    case ScoringStrategy::Type::kRequestedToCapacityRatio:
      return "RequestedToCapacityRatio";
  }
  return {};
}

Json fit_arguments(const Profile& profile) {
  Json strategy = Json::object(
      {{"resources", resources_document(profile.fit.resources)}, {"type", strategy_text(profile.fit.type)}});
  if (profile.fit.type == ScoringStrategy::Type::kRequestedToCapacityRatio) {
    Json shape = Json::array();
    for (const auto& [utilization, score] : profile.fit.shape) {
      append(shape, Json::object({{"utilization", utilization}, {"score", score}}));
    }
    strategy["requestedToCapacityRatio"] = Json::object({{"shape", std::move(shape)}});
  }
  Json out = Json::object();
  if (!profile.ignored.names.empty()) out["ignoredResources"] = words(profile.ignored.names);
  if (!profile.ignored.groups.empty()) out["ignoredResourceGroups"] = words(profile.ignored.groups);
  out["scoringStrategy"] = std::move(strategy);
  return out;
}

Json balanced_arguments(const Profile& profile) {
  std::vector<ScoringStrategy::Resource> resources;
  for (const std::string& name : profile.balanced) resources.push_back({name, 1});
  return Json::object({{"resources", resources_document(resources)}});
}

Json spread_arguments(const Profile& profile) {
  if (!profile.default_constraints) return Json::object({{"defaultingType", "System"}});
  Json constraints = Json::array();
  for (const scheduling::SpreadConstraint& each : *profile.default_constraints) {
    Json entry = Json::object({{"maxSkew", each.max_skew},
                               {"topologyKey", each.topology_key},
                               {"whenUnsatisfiable", each.required ? "DoNotSchedule" : "ScheduleAnyway"},
                               {"nodeAffinityPolicy", each.honors_affinity ? "Honor" : "Ignore"},
                               {"nodeTaintsPolicy", each.honors_taints ? "Honor" : "Ignore"}});
    if (each.required) entry["minDomains"] = each.min_domains;
    append(constraints, std::move(entry));
  }
  return Json::object({{"defaultConstraints", std::move(constraints)}, {"defaultingType", "List"}});
}

Json arguments_document(const SchedulerConfig& config, const Profile& profile) {
  const std::array<std::pair<std::string_view, Json>, 7> arguments{
      {{kPreemption, Json::object({{"minCandidateNodesAbsolute", profile.preemption.absolute},
                                   {"minCandidateNodesPercentage", profile.preemption.percent}})},
       {"InterPodAffinity",
        Json::object({{"hardPodAffinityWeight", profile.hard_pod_affinity_weight},
                      {"ignorePreferredTermsOfExistingPods", profile.ignore_preferred_terms_of_existing_pods}})},
       {"NodeAffinity", affinity_arguments(profile)},
       {"NodeResourcesBalancedAllocation", balanced_arguments(profile)},
       {"NodeResourcesFit", fit_arguments(profile)},
       {"PodTopologySpread", spread_arguments(profile)},
       {"VolumeBinding", Json::object({{"bindTimeoutSeconds", whole_seconds(config.claims_timeout)}})}}};
  Json out = Json::array();
  for (const auto& [plugin, members] : arguments) {
    Json document = Json::object({{"apiVersion", kDocumentApi}, {"kind", std::string(plugin) + "Args"}});
    for (const auto& [name, value] : *members.if_object()) document[name] = value;
    append(out, Json::object({{"args", std::move(document)}, {"name", plugin}}));
  }
  return out;
}

Json tls_document(const ExtenderTls& tls, InlineKeys keys) {
  Json out = Json::object();
  put_flag(out, "insecure", tls.insecure);
  put(out, "serverName", tls.server_name);
  put(out, "certFile", tls.certificate_file);
  put(out, "keyFile", tls.key_file);
  put(out, "caFile", tls.ca_file);
  put(out, "certData", api::encode_base64(tls.certificate_pem));
  if (keys == InlineKeys::kWritten) put(out, "keyData", api::encode_base64(tls.key_pem));
  put(out, "caData", api::encode_base64(tls.ca_pem));
  return out;
}

Json extender_document(const scheduling::Extender& extender, const ExtenderTls& tls, const ExtenderSet& all,
                       InlineKeys keys) {
  Json out = Json::object({{"urlPrefix", extender.url}});
  put(out, "filterVerb", extender.filter_verb);
  put(out, "prioritizeVerb", extender.prioritize_verb);
  put(out, "preemptVerb", extender.preempt_verb);
  put(out, "bindVerb", extender.bind_verb);
  if (extender.weight != 0) out["weight"] = extender.weight;
  out["enableHTTPS"] = tls.enabled;
  if (Json members = tls_document(tls, keys); !members.if_object()->empty()) out["tlsConfig"] = std::move(members);
  out["httpTimeout"] = api::format_duration(extender.timeout);
  out["nodeCacheCapable"] = extender.knows_nodes;
  if (!extender.resources.empty()) {
    Json resources = Json::array();
    for (const std::string& name : extender.resources) {
      Json entry = Json::object({{"name", name}});
      put_flag(entry, "ignoredByScheduler", std::ranges::find(all.ignored, name) != all.ignored.end());
      append(resources, std::move(entry));
    }
    out["managedResources"] = std::move(resources);
  }
  out["ignorable"] = extender.ignorable;
  return out;
}

Json election_document(const LeaderElectionArgs& election) {
  return Json::object({{"leaderElect", election.enabled},
                       {"leaseDuration", api::format_duration(election.lease_duration)},
                       {"renewDeadline", api::format_duration(election.renew_deadline)},
                       {"resourceLock", "leases"},
                       {"resourceName", election.resource_name},
                       {"resourceNamespace", election.resource_namespace},
                       {"retryPeriod", api::format_duration(election.retry_period)}});
}

}  // namespace

Json scheduler_document(const SchedulerConfig& config, InlineKeys keys) {
  Json out = Json::object({{"apiVersion", kDocumentApi}, {"kind", "KubeSchedulerConfiguration"}});
  out["clientConnection"] = Json::object({{"kubeconfig", config.kubeconfig}});
  if (!config.extenders.rules.empty()) {
    Json extenders = Json::array();
    for (std::size_t i = 0; i < config.extenders.rules.size(); ++i) {
      append(extenders, extender_document(config.extenders.rules[i], config.extenders.tls[i], config.extenders, keys));
    }
    out["extenders"] = std::move(extenders);
  }
  out["leaderElection"] = election_document(config.leader_election);
  // Without extenders shares have no effect.
  const bool has_extenders = !config.extenders.rules.empty();
  if (has_extenders) out["percentageOfNodesToScore"] = config.profiles.front().share.global_percent;
  out["podInitialBackoffSeconds"] = whole_seconds(config.backoff.initial);
  out["podMaxBackoffSeconds"] = whole_seconds(config.backoff.max);
  Json profiles = Json::array();
  for (const Profile& profile : config.profiles) {
    Json each = Json::object({{"schedulerName", profile.scheduler}});
    if (has_extenders && profile.share.profile_percent) {
      each["percentageOfNodesToScore"] = *profile.share.profile_percent;
    }
    each["plugins"] = plugins_document(profile);
    each["pluginConfig"] = arguments_document(config, profile);
    append(profiles, std::move(each));
  }
  out["profiles"] = std::move(profiles);
  return out;
}

}  // namespace spillway::cli
