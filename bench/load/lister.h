// Lists at fixed times, whether the server keeps up or not: each requests a whole collection and reads all of it.
// Thread: one.
#pragma once

#include "load/connection.h"
#include "load/dialer.h"
#include "load/open_loop.h"
#include "load/options.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::load {

class Lister final : public ConnectionUser {
 public:
  Lister(const Options& options, Dialer& dialer);

  Outcome open();

  /// See OpenLoop.
  void begin(Instant start, Instant measured, Instant end) { lists_.begin(start, measured, end); }

  /// Sends the requests that are due. Returns the time of the next one.
  std::optional<Instant> advance();

  bool waits() const { return lists_.waits(); }

  void end() { lists_.end(); }

  const Tally& tally() const { return lists_.tally(); }

  std::uint64_t bytes() const { return bytes_; }

  void on_piece(Connection& connection, std::string_view piece) override;
  void on_answer(Connection& connection) override;
  void on_idle(Connection& connection) override;
  void on_lost(Connection& connection, std::string_view why) override;

 private:
  void send_due();
  void finish(std::size_t index, int status);

  const Options& options_;
  Dialer& dialer_;
  std::vector<Connection*> connections_;
  std::vector<std::optional<Instant>> open_;  // when the list of a connection was due
  OpenLoop lists_;
  std::size_t opened_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace spillway::load
