// Logs of the node itself: what units have written into systemd's journal, and files below /var/log.
// Thread: loop; programs and files are read on a thread of its own. Bounds: 16 queries wait; 30 s per unit, 16 MiB of
// output per unit; of a file its last 16 MiB. No file outside of /var/log is read, whatever links there are.
// Source: Kubernetes docs, "System Logs", log query.
#pragma once

#include "agent/serving/node_log_query.h"
#include "api/exchange/exchange.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"

#include <functional>
#include <optional>
#include <string>

namespace spillway::host {

/// The error for which this file below /var/log cannot be read: "stat /var/log/x: no such file or directory"; nullopt:
/// it can be read. Thread: any.
std::optional<std::string> missing_node_log(const std::string& file);

class NodeLogs {
 public:
  using Answer = std::move_only_function<void(api::Response)>;

  explicit NodeLogs(runtime::Loop& loop);

  /// 400: no valid query; 406: a query that breaks a rule; 404: the query names nothing; 503: too many wait. `answer`
  /// is called once, now or later; never after this object is destroyed.
  void get(const api::Target& target, Answer answer);

 private:
  BlockingThread thread_;
};

}  // namespace spillway::host
