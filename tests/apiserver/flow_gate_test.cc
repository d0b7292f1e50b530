// Goal: who is let through when. Method: small worlds of levels and flows, all of them; long runs of random steps
// against the bounds; single cases for what clients do.
#include "apiserver/flow/flow_gate.h"

#include "apiserver/flow/flow_tables.h"
#include "base/rng.h"
#include "policy/flow/built_in.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apiserver {
namespace {

using Entry = FlowGate::Entry;
using Refusal = FlowGate::Refusal;

constexpr std::int64_t kGuess = 20;

flow::Level queueing(std::string name, int shares, int lendable_percent = 0, int length = 50) {
  return {.name = std::move(name),
          .limit = flow::Level::Limit::kQueue,
          .shares = shares,
          .lendable_percent = lendable_percent,
          .queues = 4,
          .queue_length = length};
}

/// A schema of the same name for each level; then the mandatory ones.
flow::Configuration of_levels(std::vector<flow::Level> levels) {
  flow::Configuration out;
  int precedence = 10;
  for (const flow::Level& level : levels) {
    out.schemas.push_back({.name = level.name, .precedence = ++precedence, .level = level.name, .rules = {}});
  }
  out.levels = std::move(levels);
  out.levels.push_back({.name = "exempt", .limit = flow::Level::Limit::kExempt, .shares = 0});
  out.levels.push_back({.name = "catch-all", .limit = flow::Level::Limit::kReject, .shares = 0});
  out.schemas.push_back({.name = "exempt", .precedence = 9'999, .level = "exempt", .rules = {}});
  out.schemas.push_back({.name = "catch-all", .precedence = 10'000, .level = "catch-all", .rules = {}});
  EXPECT_TRUE(flow::arrange(out));
  return out;
}

/// Requests at a gate, in the order of their arrival.
class Gate {
 public:
  Gate(flow::Configuration configuration, int seats) : gate(std::move(configuration), seats) {}

  struct Request {
    FlowGate::Ticket ticket;
    std::string flow;
    std::int64_t work = 0;
    bool notified = false;
    std::optional<Refusal> refusal;
  };

  Entry enter(std::size_t schema, const std::string& flow, int seats = 1, std::int64_t work = kGuess,
              std::int64_t guess = kGuess, bool lingers = false) {
    Request& made = requests.emplace_back();
    made.flow = flow;
    made.work = work;
    made.ticket.id = requests.size() - 1;
    return gate.enter(made.ticket,
                      {.schema = schema, .flow = flow, .seats = seats, .lingers = lingers, .wait = wait, .work = guess},
                      now);
  }

  void exit(std::size_t request) { gate.exit(requests[request].ticket, requests[request].work, now); }

  /// The requests that may run now.
  std::vector<std::size_t> turns() {
    std::vector<std::size_t> out;
    while (const auto turn = gate.next(now)) {
      Request& of = requests[turn->ticket->id];
      EXPECT_FALSE(std::exchange(of.notified, true)) << "told twice";
      of.refusal = turn->refusal;
      out.push_back(turn->ticket->id);
    }
    return out;
  }

  FlowGate gate;
  std::deque<Request> requests;
  Duration wait = hours(1);
  Instant now{seconds(1)};
};

TEST(FlowGate, WhoFindsSeatsRunsAndTheOthersWaitInTheirFlows) {
  Gate gate(of_levels({queueing("a", 1)}), 2);
  EXPECT_EQ(gate.enter(0, "x"), Entry::kRuns);
  EXPECT_EQ(gate.enter(0, "x"), Entry::kRuns);
  EXPECT_EQ(gate.enter(0, "x"), Entry::kWaits);
  EXPECT_EQ(gate.enter(0, "x"), Entry::kWaits);
  EXPECT_EQ(gate.enter(0, "y"), Entry::kWaits);
  EXPECT_EQ(gate.gate.waiting(), 3U);
  EXPECT_TRUE(gate.turns().empty());
  gate.exit(0);
  EXPECT_EQ(gate.gate.next_turn(gate.now), gate.now);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{2});
  gate.exit(1);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{4}) << "y has had nothing yet";
  gate.exit(2);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{3});
  EXPECT_EQ(gate.gate.next_turn(gate.now), std::nullopt);
}

TEST(FlowGate, AFlowAndALevelHoldSoManyThatWait) {
  Gate gate(of_levels({queueing("a", 1, 0, 3)}), 1);
  gate.enter(0, "x");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(gate.enter(0, "x"), Entry::kWaits);
  EXPECT_EQ(gate.enter(0, "x"), Entry::kRefused);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(gate.enter(0, "y" + std::to_string(i)), Entry::kWaits);
  EXPECT_EQ(gate.enter(0, "z"), Entry::kRefused) << "four queues of three";
  EXPECT_EQ(gate.gate.totals(0).rejected, 2U);
}

TEST(FlowGate, ALevelThatRejectsHasNoQueueAndAnExemptOneHasNoLimit) {
  flow::Configuration levels = of_levels({queueing("a", 1)});
  levels.levels.back().shares = 1;
  Gate gate(levels, 2);
  const std::size_t exempt = 1;
  const std::size_t catch_all = 2;
  EXPECT_EQ(gate.enter(catch_all, "x"), Entry::kRuns);
  EXPECT_EQ(gate.enter(catch_all, "y"), Entry::kRefused);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(gate.enter(exempt, ""), Entry::kRuns);
  EXPECT_EQ(gate.gate.counts(exempt).running, 100U);
  gate.exit(0);
  EXPECT_EQ(gate.enter(catch_all, "y"), Entry::kRuns);
}

TEST(FlowGate, WaitingEndsAndIsReported) {
  Gate gate(of_levels({queueing("a", 1)}), 1);
  gate.enter(0, "x");
  gate.wait = seconds(15);
  gate.enter(0, "x");
  gate.wait = seconds(5);
  gate.enter(0, "y");
  EXPECT_EQ(gate.gate.next_turn(gate.now), gate.now + seconds(5));
  gate.now += seconds(5);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{2});
  EXPECT_EQ(gate.requests[2].refusal, Refusal::kTimeOut);
  gate.now += seconds(9);
  EXPECT_TRUE(gate.turns().empty());
  gate.now += seconds(1);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{1});
  EXPECT_EQ(gate.gate.totals(0).timed_out, 2U);
}

