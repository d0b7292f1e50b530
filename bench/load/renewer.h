// Leases as kubelets keep them: each renewal is a PUT of what the last answer said, in the order in which Go writes it,
// with another renewTime and the resourceVersion that must still hold. Renewals are due at fixed times, whether the
// server keeps up or not. Thread: one.
#pragma once

#include "load/connection.h"
#include "load/dialer.h"
#include "load/open_loop.h"
#include "load/options.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::load {

/// The value of the first JSON member `name` of type string in `text`, from `from` on; empty if there is none. Knows no
/// escapes: for uids, versions and times.
std::string_view string_member(std::string_view text, std::string_view name, std::size_t from = 0);

class Renewer final : public ConnectionUser {
 public:
  Renewer(const Options& options, Dialer& dialer);

  Outcome open();
  /// Creates missing leases.
  Outcome fill();
  /// Learns uid and version of every lease.
  Outcome learn();

  /// See OpenLoop.
  void begin(Instant start, Instant measured, Instant end);
  /// Sends the renewals that are due. Returns the time of the next one.
  std::optional<Instant> advance();

  bool waits() const { return renewals_.waits(); }

  void end() { renewals_.end(); }

  const Tally& tally() const { return renewals_.tally(); }

  void on_piece(Connection& connection, std::string_view piece) override;
  void on_answer(Connection& connection) override;
  void on_idle(Connection& connection) override;
  void on_lost(Connection& connection, std::string_view why) override;

 private:
  enum class Work { kNone, kFill, kLearn, kRenew };

  struct Lease {
    std::string uid;
    std::string created;
    std::string version;
    std::string managed;  // the time in managedFields
    bool busy = false;
  };

  struct Slot {
    std::size_t lease = 0;
    Instant due{};
    std::string answer;
    bool renews = false;
  };

  std::string collection() const;
  std::string name(std::size_t lease) const;
  std::string body(std::size_t lease, WallTime renewed) const;
  void send_due();
  std::size_t next_lease();
  std::string json_body(std::size_t lease, WallTime renewed) const;
  /// Keeps the parts of the answer that the next renewal has to repeat.
  void record(Lease& lease, std::string_view answer) const;
  void send_page(Connection& connection);
  void learn_page(const std::string& text);
  void finish(Slot& slot, int status);

  const Options& options_;
  Dialer& dialer_;
  std::vector<Connection*> connections_;
  std::vector<Slot> slots_;
  std::vector<Lease> leases_;
  OpenLoop renewals_;
  Duration wall_behind_{};  // wall time of an instant: instant + this
  Work work_ = Work::kNone;
  std::size_t opened_ = 0;
  std::size_t filled_ = 0;
  std::size_t next_lease_ = 0;
  std::size_t learned_ = 0;
  std::string continue_;
  bool last_page_ = false;
  std::string problem_;
};

}  // namespace spillway::load
