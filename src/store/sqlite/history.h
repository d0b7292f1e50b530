// The changes of the past, from the undo log: what watches replay.
// Thread: the reader's. Source: schema.h.
#pragma once

#include "store/sqlite/database.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::store::sqlite {

class History {
 public:
  using Sink = std::function<void(std::vector<Change>)>;

  /// An object without a connection: may only be assigned to.
  History() = default;

  /// The object that `connection` refers to must outlive the history; the history itself may be moved.
  static Result<History> open(Connection& connection);

  /// Hands the changes of `prefix` with after < revision ≤ upto to `sink`, in revision order, in pieces of about 1 MiB,
  /// from one state of the file. kExpired: `after` is compacted. Memory: two numbers per change, one piece. A key
  /// without history has its last change, if it is among them and was not overwritten, and deletions.
  Outcome replay(std::string_view prefix, Revision after, Revision upto, const Sink& sink);

  /// Answers Store::oldest_within().
  Result<Revision> oldest_within(std::uint64_t changes_max);

 private:
  /// The place of the value that a change wrote: the previous value of the key's next change, or nullopt: in `current`.
  struct Step {
    Revision revision;
    std::optional<Revision> next;
    std::string key{};  // the key of a change without a row in the log
  };

  Outcome replay_in_transaction(std::string_view prefix, Revision after, Revision upto, const Sink& sink);
  Result<std::vector<Step>> steps(std::string_view prefix, Revision after, Revision upto);
  Outcome add_unlogged(std::string_view prefix, Revision after, Revision upto, std::vector<Step>& steps);
  Outcome add_unlogged_below(std::string_view prefix, Revision after, Revision upto, std::vector<Step>& steps);
  Result<std::optional<Change>> change_of(const Step& step);
  Result<std::optional<Change>> unlogged_change(const Step& step);
  Result<Value> value_after(const Step& step, const std::string& key);

  Prefixes without_history_;
  Statement begin_, end_, compacted_, keys_, row_, replaced_, current_, written_, oldest_;
};

}  // namespace spillway::store::sqlite
