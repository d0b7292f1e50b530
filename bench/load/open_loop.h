// Requests at fixed times, whether the server keeps up or not: what is due, the connections that are idle, and what
// came of it all. Thread: one.
#pragma once

#include "base/time.h"

#include "load/connection.h"
#include "load/options.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace spillway::load {

/// Arrivals at fixed times.
class Arrivals {
 public:
  Arrivals(double rate, Instant start, Instant end) : rate_(rate), start_(start), end_(end) {}

  /// Time of the next request; nullopt: there are no more.
  std::optional<Instant> next() const;

  void take() { ++taken_; }

 private:
  double rate_;
  Instant start_;
  Instant end_;
  std::uint64_t taken_ = 0;
};

class OpenLoop {
 public:
  /// A request and the connection that is to carry it.
  struct Turn {
    Connection* connection = nullptr;
    Instant due{};
  };

  /// `rate`: requests a second. `backlog_max`: of those that are due, so many wait for a connection.
  OpenLoop(double rate, std::size_t backlog_max) : rate_(rate), backlog_max_(backlog_max) {}

  /// From now on, requests arrive; those before `measured` are not counted.
  void begin(Instant start, Instant measured, Instant end);

  bool has_begun() const { return arrivals_.has_value(); }

  /// Queues the requests that are due. Returns the time of the next one.
  std::optional<Instant> advance();

  void add_idle(Connection& connection) { idle_.push_back(&connection); }

  /// Removes the connection from the idle ones, if it is one of them.
  void lose(Connection& connection) { std::erase(idle_, &connection); }

  /// Takes an idle connection; there must be one.
  Connection& take_idle();
  std::vector<Connection*> take_all_idle();

  /// The request to send now; nullopt: none is due, or no connection is idle. Every turn ends with finish().
  std::optional<Turn> next();
  void finish(Instant due, bool fine, int status);

  /// Something is due or under way.
  bool waits() const { return !due_.empty() || busy_ != 0; }

  /// Requests that are still open count as unanswered.
  void end();

  const Tally& tally() const { return tally_; }

 private:
  double rate_;
  std::size_t backlog_max_;
  std::vector<Connection*> idle_;
  std::deque<Instant> due_;
  std::optional<Arrivals> arrivals_;
  Instant measured_{};
  Instant end_{};
  std::size_t busy_ = 0;
  Tally tally_;
};

}  // namespace spillway::load
