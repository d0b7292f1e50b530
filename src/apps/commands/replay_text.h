// The result of a replay as text and as JSON: the first difference, and the point from which on the replay proves
// nothing. Thread: any (pure).
#pragma once

#include "agent/recording/replay.h"
#include "sim/replay/lifecycle_replay.h"

#include <string>

namespace spillway::apps {

/// `config`: file of the other configuration; empty: the recorded one.
std::string replay_text(const agent::ReplayReport& report, const std::string& config);
/// {"kind":"ReplayReport", …}.
api::Json replay_json(const agent::ReplayReport& report, const std::string& config);

/// The text for a controller's recording: all differences are evidence, since heartbeats do not depend on what was
/// decided.
std::string replay_text(const sim::LifecycleReplayReport& report, const std::string& config);
/// {"kind":"ControllerReplayReport", …}.
api::Json replay_json(const sim::LifecycleReplayReport& report, const std::string& config);

}  // namespace spillway::apps
