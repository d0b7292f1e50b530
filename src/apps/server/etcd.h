// The store of a process that keeps its objects in etcd.
#pragma once

#include "cli/flags/command_line.h"
#include "store/store.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <memory>
#include <string>

namespace spillway::apps {

/// kInvalid, kForbidden, kNotFound: a flag, or a file it names. The first request shows if etcd answers. `name`
/// distinguishes one of several stores from the main one, whose name is empty.
Result<std::unique_ptr<store::Store>> open_etcd_store(const cli::EtcdArgs& args, const std::string& name,
                                                      store::Poster post, telemetry::Log log,
                                                      telemetry::Registry& metrics);

/// The name that a server shares with its successor: made once in the data directory, "HOST.NUMBER".
Result<std::string> server_name(const std::string& data_dir);

}  // namespace spillway::apps
