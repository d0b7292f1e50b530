// Reads container logs for kubectl logs: what is there on a thread of its own, what follows on the loop, woken by
// inotify. Thread: loop. Bounded: of a long log the newest 16 MiB, so many streams at a time, and what the sink takes.
// Source: spec "Node agent", 12.3 (containerLogs).
#pragma once

#include "api/exchange.h"
#include "base/error.h"
#include "host/kernel/blocking_thread.h"
#include "host/kernel/unique_fd.h"
#include "host/logs/log_query.h"
#include "runtime/loop.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace spillway::host {

class LogReader {
 public:
  using StreamId = std::uint64_t;

  explicit LogReader(runtime::Loop& loop);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  /// Answers into `sink`: one response, or, following, a stream that ends when `is_running` has become false and all is
  /// read. `path` is the newest part of the log.
  StreamId open(std::string path, LogQuery query, std::function<bool()> is_running,
                std::shared_ptr<api::ResponseSink> sink);
  /// Nothing more is written to its sink.
  void close(StreamId id);

  bool is_open(StreamId id) const { return streams_.contains(id); }

 private:
  struct Stream {
    std::string path;
    LogPrinter printer;
    bool follow = false;
    std::function<bool()> is_running;
    std::shared_ptr<api::ResponseSink> sink;
    UniqueFd file;
    UniqueFd inotify;
    std::optional<runtime::Loop::TimerId> timer;
    bool ended = false;  // the container was seen ended: what is read now is the last
  };

  struct Beginning;

  static Result<Beginning> read_beginning(const std::string& path, const LogQuery& query, LogPrinter printer);

  void on_beginning(StreamId id, Result<Beginning> beginning);
  void watch(StreamId id, Stream& stream);
  void continue_stream(StreamId id);
  void finish(StreamId id);

  runtime::Loop& loop_;
  StreamId last_id_ = 0;
  std::map<StreamId, Stream> streams_;
  BlockingThread thread_;
};

}  // namespace spillway::host
