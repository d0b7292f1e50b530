// Requests on their way from the loop to the writer: bounded in number and bytes, taken in groups.
// Thread: any.
#pragma once

#include "store/sqlite/options.h"
#include "store/sqlite/writer.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace spillway::store::sqlite {

class WriteQueue {
 public:
  explicit WriteQueue(const SqliteOptions& options) : options_(options) {}

  std::optional<Error> refusal(std::size_t bytes) const;
  void push(Request request);
  void stop();

  /// Waits for requests, but no longer than `patience` (nullopt: for ever; zero: not at all). nullopt: stopped, and
  /// nothing waits.
  std::optional<std::vector<Request>> take(std::optional<Duration> patience);

 private:
  const SqliteOptions& options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Request> requests_;
  std::size_t bytes_ = 0;
  bool stopping_ = false;
};

}  // namespace spillway::store::sqlite
