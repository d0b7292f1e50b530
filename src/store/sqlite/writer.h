// The thread that writes: all waiting requests become one transaction. It also deletes history, a little with each
// transaction and the rest when no request waits.
// Thread: refusal(), submit() and stop() the loop's; `deliver` is called on the writer's own. Invariants: a request
// taken is delivered, in the order of submit() unless space is short; changes delivered as committed are on the disk.
#pragma once

#include "base/error.h"
#include "store/sqlite/options.h"
#include "store/store.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spillway::store::sqlite {

struct WriteRequest {
  Write write;
  Completion<WriteResult> done;
  Result<WriteResult> answer{};
};

struct CompactRequest {
  Revision revision;
  Completion<Revision> done;
  Result<Revision> answer{};
};

using Request = std::variant<WriteRequest, CompactRequest>;

/// The result of a transaction. Its receiver notifies the watchers first, then completes the requests.
struct Committed {
  std::vector<Change> changes;
  std::vector<Request> requests;
  Revision head;
  Revision compacted;
  std::optional<std::string> refusing;  // as of Store::refusing()
};

class Writer {
 public:
  using Deliver = std::function<void(Committed)>;

  /// Opens `path` (errors as for open_for_writing()) and starts the thread.
  static Result<std::unique_ptr<Writer>> start(const std::string& path, SqliteOptions options, Deliver deliver);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// The revisions that were found in the file.
  Revision first_head() const;
  Revision first_compacted() const;

  /// kTooManyRequests, kServiceUnavailable (stopped), or nullopt: the next submit() is taken.
  std::optional<Error> refusal(std::size_t bytes) const;
  void submit(Request request);
  /// Commits queued writes, moves the log into the file, ends the thread.
  void stop();

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::store::sqlite
