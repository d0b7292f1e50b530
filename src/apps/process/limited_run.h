// This very program as a child with limits on its time, its memory and the length of its answer, watched by a loop. It
// writes no files, dies with this process, and has a low priority. Thread: loop (the main thread: the child ends with
// it). Source: setrlimit(2), prctl(2), memfd_create(2).
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "runtime/loop.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

/// A text that a child opens as a file, without a place on a disk.
class HandedText {
 public:
  static Result<HandedText> make(const std::string& text);

  /// Called before the child has it.
  Outcome append(std::string_view text) const;

  /// Called in the child.
  std::string path() const;

  int fd() const { return fd_.get(); }

 private:
  explicit HandedText(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

class LimitedRun {
 public:
  struct Limits {
    Duration time_max = minutes(2);
    Bytes memory_max = gibibytes(2);  // address space
    std::size_t output_bytes_max = std::size_t{8} * 1024 * 1024;
  };

  struct Ended {
    enum class How { kByItself, kKilled, kOutOfTime, kTooLong };

    How how = How::kByItself;
    int exit_code = 0;  // kByItself; kKilled: 128 and the signal
    std::string output;
    std::string complaint;  // the beginning of the child's standard error
  };

  /// `arguments` of spillway; `texts` may be named in them. `done` is called once, from the loop, and may destroy this;
  /// never if this is destroyed before, which kills the child.
  static Result<std::unique_ptr<LimitedRun>> start(runtime::Loop& loop, const std::vector<std::string>& arguments,
                                                   std::vector<HandedText> texts, Limits limits,
                                                   std::function<void(Ended)> done);
  ~LimitedRun();
  LimitedRun(const LimitedRun&) = delete;
  LimitedRun& operator=(const LimitedRun&) = delete;

 private:
  LimitedRun(runtime::Loop& loop, Limits limits, std::function<void(Ended)> done);

  void on_output();
  void on_complaint();
  void on_end();
  void kill(Ended::How how);
  void forget();

  runtime::Loop& loop_;
  Limits limits_;
  std::function<void(Ended)> done_;
  UniqueFd process_;
  UniqueFd output_;
  UniqueFd complaint_;
  std::optional<runtime::Loop::TimerId> deadline_;
  Ended ended_;
};

}  // namespace spillway::apps
