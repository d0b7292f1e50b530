// The API servers of one store, each with an entry that it writes periodically: a server that is incompatible with the
// others, because it signs with other keys, is refused before it serves. An entry that does not change for kGoneAfter,
// by the clock of its reader, belongs to a server that has ended; its keys bind no other server. An entry also contains
// the revision at which its server joined: of two that run under one name, as of a copied data directory, the one that
// joined later yields within two beats. Thread: loop. Bounds: one request at a time, which ends by itself. Source: spec
// "etcd as the store", 12.
#pragma once

#include "base/alive.h"
#include "base/time.h"
#include "store/store.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::store {

/// The prefix of entries by which commands keep servers out for a while.
inline constexpr std::string_view kCommandName = "store-command";

class ServerRoster {
 public:
  static constexpr Duration kBeatEvery = seconds(5);
  static constexpr Duration kGoneAfter = seconds(16);
  static constexpr Duration kCheckEvery = seconds(1);  // while this server waits for others to end
  static constexpr std::string_view kPrefix = "/registry/spillway.dev/roster/";

  struct Ports {
    std::function<Instant()> now;
    std::function<void(Duration, std::move_only_function<void()>)> after;
    /// Called after join(), at most once, when a server of the same name, which joined before, runs. No entry is kept
    /// any more. May be empty.
    std::function<void()> yield = {};
  };

  /// `name`: letters, digits, "-", ".", ":". `keys`: the text that all servers must have in common, without line
  /// breaks; it contains no secret.
  ServerRoster(Store& store, std::string name, std::string keys, Ports ports);
  ServerRoster(const ServerRoster&) = delete;
  ServerRoster& operator=(const ServerRoster&) = delete;

  /// `done`, once: it may serve, and its entry is kept. kConflict: a server that runs has other keys, which are the
  /// message; `at` is its name. An error of the store. Takes kGoneAfter at most beyond what the store needs.
  void join(std::move_only_function<void(Outcome)> done);
  /// Takes the entry back, after the write of it that is under way; `done` runs when the store has answered.
  void release(std::function<void()> done);

 private:
  struct Other {
    Revision revision;
    Instant since;
  };

  void check_others();
  void on_entries(const std::vector<Entry>& entries);
  void write();
  void on_conflict(const std::optional<Entry>& there);
  void fail(Error error);
  void remove_entry(std::function<void()> done);

  Store& store_;
  std::string key_;
  std::string keys_;
  Ports ports_;
  Alive alive_;
  std::move_only_function<void(Outcome)> done_;
  std::map<std::string, Other> others_;  // servers with other keys, by key
  std::uint64_t beats_ = 0;
  Revision joined_;  // revision of the first entry that was its own; 0: none yet
  Revision written_;
  bool writing_ = false;  // a write of the entry is under way
  bool over_ = false;
  std::function<void()> released_;  // called by a release() that waited for the write
};

}  // namespace spillway::store
