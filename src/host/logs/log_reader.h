// Reads container logs for kubectl logs: what is there on a thread of its own, what follows on the loop, woken by
// inotify. Thread: loop. Bounded: so many logs at a time, each counted until its client has taken it; of each, one
// slice on its way and as much again waiting for the client. Who takes nothing is not read for.
// Source: spec "Node agent", 12.3 (containerLogs).
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/kernel/blocking_thread.h"
#include "host/logs/log_query.h"
#include "runtime/loop.h"

#include <cstddef>
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

  static constexpr std::size_t kStreamsMax = 100;
  /// Read at a time.
  static constexpr std::size_t kSliceBytes = std::size_t{128} * 1024;
  /// Bytes waiting in a sink above which nothing more is read for it.
  static constexpr std::size_t kWaitingBytesHigh = std::size_t{128} * 1024;
  /// Bytes waiting in a sink below which a log that has been read is done.
  static constexpr std::size_t kWaitingBytesLow = std::size_t{64} * 1024;

  explicit LogReader(runtime::Loop& loop);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  /// Answers into `sink`: a stream that ends when all is read and, following, `is_running` has become false; or one
  /// response with an error. `path` is the newest part of the log.
  StreamId open(std::string path, LogQuery query, std::function<bool()> is_running,
                std::shared_ptr<api::ResponseSink> sink);
  /// Stops writing to the stream's sink.
  void close(StreamId id);

  bool is_open(StreamId id) const { return streams_.contains(id); }

  std::size_t open_count() const { return streams_.size(); }

 private:
  struct Stored;
  struct Slice;

  enum class Stage { kStored, kFollowing, kEnding };

  struct Stream {
    Stream();
    ~Stream();

    std::string path;
    bool follow = false;
    std::function<bool()> is_running;
    std::shared_ptr<api::ResponseSink> sink;
    Stage stage = Stage::kStored;
    bool answered = false;              // the stream has begun
    std::unique_ptr<Stored> stored;     // kStored: null while the thread reads a slice
    std::optional<LogPrinter> printer;  // kFollowing
    UniqueFd file;
    UniqueFd inotify;
    std::optional<runtime::Loop::TimerId> timer;
    Duration pause = Duration::zero();  // last pause for a client that reads slowly
    bool turned = false;                // another file has the log's name, and was empty at the last read
    bool ended = false;                 // the container has ended: the present read is the last one
  };

  static Result<Slice> read_slice(std::unique_ptr<Stored> stored);

  void on_slice(StreamId id, Result<Slice> slice);
  void advance(StreamId id);
  bool submit_slice(StreamId id, std::unique_ptr<Stored> stored);
  void follow(StreamId id, Stream& stream);
  void read_on(StreamId id);
  static Duration wait_after_reading(Stream& stream, std::optional<std::size_t> bytes);
  static Duration turn_over(Stream& stream);
  void end(StreamId id);
  void fail(StreamId id, const Error& error);
  void arm(StreamId id, Stream& stream, Duration wait);

  runtime::Loop& loop_;
  StreamId last_id_ = 0;
  std::map<StreamId, Stream> streams_;
  BlockingThread thread_;
};

}  // namespace spillway::host
