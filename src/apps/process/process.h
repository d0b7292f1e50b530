// One running spillway: the loop, the log, the metrics, and the parts that were started, which stop in reverse order.
// SIGINT and SIGTERM begin the stop; a second one ends the process at once. Output whose reader has gone is lost; it
// neither ends the process nor keeps it from stopping.
// Thread: main, which is the loop's.
#pragma once

#include "apps/process/loop_metrics.h"
#include "base/error.h"
#include "cli/flags/command_line.h"
#include "runtime/loop.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "telemetry/tracer.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apps {

/// A unit of a process that runs until it is stopped.
class Part {
 public:
  virtual ~Part() = default;

  /// Called once on every part, on the loop, before the first of them stops: a part that has something to report does
  /// so while all others still run.
  virtual void prepare_stop() {}

  /// Called once, on the loop; `done` runs on the loop when nothing of the part is at work any more.
  virtual void stop(runtime::Loop::Task done) = 0;
};

/// The reader of the log. kPerson: a terminal, and no flag requests log lines: errors, and warnings about how the
/// process was set up, are written as sentences; nothing else is.
enum class LogReader { kProgram, kPerson };

class Process {
 public:
  explicit Process(const cli::LogArgs& log, LogReader reader = LogReader::kProgram);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  runtime::Loop& loop() { return loop_; }

  const telemetry::Log& log() const { return log_; }

  /// The log for events on which the operator has to act: a person sees its warnings at any time.
  const telemetry::Log& operator_log() const { return operator_log_; }

  /// Called when everything has started: from then on a person sees errors only.
  void set_up_done() { *setting_up_ = false; }

  /// Calls `listener` when the first signal begins the stop. Before run().
  void on_interrupt(std::function<void()> listener) { on_interrupt_ = std::move(listener); }

  telemetry::Registry& metrics() { return metrics_; }

  /// Null: tracing is off. Lives as long as the process.
  telemetry::Tracer* tracer() { return tracer_.get(); }

  /// Called before other parts are added: tracing ends after them. `service`: the name of this process in a collector.
  /// kInvalid: names the flag.
  Outcome trace(const cli::TraceArgs& args, std::string service);

  /// Parts stop, and are destroyed, in the reverse order.
  template <typename T>
  T& add(std::unique_ptr<T> part) {
    T& added = *part;
    parts_.push_back(std::move(part));
    return added;
  }

  /// Stops one part now, and destroys it when it has stopped. Not from inside a call of it.
  void end(const Part& part);

  /// Prints the error as one line, after which only warnings and errors are logged, and stops everything; run() then
  /// returns kExitFailure.
  void fail(const Error& error);
  /// Stops everything; run() then returns `exit_code`.
  void stop(int exit_code);

  /// Runs until stopped. The exit code.
  int run();

 private:
  void stop_next();

  std::shared_ptr<std::atomic<bool>> failed_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> setting_up_ = std::make_shared<std::atomic<bool>>(true);
  telemetry::Log log_;
  telemetry::Log operator_log_;
  telemetry::Registry metrics_;
  std::unique_ptr<telemetry::Tracer> tracer_;
  LoopMetrics turns_;
  runtime::Loop loop_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::unique_ptr<Part>> ending_;
  std::function<void()> on_interrupt_;
  int exit_code_ = cli::kExitOk;
  bool stopping_ = false;
};

/// Writes to standard error. A reader that has gone is no failure.
void print_to_stderr(std::string_view text);

/// "spillway: WHAT" on standard error.
void print_error(const Error& error);

}  // namespace spillway::apps
