// Watches of leases, a connection each: most of one lease, a few of all. Thread: one.
#pragma once

#include "load/connection.h"
#include "load/dialer.h"
#include "load/options.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::load {

class Watchers final : public ConnectionUser {
 public:
  Watchers(const Options& options, Dialer& dialer) : options_(options), dialer_(dialer) {}

  /// Every watch has been answered with 200.
  Outcome open();
  /// Events of renewals that were due in this time count.
  void begin(Instant measured, Instant end);
  void fill(Report& report) const;

  void on_piece(Connection& connection, std::string_view piece) override;
  void on_answer(Connection& connection) override;
  void on_idle(Connection& connection) override;
  void on_lost(Connection& connection, std::string_view why) override;

 private:
  void on_line(std::string_view line);

  const Options& options_;
  Dialer& dialer_;
  std::vector<Connection*> connections_;
  std::vector<std::string> rest_;  // an incomplete line of each watch
  Duration wall_behind_{};
  Instant measured_{};
  Instant end_{};
  std::size_t opened_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t events_ = 0;
  Histogram age_;
};

}  // namespace spillway::load
