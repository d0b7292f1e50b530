// A KubeSchedulerConfiguration file: profiles with their plug-ins and arguments, back-offs, leader election. Strict: an
// unknown member is an error with its line and the nearest known name; members for other parts of kube-scheduler are
// accepted, with a warning that they have no effect here. Other plug-ins are errors: they would never run.
// Thread: any (pure). Bounds: kSchedulerProfilesMax. Source: Kubernetes docs, "Scheduler Configuration";
// kube-scheduler configuration (v1).
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "cli/config/scheduler_extenders.h"
#include "cli/flags/command_line.h"
#include "policy/scheduling/pod_queue.h"
#include "policy/scheduling/profile.h"
#include "yaml/yaml_document.h"

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::cli {

inline constexpr std::size_t kSchedulerProfilesMax = 16;

struct SchedulerConfig {
  std::vector<scheduling::Profile> profiles{scheduling::Profile()};  // at least one, each with another scheduler name
  scheduling::Backoff backoff;
  Duration claims_timeout = seconds(600);  // VolumeBindingArgs: how long a placed pod waits for its claims
  std::string kubeconfig;                  // clientConnection; empty: not given
  LeaderElectionArgs leader_election = scheduler_election();
  ExtenderSet extenders;
  std::vector<std::string> warnings;  // "FILE:LINE: MEMBER: has no effect here"
};

/// kInvalid: the mistake and its place.
Result<SchedulerConfig> read_scheduler_config(const std::string& file, const yaml::Document& document);

}  // namespace spillway::cli
