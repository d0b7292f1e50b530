// Logs of the node itself: files below /var/log, and what units have written into systemd's journal.
// Thread: loop; programs and files are read on two threads of its own, so that a journal holds up no file. Bounds:
// kRequestsMax requests; 30 s and 16 MiB of output per unit; of a file one slice on its way and as much waiting for the
// client. Nothing outside of the folder is read, whatever links there are.
// Source: Kubernetes docs, "System Logs", log query; spec "Node agent", 12.3.
#pragma once

#include "agent/serving/node_log_query.h"
#include "agent/serving/node_request.h"
#include "api/exchange/exchange.h"
#include "base/alive.h"
#include "host/kernel/blocking_thread.h"
#include "host/logs/node_log_files.h"
#include "runtime/loop.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace spillway::host {

/// The error for which this file below /var/log cannot be read: "stat /var/log/x: no such file or directory"; nullopt:
/// it can be read. Thread: any.
std::optional<std::string> missing_node_log(const std::string& file);

class NodeLogs {
 public:
  using RequestId = std::uint64_t;

  enum class Serves { kFiles, kFilesAndQueries };

  static constexpr std::size_t kRequestsMax = 16;
  static constexpr std::size_t kSliceBytes = std::size_t{128} * 1024;

  NodeLogs(runtime::Loop& loop, Serves serves, std::string folder = std::string(agent::kNodeLogFolder));

  /// Answers a request for /logs or a path below it, now or later; never after this object is destroyed. 400: no valid
  /// query; 406: a query that breaks a rule; 404: no such file; 503: too many requests are being answered. `id`: not
  /// that of an open request.
  void get(RequestId id, const agent::NodeRequest& asked, const std::shared_ptr<api::ResponseSink>& sink);

  bool is_open(RequestId id) const { return readings_.contains(id); }

  /// The client has disconnected: nothing more is written to its sink.
  void close(RequestId id) { readings_.erase(id); }

 private:
  struct Reading {
    std::shared_ptr<api::ResponseSink> sink;
    std::shared_ptr<const NodeLogFile> file;  // null: not opened yet
    std::uint64_t at = 0;                     // bytes that have been written
  };

  /// A whole answer, or a file whose contents are one.
  using Found = std::variant<api::Response, NodeLogFile>;

  void query(RequestId id, agent::NodeLogQuery query);
  void open(RequestId id, const std::string& below, const std::string& prefix);
  void on_found(RequestId id, Found found);
  void read_on(RequestId id);
  void on_slice(RequestId id, Result<std::string> slice);
  void end(RequestId id);
  void answer(RequestId id, api::Response response);

  std::string folder_;
  Serves serves_;
  std::map<RequestId, Reading> readings_;
  BlockingThread queries_;
  BlockingThread files_;
  Alive alive_;
};

}  // namespace spillway::host
