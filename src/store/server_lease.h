// All API servers of one store serve, and one of them does the work that must be done once: collects garbage, empties
// namespaces, counts budgets. The holder of the lease writes it again and again; a server that sees it unchanged for
// kHeldFor by its own clock takes it over, at once if it had held it itself. A holder that could not write it for
// kActsFor acts no more, and has stopped well before another server begins; it remains a candidate.
// Thread: loop. Bounds: one request at a time, which ends by itself. Source: client-go, leader election.
#pragma once

#include "base/alive.h"
#include "base/time.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::store {

class ServerLease {
 public:
  static constexpr Duration kHeldFor = seconds(25);
  static constexpr Duration kActsFor = seconds(20);  // etcd reports a lost leader after 7 s
  static constexpr Duration kCheckEvery = seconds(2);
  static constexpr std::string_view kKey = "/registry/spillway.dev/server";

  struct Ports {
    std::function<Instant()> now;
    std::function<void(Duration, std::move_only_function<void()>)> after;
  };

  struct Listener {
    /// Called each time this server begins to act.
    std::function<void()> on_taken;
    /// Called each time this server stops acting: another one acts, or may soon.
    std::function<void(const std::string& why)> on_lost;
    /// Called each time that another server becomes the active one.
    std::function<void(const std::string& holder)> on_waiting;
    /// The store does not answer, and nothing is held.
    std::function<void(const Error& error)> on_failure;
  };

  /// `holder`: the same for a server and the one that takes its place on its machine; letters, digits, "-", ".", ":".
  ServerLease(Store& store, std::string holder, Ports ports, Listener listener);
  ServerLease(const ServerLease&) = delete;
  ServerLease& operator=(const ServerLease&) = delete;

  void start();
  /// Gives the lease up, so that the next server need not wait. `done` runs when the store has answered; no listener is
  /// called any more.
  void give_back(std::function<void()> done);

  bool is_held() const { return held_; }

 private:
  void read();
  void on_seen(const std::optional<Entry>& lease);
  void write(Revision expected);
  void on_written(const Result<WriteResult>& result);
  void later();
  void lose(const std::string& why);
  void watch_own_time();

  Store& store_;
  std::string holder_;
  Ports ports_;
  Listener listener_;
  Alive alive_;
  std::uint64_t writes_ = 0;
  bool held_ = false;
  bool over_ = false;
  bool is_watched_ = false;  // a timer checks if the lease has expired
  Revision written_;         // the revision of our last write
  Instant asked_{};          // when the last renewal was sent
  Instant renewed_{};        // when the last successful renewal was sent
  Revision seen_;            // the revision of another server's last write
  Instant seen_at_{};
  std::string waits_for_;
};

}  // namespace spillway::store