TEST(FlowGate, ADisconnectedClientFreesItsPlace) {
  Gate gate(of_levels({queueing("a", 1, 0, 2)}), 1);
  gate.enter(0, "x");
  gate.enter(0, "x");
  gate.enter(0, "x");
  EXPECT_EQ(gate.enter(0, "x"), Entry::kRefused);
  gate.exit(1);
  EXPECT_EQ(gate.enter(0, "x"), Entry::kWaits);
  gate.exit(0);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{2}) << "not the one that has gone";
}

TEST(FlowGate, SeatsOfAWriteThatManyWatchAreHeldALittleLonger) {
  Gate gate(of_levels({queueing("a", 1)}), 14);  // two seats are within 15 %
  gate.enter(0, "x", 2, kGuess, kGuess, true);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(gate.enter(0, "x"), Entry::kRuns);
  EXPECT_EQ(gate.enter(0, "y"), Entry::kWaits);
  gate.exit(0);
  EXPECT_TRUE(gate.turns().empty());
  EXPECT_EQ(gate.gate.next_turn(gate.now), gate.now + milliseconds(5));
  gate.now += milliseconds(5);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{13});
}

TEST(FlowGate, IdleSeatsAreLentAtOnceAndReturnedFirst) {
  Gate gate(of_levels({queueing("a", 1, 50), queueing("b", 1, 50)}), 4);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(gate.enter(0, "x"), Entry::kRuns) << "its two, and the one that b may lend";
  EXPECT_EQ(gate.enter(0, "x"), Entry::kWaits);
  EXPECT_EQ(gate.enter(1, "y"), Entry::kRuns) << "what is not lent is there at once";
  EXPECT_EQ(gate.enter(1, "y"), Entry::kWaits);
  gate.exit(0);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{3});
  gate.exit(1);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{5}) << "a has had its turn";
}

