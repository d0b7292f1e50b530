// The node's own HTTP surface, below TLS and authentication: /healthz, /containerLogs, /stats/summary and /pods.
// Thread: loop. Source: spec "Node agent", 12.3.
#pragma once

#include "api/exchange.h"
#include "host/log_reader.h"
#include "host/process_runtime.h"
#include "runtime/loop.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace spillway::host {

class KubeletEndpoint {
 public:
  using RequestId = std::uint64_t;

  struct Options {
    /// A PodList as JSON: what the agent knows of its pods. Absent: /pods is not served.
    std::function<std::string()> pods;
  };

  KubeletEndpoint(runtime::Loop& loop, ProcessRuntime& runtime, Options options);

  /// Answers now or later. The caller has authenticated and authorized.
  RequestId handle(const api::Request& request, const std::shared_ptr<api::ResponseSink>& sink);
  /// The client is gone: nothing more is written to its sink.
  void abandon(RequestId id);

 private:
  void handle_logs(RequestId id, const api::Target& target, const std::shared_ptr<api::ResponseSink>& sink);

  runtime::Loop& loop_;
  ProcessRuntime& runtime_;
  Options options_;
  RequestId last_id_ = 0;
  std::map<RequestId, LogReader::StreamId> streams_;
  LogReader logs_;
};

}  // namespace spillway::host
