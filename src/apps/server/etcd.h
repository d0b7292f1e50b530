// The store of a process that keeps its objects in etcd.
#pragma once

#include "cli/flags/command_line.h"
#include "store/store.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <memory>

namespace spillway::apps {

/// kInvalid, kForbidden, kNotFound: a flag, or a file it names. Whether etcd answers is seen by the first request.
Result<std::unique_ptr<store::Store>> open_etcd_store(const cli::EtcdArgs& args, store::Poster post, telemetry::Log log,
                                                      telemetry::Registry& metrics);

}  // namespace spillway::apps
