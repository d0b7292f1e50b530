// The thread that reads: ranges and the past, each from its own transaction, one after the other.
// Thread: submit() and stop() the loop's; jobs run on the reader's own. Invariant: every job taken runs, also those
// that wait at stop().
#pragma once

#include "base/error.h"
#include "store/sqlite/history.h"
#include "store/sqlite/snapshot.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace spillway::store::sqlite {

class Reader {
 public:
  using Job = std::move_only_function<void(Snapshot&, History&)>;

  /// Opens its own connection to `path` and starts the thread.
  static Result<std::unique_ptr<Reader>> start(const std::string& path, std::size_t jobs_max);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// kTooManyRequests, kServiceUnavailable (stopped), or nullopt: the next submit() is taken.
  std::optional<Error> refusal() const;
  void submit(Job job);
  /// Finishes queued reads, closes the connection, ends the thread.
  void stop();

 private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::store::sqlite
