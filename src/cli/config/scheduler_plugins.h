// The plug-ins of one profile of a KubeSchedulerConfiguration: which are on, what they weigh, their arguments.
// Thread: any (pure). Source: Kubernetes docs, "Scheduler Configuration"; kube-scheduler configuration (v1).
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "policy/scheduling/profile.h"
#include "yaml/place.h"

#include <string>
#include <vector>

namespace spillway::cli {

/// The parts of a profile's plug-in configuration that scheduling::Profile does not have.
struct PluginRest {
  Duration claims_timeout = seconds(600);
  std::vector<std::string> warnings;
};

/// `plugins` of a profile: sets of each extension point, over the default ones.
Outcome read_plugins(const yaml::Place& profile, scheduling::Profile& into, PluginRest& rest);
/// `pluginConfig` of a profile.
Outcome read_plugin_arguments(const yaml::Place& profile, scheduling::Profile& into, PluginRest& rest);

}  // namespace spillway::cli