TEST(FlowGate, SmallRequestsOfOthersDoNotKeepALargeOneWaiting) {
  Gate gate(of_levels({queueing("large", 1, 100), queueing("small", 1, 100)}), 40);
  for (int i = 0; i < 40; ++i) gate.enter(1, "x");
  EXPECT_EQ(gate.enter(0, "y", 3), Entry::kWaits);
  const std::size_t large = gate.requests.size() - 1;
  bool ran = false;
  for (std::size_t next = 0; next < 10 && !ran; ++next) {
    gate.enter(1, "x");
    gate.exit(next);
    const auto turns = gate.turns();
    ran = std::ranges::find(turns, large) != turns.end();
  }
  EXPECT_TRUE(ran);
}

/// All worlds of three flows of one level that always have work: what each has had done over any window is its share,
/// but for the requests at the edges of the window.
TEST(FlowGate, FlowsThatWaitGetEqualWork) {
  const std::array<std::int64_t, 4> works{1, 7, 20, 90};
  int worlds = 0;
  for (int number = 0; number < 4 * 4 * 4 * 3 * 2; ++number, ++worlds) {
    const std::array<std::int64_t, 3> of{works[static_cast<std::size_t>(number % 4)],
                                         works[static_cast<std::size_t>(number / 4 % 4)],
                                         works[static_cast<std::size_t>(number / 16 % 4)]};
    const int seats = 1 + number / 64 % 3;
    const bool guessed = number / 192 == 1;  // the gate learns the work when it is done
    Gate gate(of_levels({queueing("a", 1)}), seats);
    const auto enter = [&](std::size_t flow) {
      return gate.enter(0, std::string(1, static_cast<char>('x' + flow)), 1, of[flow], guessed ? kGuess : of[flow]);
    };
    for (int i = 0; i < seats; ++i) gate.enter(0, "first");
    for (int i = 0; i < 2 * seats; ++i) {
      for (std::size_t flow = 0; flow < 3; ++flow) EXPECT_EQ(enter(flow), Entry::kWaits);
    }
    std::deque<std::size_t> running;
    for (int i = 0; i < seats; ++i) running.push_back(static_cast<std::size_t>(i));
    std::vector<std::array<std::int64_t, 3>> done{{0, 0, 0}};
    for (int step = 0; step < 120; ++step) {
      gate.exit(running.front());
      running.pop_front();
      for (const std::size_t request : gate.turns()) {
        const auto flow = static_cast<std::size_t>(gate.requests[request].flow.front() - 'x');
        running.push_back(request);
        done.push_back(done.back());
        done.back()[flow] += of[flow];
        enter(flow);
      }
    }
    ASSERT_GT(done.size(), 100U);
    const std::int64_t edge =
        *std::ranges::max_element(of) + (guessed ? seats * std::max(kGuess, *std::ranges::max_element(of)) : 0);
    for (std::size_t from = 0; from < done.size(); from += 7) {
      for (std::size_t to = from; to < done.size(); to += 5) {
        std::int64_t all = 0;
        for (std::size_t flow = 0; flow < 3; ++flow) all += done[to][flow] - done[from][flow];
        for (std::size_t flow = 0; flow < 3; ++flow) {
          EXPECT_GE(3 * (done[to][flow] - done[from][flow]), all - 3 * 2 * edge) << number << " " << from << " " << to;
        }
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(worlds, 384);
}

/// Levels without seats of their own share the lent ones by their shares.
TEST(FlowGate, LevelsThatWaitShareByTheirShares) {
  for (const int shares : {1, 2, 5}) {
    Gate gate(of_levels({queueing("a", 1, 100), queueing("b", shares, 100)}), 1 + shares);
    std::array<int, 2> begun{};
    std::deque<std::size_t> running;
    while (gate.enter(0, "x") == Entry::kRuns) running.push_back(gate.requests.size() - 1);
    gate.enter(1, "x");
    for (int i = 0; i < 20; ++i) {
      gate.enter(0, "x");
      gate.enter(1, "x");
    }
    for (int step = 0; step < 600; ++step) {
      gate.exit(running.front());
      running.pop_front();
      for (const std::size_t request : gate.turns()) {
        const std::size_t level = gate.requests[request].ticket.schema;
        ++begun[level];
        running.push_back(request);
        gate.enter(level, "x");
      }
    }
    EXPECT_NEAR(static_cast<double>(begun[1]) / begun[0], shares, 0.1 * shares);
  }
}

TEST(FlowGate, AClientWithOneRequestAtATimeGetsNoMoreThanOthers) {
  Gate gate(of_levels({queueing("a", 1)}), 1);
  gate.enter(0, "first");
  for (const char* flow : {"b", "c", "d"}) {
    for (int i = 0; i < 40; ++i) gate.enter(0, flow);
  }
  gate.enter(0, "alone");
  std::size_t running = 0;
  std::map<std::string, int> begun;
  for (int step = 0; step < 100; ++step) {
    gate.exit(running);
    if (gate.requests[running].flow == "alone") gate.enter(0, "alone");
    const auto turns = gate.turns();
    ASSERT_EQ(turns.size(), 1U);
    running = turns.front();
    ++begun[gate.requests[running].flow];
  }
  EXPECT_LE(begun["alone"], 26);
  EXPECT_GE(begun["b"], 24);
}

TEST(FlowGate, FlowsAreBoundedAndLaterOnesShare) {
  flow::Level level = queueing("a", 1);
  level.queues = 128;
  Gate gate(of_levels({level}), 1);
  gate.enter(0, "first");
  for (int i = 0; i < 3'000; ++i) gate.enter(0, "u" + std::to_string(i));
  std::size_t flows = 0;
  gate.gate.visit_flows(0, [&](std::string_view, const FlowGate::Flow&) { ++flows; });
  EXPECT_LE(flows, FlowGate::kFlowsMax + FlowGate::kSharedFlows);
  EXPECT_GE(gate.gate.waiting(), 3'000U);
}

/// Random steps: the bounds hold after each, every request is returned once, and no request waits that could run.
TEST(FlowGate, NoSequenceOfStepsBreaksABound) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const auto below = [&](std::uint64_t bound) { return rng.below(bound); };
    Gate gate(of_levels({queueing("a", 1 + static_cast<int>(below(5)), 50, 3),
                         queueing("b", 3, static_cast<int>(below(3)) * 50, 3), queueing("c", 2, 0, 3)}),
              1 + static_cast<int>(below(60)));
    std::vector<std::size_t> open;
    for (int step = 0; step < 600; ++step) {
      if (below(3) != 0) {
        gate.wait = milliseconds(1 + below(40));
        const Entry entry =
            gate.enter(below(4), std::string(1, static_cast<char>('f' + below(4))), 1 + static_cast<int>(below(10)),
                       static_cast<std::int64_t>(1 + below(200)), kGuess, below(4) == 0);
        if (entry != Entry::kRefused) open.push_back(gate.requests.size() - 1);
      } else if (!open.empty()) {
        const std::size_t at = below(open.size());
        gate.exit(open[at]);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      }
      gate.now += milliseconds(below(3));
      for (const std::size_t request : gate.turns()) {
        if (gate.requests[request].refusal) std::erase(open, request);
      }
      std::size_t waiting = 0;
      for (const std::size_t request : open) {
        const FlowGate::Ticket& ticket = gate.requests[request].ticket;
        ASSERT_NE(ticket.state, FlowGate::Ticket::State::kOutside);
        if (ticket.state != FlowGate::Ticket::State::kWaiting) continue;
        ++waiting;
        ASSERT_GT(ticket.deadline, gate.now);
        ASSERT_LT(ticket.seats, 11);
      }
      ASSERT_EQ(gate.gate.waiting(), waiting);
      for (std::size_t level = 0; level < 3; ++level) {
        int least = 11;
        gate.gate.visit_flows(level, [&](std::string_view, const FlowGate::Flow& flow) {
          ASSERT_LE(flow.waiting.size(), 3U);
          for (const FlowGate::Ticket* ticket : flow.waiting) least = std::max(least % 11, ticket->seats);
        });
        if (gate.gate.waiting(level) > 0) ASSERT_FALSE(gate.gate.seats().is_guaranteed(level, least)) << "it could run";
      }
    }
    while (!open.empty()) {
      gate.exit(open.back());
      open.pop_back();
      gate.turns();
    }
    gate.now += seconds(1);
    gate.turns();
    EXPECT_EQ(gate.gate.waiting(), 0U);
    EXPECT_EQ(gate.enter(0, "last"), Entry::kRuns);
    for (std::size_t level = 1; level < 3; ++level) EXPECT_EQ(gate.gate.seats().held(level), 0) << seed;
  }
}

TEST(FlowTables, ShowLevelsQueuesAndRequests) {
  Gate gate(of_levels({queueing("a", 1)}), 1);
  gate.wait = seconds(15);
  gate.enter(0, "x");
  gate.enter(0, "ann");
  gate.enter(0, "a \x1b[2J,\n\xff\"");
  gate.now += milliseconds(1'500);
  const auto page = [&](std::string_view name) {
    return flow_page(gate.gate, "/debug/api_priority_and_fairness/" + std::string(name), gate.now).value_or("none");
  };
  EXPECT_EQ(
      page("dump_requests"),
      "PriorityLevelName, FlowSchemaName, FlowDistinguisher,   RequestIndexInQueue, InitialSeats, Waited, TimeLeft\n"
      "a,                 a,              \"a \\u001b[2J,\\n?\\\"\", 0,                   1,            1.500s, "
      "13.500s\n"
      "a,                 a,              ann,                 0,                   1,            1.500s, 13.500s\n");
  EXPECT_TRUE(
      page("dump_queues").contains("ann,                 1,               1,               0,             1.500s\n"))
      << page("dump_queues");
  EXPECT_TRUE(page("dump_priority_levels").contains("a,                 2,            false,  2,               1,"))
      << page("dump_priority_levels");
  EXPECT_EQ(page("dump_nothing"), "none");
  EXPECT_FALSE(flow_page(gate.gate, "/debug", gate.now));
}

TEST(FlowTables, AreBounded) {
  flow::Level level = queueing("a", 1);
  level.queues = 128;
  Gate gate(of_levels({level}), 1);
  for (int i = 0; i < 3'001; ++i) gate.enter(0, "u" + std::to_string(i % 70));
  const std::string text = *flow_page(gate.gate, "/debug/api_priority_and_fairness/dump_requests", gate.now);
  EXPECT_EQ(std::ranges::count(text, '\n'), static_cast<std::ptrdiff_t>(kFlowRowsMax) + 2);
  EXPECT_TRUE(text.ends_with("... and 1000 more\n")) << text.substr(text.size() - 40);
}

/// Names of the levels at their places.
std::vector<std::string> places_of(const FlowGate& gate) {
  std::vector<std::string> out;
  for (const flow::Level& level : gate.configuration().levels) out.push_back(level.name);
  return out;
}

TEST(FlowGate, AnotherConfigurationKeepsWhatWaitsAndRuns) {
  Gate gate(of_levels({queueing("a", 1), queueing("b", 1)}), 2);
  gate.enter(0, "x");  // runs
  gate.enter(0, "x");  // waits
  gate.enter(1, "y");  // runs
  const std::vector<std::size_t> places = gate.gate.reconfigure(of_levels({queueing("c", 1), queueing("a", 3)}));
  EXPECT_EQ(places_of(gate.gate), (std::vector<std::string>{"a", "b", "exempt", "catch-all", "c"}));
  EXPECT_EQ(places, (std::vector<std::size_t>{4, 0, 2, 3}));
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{1}) << "a has two seats now";
  EXPECT_EQ(gate.enter(4, "z"), Entry::kRuns) << "the seats of b, which is gone, do not keep c from its own";
  for (const std::size_t each : {0U, 1U, 2U, 3U}) gate.exit(each);
  EXPECT_EQ(gate.gate.counts(1).running, 0U);
  gate.gate.reconfigure(of_levels({queueing("d", 1)}));
  EXPECT_EQ(places_of(gate.gate), (std::vector<std::string>{"d", "", "exempt", "catch-all", ""}));
}

TEST(FlowGate, ALevelThatIsGoneCarriesOutWhatWaits) {
  Gate gate(of_levels({queueing("a", 1), queueing("b", 1)}), 2);
  for (int i = 0; i < 3; ++i) gate.enter(0, "x");
  gate.gate.reconfigure(of_levels({queueing("b", 100)}));
  gate.exit(0);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{1});
  gate.exit(1);
  EXPECT_EQ(gate.turns(), std::vector<std::size_t>{2});
  gate.exit(2);
  EXPECT_EQ(gate.gate.waiting(), 0U);
}

/// A client that changes the shares again and again gets twice the seats at most, and node-high keeps its floor.
TEST(FlowGate, ChangesDoNotMultiplySeats) {
  const auto given_to = [](const std::string& name) {
    flow::Level nodes = queueing("node-high", 1);
    nodes.floor_percent = 10;
    return of_levels({queueing(name, 1'000'000), std::move(nodes)});
  };
  Gate gate(given_to("l0"), 20);
  int running = 0;
  for (int round = 1; round <= 10; ++round) {
    const std::vector<std::size_t> places = gate.gate.reconfigure(given_to("l" + std::to_string(round)));
    for (int i = 0; i < 30; ++i) running += gate.enter(places[0], "x") == Entry::kRuns;
    if (round < 10) continue;
    EXPECT_EQ(gate.enter(places[1], "n1"), Entry::kRuns);
    EXPECT_EQ(gate.enter(places[1], "n2"), Entry::kRuns);
  }
  EXPECT_GE(running, 20);
  EXPECT_LE(running, 2 * (20 + 2 + 10)) << "twice what is dealt, of which levels that are gone have one each";
}

TEST(FlowGate, ExemptRequestsOfOtherSchemasAreBounded) {
  flow::Configuration made = of_levels({queueing("a", 1)});
  made.schemas.insert(made.schemas.begin(), {.name = "free", .precedence = 2, .level = "exempt", .rules = {}});
  Gate gate(made, 40);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(gate.enter(0, ""), Entry::kRuns);
  EXPECT_EQ(gate.enter(0, ""), Entry::kRefused) << "a quarter of the seats";
  for (int i = 0; i < 50; ++i) EXPECT_EQ(gate.enter(2, ""), Entry::kRuns) << "administrators have no limit";
  gate.exit(0);
  EXPECT_EQ(gate.enter(0, ""), Entry::kRuns);
}

/// Random requests and changes: no seat is lost, and no request.
TEST(FlowGate, ManyChangesLeaveNothingBehind) {
  Rng rng(11);
  Gate gate(of_levels({queueing("l0", 1)}), 8);
  std::vector<std::size_t> places = gate.gate.reconfigure(of_levels({queueing("l0", 1)}));
  std::vector<std::size_t> open;
  for (int step = 0; step < 4'000; ++step) {
    const std::uint64_t what = rng.below(10);
    if (what == 0) {
      std::vector<flow::Level> levels;
      for (std::uint64_t i = 0; i < 5; ++i) {
        if (rng.below(2) == 0) continue;
        levels.push_back(
            queueing("l" + std::to_string(i), static_cast<int>(rng.below(4)), static_cast<int>(rng.below(100))));
      }
      places = gate.gate.reconfigure(of_levels(std::move(levels)));
    } else if (what < 6) {
      const std::size_t schema = places[rng.below(places.size())];
      const Entry entry = gate.enter(schema, "f" + std::to_string(rng.below(3)));
      if (entry != Entry::kRefused) open.push_back(gate.requests.size() - 1);
    } else if (!open.empty()) {
      const std::size_t at = rng.below(open.size());
      gate.exit(open[at]);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    }
    gate.turns();
    gate.now += milliseconds(1);
  }
  for (const std::size_t each : open) gate.exit(each);
  gate.turns();
  gate.gate.reconfigure(of_levels({}));
  EXPECT_EQ(gate.gate.waiting(), 0U);
  for (std::size_t place = 0; place < gate.gate.configuration().levels.size(); ++place) {
    EXPECT_EQ(gate.gate.seats().held(place), 0) << place;
  }
  EXPECT_LE(gate.gate.configuration().levels.size(), 2U + 5U + 5U);
}

}  // namespace
}  // namespace spillway::apiserver
