// Decides which requests are served now, which wait, and which are refused: requests hold seats of their priority level
// while they are in flight; if none is left they wait in the queue of their flow. Among the flows of a level whose work
// waits, and among such levels by their shares, start-time fair queueing: the flow that has had the least work done
// begins next.
// Thread: loop. No I/O, no clock: time is an argument of every call. While nothing waits nothing is allocated.
// The configuration may change. Schemas and levels have places, which a change does not move: a level that remains
// keeps its requests and has the new limits, a level or schema that is gone keeps its place until its last request has
// ended. Bounds: waiting requests of a flow and of a level (policy/flow/schema.h), flows of a level (kFlowsMax; later
// ones share kSharedFlows queues), the time a request waits, the seats of exempt requests of others than administrators
// (kExemptPart).
// Invariants: policy/flow/seat_book.h; the first request in line that needs common seats is not overtaken by others
// that need them; a waiting request is returned once, by next(), or leaves.
// Source: spec "API server at scale", 6.2-6.5.
#pragma once

#include "base/time.h"
#include "policy/flow/retry_advice.h"
#include "policy/flow/schema.h"
#include "policy/flow/seat_book.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class FlowGate {
 public:
  static constexpr std::size_t kFlowsMax = 1'024;
  static constexpr std::size_t kSharedFlows = 64;
  /// Requests that are exempt by another schema than "exempt" hold at most this part of all seats at a time: a client
  /// that may write schemas would otherwise have no limit.
  static constexpr int kExemptPart = 4;

  enum class Entry : std::uint8_t { kRuns, kWaits, kRefused };
  enum class Refusal : std::uint8_t { kQueueFull, kConcurrencyLimit, kTimeOut };

  struct Demand {
    std::size_t schema = 0;      // the schema's place
    std::string_view flow = {};  // within the schema
    int seats = 1;
    bool lingers = false;   // the seats are held for flow::kLingers longer
    Duration wait{};        // longest wait in the queue
    std::int64_t work = 1;  // estimated work, in microseconds of the loop; above 0
  };

  struct Flow;

  /// One request at flow control. Its address must not change between enter() and leave().
  struct Ticket {
    enum class State : std::uint8_t { kOutside, kWaiting, kRunning };

    State state = State::kOutside;
    bool lingers = false;
    int seats = 0;
    std::size_t schema = 0;
    std::uint64_t id = 0;  // the request's
    std::uint64_t order = 0;
    Instant since{};  // when the request began to wait, or to run
    Instant deadline{};
    std::int64_t work = 0;
    Flow* flow = nullptr;  // the flow that is charged for it; valid in the epoch of its level
    std::uint64_t epoch = 0;
  };

  /// Requests of one schema from one client.
  struct Flow {
    std::size_t schema = 0;
    std::deque<Ticket*> waiting;
    std::int64_t start = 0;   // virtual, of the first waiting request; the key among the flows that are ready
    std::int64_t finish = 0;  // virtual finish time of the requests that have begun
    std::size_t running = 0;  // running requests that had to wait first
  };

  struct Turn {
    const Ticket* ticket = nullptr;
    Duration waited{};
    std::optional<Refusal> refusal;  // nullopt: the request runs now
  };

  struct Counts {
    std::size_t waiting = 0;
    std::size_t running = 0;
    int seats = 0;
  };

  struct LevelTotals {
    std::uint64_t dispatched = 0;
    std::uint64_t rejected = 0;
    std::uint64_t timed_out = 0;
    std::uint64_t cancelled = 0;
  };

  /// `seats`: of all levels together, above 0.
  FlowGate(flow::Configuration configuration, int seats);
  FlowGate(const FlowGate&) = delete;
  FlowGate& operator=(const FlowGate&) = delete;

  /// Schemas (without rules) and levels by place. Those without a name are free places.
  const flow::Configuration& configuration() const { return configuration_; }

  /// Takes another configuration into use. Returns the place of each of its schemas, in their order.
  std::vector<std::size_t> reconfigure(const flow::Configuration& next);

  /// Enters a request. `ticket` belongs to the caller, who has set its id. kWaits: next() returns it later.
  Entry enter(Ticket& ticket, const Demand& demand, Instant now);

  /// Ends a request that was answered or whose client has disconnected; also for a ticket that is not in the gate.
  /// `work`: time used, in microseconds of the loop.
  void exit(Ticket& ticket, std::int64_t work, Instant now);

  /// A request that has waited and may run now, or has waited too long; nullopt: none for now. To be called until then
  /// when next_turn() is due.
  std::optional<Turn> next(Instant now);
  /// The time at which next() may return a request; nullopt: not before another call.
  std::optional<Instant> next_turn(Instant now) const;

  /// The seconds after which a client that this schema's level refuses may retry.
  int retry_after(std::size_t schema, Instant now);

  std::size_t level_of(std::size_t schema) const { return level_of_[schema]; }

  const Counts& counts(std::size_t schema) const { return counts_[schema]; }

  const LevelTotals& totals(std::size_t level) const { return levels_[level].totals; }

  const flow::SeatBook& seats() const { return book_; }

  std::size_t waiting() const { return waiting_; }

  std::size_t waiting(std::size_t level) const { return levels_[level].waiting; }

  /// Flows of a level, by schema and name, that wait or have had work done.
  void visit_flows(std::size_t level, const std::function<void(std::string_view name, const Flow&)>& visit) const;

 private:
  using FlowKey = std::pair<std::size_t, std::string>;

  struct KeyOrder {
    using is_transparent = void;

    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      if (a.first != b.first) return a.first < b.first;
      return std::string_view(a.second) < std::string_view(b.second);
    }
  };

  struct Level {
    std::map<FlowKey, Flow, KeyOrder> flows;
    std::set<std::tuple<std::int64_t, std::uint64_t, Flow*>> ready;  // by start, then arrival: flows that wait
    std::size_t waiting = 0;
    std::int64_t now = 0;     // virtual time of the level's flows
    std::int64_t finish = 0;  // virtual finish time among the levels
    std::int64_t swept = -1;  // `now` of the last search for flows without credit
    std::uint64_t epoch = 0;  // all flows of the level belong to this epoch
    flow::RetryAdvice advice;
    LevelTotals totals;
  };

  struct Lingering {
    Instant until;
    std::size_t schema = 0;
    int seats = 0;
  };

  bool is_exempt(std::size_t level) const { return configuration_.levels[level].limit == flow::Level::Limit::kExempt; }

  bool may_start(std::size_t level, int seats) const;
  void begin(Ticket& ticket, Instant now);
  void catch_up(Level& level) const;
  void charge_level(Level& level, std::size_t index, std::int64_t work);
  void wait(Level& level, Flow& flow, Ticket& ticket);
  void make_ready(Level& level, Flow& flow);
  void unready(Level& level, Flow& flow);
  void remove(Level& level, Ticket& ticket);
  void calm(Level& level);
  void correct_charge(Level& level, Ticket& ticket, std::int64_t work);
  void give_back(std::size_t schema, int seats);
  void give_back_lingering(Instant now);
  bool may_be_exempt(std::size_t schema, int seats) const;
  /// True if no request waits, runs or lingers.
  bool is_idle(std::size_t schema) const;
  void free_places(const flow::Configuration& next);
  void place_levels(const flow::Configuration& next);
  std::size_t place_schema(const flow::Schema& schema);
  Flow& flow_of(Level& level, std::size_t schema, std::string_view name);
  static void sweep(Level& level);
  std::optional<Turn> take_late(Instant now);
  std::optional<std::size_t> pick();
  Turn start(std::size_t index, Instant now);

  flow::Configuration configuration_;
  int all_seats_;
  flow::SeatBook book_;
  std::vector<std::size_t> level_of_;  // by schema
  std::vector<Counts> counts_;         // by schema
  std::vector<Level> levels_;
  std::set<std::tuple<Instant, std::uint64_t, Ticket*>> deadlines_;
  std::deque<Lingering> lingering_;  // by time
  int exempt_seats_ = 0;             // held by exempt requests of other schemas than "exempt"
  std::size_t waiting_ = 0;
  std::uint64_t order_ = 0;
  std::int64_t now_ = 0;     // virtual, of the levels
  bool is_short_ = false;    // a request waits for common seats: no other may take them before it
  bool is_changed_ = false;  // since next() found no request
};

}  // namespace spillway::apiserver
