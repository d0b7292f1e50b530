// One what-if simulation for the dashboard: `spillway simulate` in a child process with limits. Thread: loop. Bounds:
// LimitedRun::Limits.
#pragma once

#include "api/exchange/exchange.h"
#include "apps/process/limited_run.h"
#include "base/error.h"
#include "runtime/loop.h"
#include "sim/scenario/what_if.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

/// The advice in errors about simulations that are too large to run here.
inline constexpr std::string_view kWhatIfInstead = "play it with `spillway simulate --from-cluster`";

/// The place of the cluster for the child.
struct WhatIfCluster {
  std::vector<std::string> arguments;  // arguments of `spillway simulate`
  std::vector<HandedText> texts;       // texts that are named in them
};

/// `done` is called once, from the loop, and may destroy the run; never if that is destroyed before. The answer: 200
/// and the document of `simulate -o json`; 422: the cluster has not what was asked about; 502, 504: it could not be
/// played, and why.
Result<std::unique_ptr<LimitedRun>> start_what_if(runtime::Loop& loop, const sim::WhatIf& question,
                                                  WhatIfCluster cluster, std::function<void(api::Response)> done);

/// A Status as an answer, with a reason of its own.
api::Response what_if_refusal(int code, std::string_view reason, const std::string& message);

/// The answer while the maximum of simulations is played.
api::Response what_if_busy();

}  // namespace spillway::apps
