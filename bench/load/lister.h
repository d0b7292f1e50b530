// Lists at fixed times, whether the server keeps up or not: each asks for a whole collection and reads all of it.
// Thread: one.
#pragma once

#include "load/connection.h"
#include "load/dialer.h"
#include "load/options.h"
#include "load/renewer.h"

#include <deque>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::load {

class Lister final : public ConnectionUser {
 public:
  Lister(const Options& options, Dialer& dialer) : options_(options), dialer_(dialer) {}

  Outcome open();
  void begin(Instant start, Instant measured, Instant end);
  std::optional<Instant> advance();

  bool waits() const { return !due_.empty() || busy_ != 0; }

  void end();

  const Tally& tally() const { return tally_; }

  std::uint64_t bytes() const { return bytes_; }

  void on_piece(Connection& connection, std::string_view piece) override;
  void on_answer(Connection& connection) override;
  void on_idle(Connection& connection) override;
  void on_lost(Connection& connection, std::string_view why) override;

 private:
  void send_next();
  void finish(std::size_t index, int status);

  const Options& options_;
  Dialer& dialer_;
  std::vector<Connection*> connections_;
  std::vector<std::optional<Instant>> open_;  // when the list of a connection was due
  std::vector<Connection*> idle_;
  std::deque<Instant> due_;
  std::optional<Arrivals> arrivals_;
  Instant measured_{};
  Instant end_{};
  std::size_t opened_ = 0;
  std::size_t busy_ = 0;
  std::uint64_t bytes_ = 0;
  Tally tally_;
};

}  // namespace spillway::load
