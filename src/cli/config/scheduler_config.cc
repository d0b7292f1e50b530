#include "cli/config/scheduler_config.h"

#include "api/text/duration.h"
#include "cli/config/scheduler_plugins.h"
#include "yaml/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

using yaml::Place;

constexpr std::string_view kSchedulerApi = "kubescheduler.config.k8s.io/v1";

/// Settings of how kube-scheduler works, not of its decisions.
constexpr std::array<std::string_view, 4> kElsewhere{"parallelism", "enableProfiling", "enableContentionProfiling",
                                                     "delayCacheUntilActive"};
constexpr std::string_view kShare = "percentageOfNodesToScore";

Outcome read_duration(const Place& around, std::string_view name, Duration& into) {
  SPILLWAY_TRY(text, around.optional_text(name));
  if (text.empty()) return {};
  const auto duration = api::parse_duration(text);
  if (!duration || *duration <= Duration::zero()) {
    return around.member(name).wrong(fmt::format("expected a duration such as 15s, got \"{}\"", text));
  }
  into = *duration;
  return {};
}

Outcome read_election(const Place& place, LeaderElectionArgs& into) {
  SPILLWAY_TRY_VOID(place.check_members({"leaderElect", "leaseDuration", "renewDeadline", "retryPeriod", "resourceLock",
                                         "resourceName", "resourceNamespace"}));
  SPILLWAY_TRY(elects, place.flag("leaderElect"));
  into.enabled = elects.value_or(true);
  SPILLWAY_TRY_VOID(read_duration(place, "leaseDuration", into.lease_duration));
  SPILLWAY_TRY_VOID(read_duration(place, "renewDeadline", into.renew_deadline));
  SPILLWAY_TRY_VOID(read_duration(place, "retryPeriod", into.retry_period));
  SPILLWAY_TRY(lock, place.optional_text("resourceLock"));
  if (!lock.empty() && lock != "leases") return place.member("resourceLock").wrong("expected leases");
  SPILLWAY_TRY(name, place.optional_text("resourceName"));
  if (!name.empty()) into.resource_name = std::move(name);
  SPILLWAY_TRY(ns, place.optional_text("resourceNamespace"));
  if (!ns.empty()) into.resource_namespace = std::move(ns);
  return {};
}

Outcome read_connection(const Place& place, SchedulerConfig& into) {
  SPILLWAY_TRY_VOID(place.check_members({"kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"}));
  SPILLWAY_TRY(kubeconfig, place.optional_text("kubeconfig"));
  into.kubeconfig = std::move(kubeconfig);
  for (const std::string_view other : {"acceptContentTypes", "contentType", "qps", "burst"}) {
    if (place.has(other)) into.warnings.push_back(place.member(other).wrong("has no effect here").text());
  }
  return {};
}

Outcome read_backoff(const Place& top, scheduling::Backoff& into) {
  constexpr std::int64_t kSecondsMax = 24 * 3600;
  SPILLWAY_TRY(initial, top.number("podInitialBackoffSeconds", 1, kSecondsMax));
  if (initial) into.initial = seconds(*initial);
  SPILLWAY_TRY(most, top.number("podMaxBackoffSeconds", 1, kSecondsMax));
  if (most) into.max = seconds(*most);
  if (into.max >= into.initial) return {};
  return top.wrong("podMaxBackoffSeconds must not be below podInitialBackoffSeconds");
}

Outcome read_profile(const Place& place, SchedulerConfig& into) {
  SPILLWAY_TRY_VOID(place.check_members({"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"}));
  scheduling::Profile profile;
  SPILLWAY_TRY(name, place.optional_text("schedulerName"));
  if (!name.empty()) profile.scheduler = std::move(name);
  if (std::ranges::find(into.profiles, profile.scheduler, &scheduling::Profile::scheduler) != into.profiles.end()) {
    return place.wrong(fmt::format("there is a profile of \"{}\" already", profile.scheduler));
  }
  PluginRest rest;
  SPILLWAY_TRY(percent, place.number(kShare, 0, 100));
  profile.share.profile_percent = percent;
  SPILLWAY_TRY_VOID(read_plugins(place, profile, rest));
  SPILLWAY_TRY_VOID(read_plugin_arguments(place, profile, rest));
  into.claims_timeout = std::max(into.claims_timeout, rest.claims_timeout);
  std::ranges::move(rest.warnings, std::back_inserter(into.warnings));
  into.profiles.push_back(std::move(profile));
  return {};
}

Outcome read_profiles(const Place& top, SchedulerConfig& into) {
  into.profiles.clear();
  into.claims_timeout = Duration::zero();
  SPILLWAY_TRY_VOID(top.for_each("profiles", [&](const Place& each) { return read_profile(each, into); }));
  if (into.profiles.empty()) return top.member("profiles").wrong("must not be empty");
  if (into.profiles.size() > kSchedulerProfilesMax) {
    return top.member("profiles").wrong(fmt::format("more than {} profiles", kSchedulerProfilesMax));
  }
  return {};
}

/// Warns about percentageOfNodesToScore without extenders: scores are kept from pod to pod, so that all nodes have
/// them, and only extenders are called for a share of the nodes.
void warn_of_share(const Place& top, SchedulerConfig& into) {
  const auto warn = [&into](const Place& place) {
    if (!place.has(kShare)) return;
    into.warnings.push_back(
        place.member(kShare).wrong("without extenders all nodes are checked: has no effect here").text());
  };
  warn(top);
  static_cast<void>(top.for_each("profiles", [&warn](const Place& each) {
    warn(each);
    return Outcome();
  }));
}

}  // namespace

Result<SchedulerConfig> read_scheduler_config(const std::string& file, const yaml::Document& document) {
  const Place top(file, document);
  SchedulerConfig config;
  SPILLWAY_TRY_VOID(top.expect("apiVersion", kSchedulerApi));
  SPILLWAY_TRY_VOID(top.expect("kind", "KubeSchedulerConfiguration"));
  SPILLWAY_TRY_VOID(
      top.check_members({"apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "enableProfiling",
                         "enableContentionProfiling", "percentageOfNodesToScore", "podInitialBackoffSeconds",
                         "podMaxBackoffSeconds", "profiles", "extenders", "delayCacheUntilActive"}));
  for (const std::string_view member : kElsewhere) {
    if (top.has(member)) config.warnings.push_back(top.member(member).wrong("has no effect here").text());
  }
  SPILLWAY_TRY(percent, top.number(kShare, 0, 100));
  SPILLWAY_TRY(extenders, read_extenders(top));
  config.extenders = std::move(extenders);
  if (top.has("leaderElection")) {
    SPILLWAY_TRY_VOID(read_election(top.member("leaderElection"), config.leader_election));
  }
  if (top.has("clientConnection")) SPILLWAY_TRY_VOID(read_connection(top.member("clientConnection"), config));
  SPILLWAY_TRY_VOID(read_backoff(top, config.backoff));
  if (top.has("profiles")) SPILLWAY_TRY_VOID(read_profiles(top, config));
  for (scheduling::Profile& profile : config.profiles) profile.share.global_percent = percent.value_or(0);
  ignore_managed(config.extenders, config.profiles);
  if (config.extenders.rules.empty()) warn_of_share(top, config);
  return config;
}

}  // namespace spillway::cli
