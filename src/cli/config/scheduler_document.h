// A KubeSchedulerConfiguration as it is in effect, with all defaults: parsed again, it is the same. Members without an
// effect here are left out. Thread: any (pure). Source: kube-scheduler configuration (v1).
#pragma once

#include "api/json/json.h"
#include "cli/config/scheduler_config.h"

namespace spillway::cli {

/// Keys of client certificates that the configuration holds itself (tlsConfig.keyData).
enum class InlineKeys { kLeftOut, kWritten };

api::Json scheduler_document(const SchedulerConfig& config, InlineKeys keys);

}  // namespace spillway::cli
