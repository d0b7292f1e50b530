// Several candidates over one lease, on a clock that the test moves: a server that is one object with a version.
#include "client/leader_election.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::client {
namespace {

/// A lease with a resourceVersion, and candidates that can reach it or cannot.
class Election : public ::testing::Test {
 protected:
  struct Answer {
    CallDone done;
    Instant due;
  };

  struct Candidate {
    std::unique_ptr<LeaderElection> engine;
    bool reaches = true;  // the server
    bool runs = true;     // the process is not stopped
    Duration delay{};     // delay of answers; requests arrive at once
    std::deque<Answer> answers;
    std::optional<Instant> elected;
    std::optional<Instant> lost;
  };

  Candidate& add(const std::string& identity, Duration delay = {}) {
    auto candidate = std::make_unique<Candidate>();
    Candidate& added = *candidate;
    added.delay = delay;
    added.engine = std::make_unique<LeaderElection>(
        LeaderElection::Options{.identity = identity}, Rng(fnv1a64(identity)),
        LeaderElection::Listener{[&added](Now at) { added.elected = at.mono; },
                                 [&added](const std::string&, Now at) { added.lost = at.mono; },
                                 {}});
    candidates.push_back(std::move(candidate));
    added.engine->start(now);
    collect(added);
    return added;
  }

  void collect(Candidate& candidate) {
    for (ApiCommand& command : candidate.engine->take_api_commands()) {
      const auto& call = std::get<SendCall>(command);
      if (!candidate.reaches) continue;
      sent.push_back(call.request);
      candidate.answers.push_back({{call.id, handle(call.request)}, now.mono + candidate.delay});
    }
  }

  api::Response handle(const api::Request& request) {
    if (request.method == api::Method::kGet) {
      if (!lease) return {404, {}, R"({"kind":"Status","reason":"NotFound","code":404})"};
      return {200, {}, api::to_text(*lease)};
    }
    api::Json body = request.document ? *request.document : *api::parse_json(request.body);
    const bool creates = request.method == api::Method::kPost;
    if (creates == lease.has_value() || (lease && body.string_at({"metadata", "resourceVersion"}) !=
                                                      lease->string_at({"metadata", "resourceVersion"}))) {
      return {409, {}, R"({"kind":"Status","reason":"Conflict","code":409})"};
    }
    body.make({"metadata", "resourceVersion"}) = std::to_string(++version);
    lease = body;
    return {creates ? 201 : 200, {}, api::to_text(body)};
  }

  void advance(Duration by) {
    const Instant end = now.mono + by;
    while (now.mono < end) {
      now.mono += milliseconds(50);
      now.wall += milliseconds(50);
      for (const auto& candidate : candidates) {
        if (candidate->runs) step(*candidate);
      }
      int acting = 0;
      for (const auto& candidate : candidates) acting += candidate->engine->may_act(now) ? 1 : 0;
      EXPECT_LE(acting, 1) << "two leaders act together";
    }
  }

  void step(Candidate& candidate) {
    while (!candidate.answers.empty() && candidate.answers.front().due <= now.mono) {
      const CallDone answer = candidate.answers.front().done;
      candidate.answers.pop_front();
      candidate.engine->on_api_event(answer, now);
      collect(candidate);
    }
    if (const auto next = candidate.engine->next_wakeup(); next && *next <= now.mono) candidate.engine->on_wakeup(now);
    collect(candidate);
  }

  std::string holder() { return lease ? std::string(lease->string_at({"spec", "holderIdentity"})) : "nobody"; }

  Now now{Instant(seconds(1000)), WallTime(seconds(1'767'225'600))};
  std::optional<api::Json> lease;
  std::uint64_t version = 1;
  std::vector<api::Request> sent;
  std::vector<std::unique_ptr<Candidate>> candidates;
};

TEST_F(Election, TheFirstLeadsAndStaysIt) {
  Candidate& a = add("a");
  Candidate& b = add("b");
  advance(minutes(2));
  EXPECT_TRUE(a.engine->leads() != b.engine->leads());
  EXPECT_EQ(lease->at({"spec", "leaseTransitions"})->if_int64(), 0);
  EXPECT_EQ(lease->at({"spec", "leaseDurationSeconds"})->if_int64(), 15);
}

TEST_F(Election, AStandbyTakesOverWithinTheLeaseTime) {
  Candidate& a = add("a");
  advance(seconds(5));
  ASSERT_TRUE(a.elected);
  Candidate& b = add("b");
  advance(seconds(5));
  a.runs = false;
  const Instant killed = now.mono;
  advance(seconds(25));
  ASSERT_TRUE(b.elected);
  EXPECT_LE(*b.elected - killed, seconds(15) + milliseconds(4400 + 100));  // plus one jittered retry
  EXPECT_EQ(holder(), "b");
  EXPECT_EQ(lease->at({"spec", "leaseTransitions"})->if_int64(), 1);
}

TEST_F(Election, WhoCannotRenewStopsBeforeAnotherMayBegin) {
  Candidate& a = add("a");
  advance(seconds(5));
  Candidate& b = add("b");
  advance(seconds(7));
  a.reaches = false;
  const Instant cut = now.mono;
  advance(seconds(30));
  ASSERT_TRUE(a.lost && b.elected);
  EXPECT_LE(*a.lost - cut, seconds(10));
  EXPECT_GE(*b.elected - *a.lost, seconds(2));
  EXPECT_FALSE(a.engine->leads());
  a.reaches = true;
  advance(seconds(30));
  EXPECT_EQ(holder(), "b");
}

TEST_F(Election, WhoLostTheLeaseTakesPartAgain) {
  Candidate& a = add("a");
  advance(seconds(5));
  ASSERT_TRUE(a.elected);
  for (std::uint64_t term = 1; term < 4; ++term) {
    EXPECT_EQ(a.engine->term(), term);
    a.reaches = false;
    advance(seconds(60));
    ASSERT_TRUE(a.lost);
    EXPECT_FALSE(a.engine->may_act(now));
    EXPECT_GT(*a.lost, *a.elected);
    a.reaches = true;
    advance(seconds(10));
    EXPECT_TRUE(a.engine->may_act(now));
    EXPECT_GT(*a.elected, *a.lost);
  }
  EXPECT_EQ(holder(), "a");
}

TEST_F(Election, ACandidateThatLostTheLeaseWaits) {
  Candidate& a = add("a");
  advance(seconds(5));
  a.reaches = false;
  advance(seconds(8));
  Candidate& b = add("b");
  advance(seconds(30));
  ASSERT_TRUE(b.engine->leads());
  a.reaches = true;
  advance(seconds(30));
  EXPECT_TRUE(b.engine->leads());
  EXPECT_EQ(a.engine->term(), 1U);
  b.runs = false;
  advance(seconds(25));
  EXPECT_TRUE(a.engine->may_act(now));
  EXPECT_EQ(a.engine->term(), 2U);
  EXPECT_FALSE(b.engine->may_act(now));
}

TEST_F(Election, AProcessThatWasStoppedDoesNotActWhenItContinues) {
  Candidate& a = add("a");
  advance(seconds(5));
  Candidate& b = add("b");
  a.runs = false;  // SIGSTOP
  advance(seconds(30));
  ASSERT_TRUE(b.engine->leads());
  EXPECT_FALSE(a.engine->may_act(now));
  a.runs = true;
  step(a);
  EXPECT_TRUE(a.lost);
}

TEST_F(Election, ALeaseGivenBackIsTakenAtTheNextRead) {
  Candidate& a = add("a");
  advance(seconds(5));
  Candidate& b = add("b");
  bool released = false;
  a.engine->release([&released] { released = true; }, now);
  collect(a);
  advance(seconds(6));
  EXPECT_TRUE(released);
  EXPECT_TRUE(b.engine->leads());
}

TEST_F(Election, ALeaseIsGivenBackAlthoughItsRenewalIsUnderWay) {
  Candidate& a = add("a", milliseconds(300));
  advance(seconds(5));
  ASSERT_EQ(holder(), "a");
  const std::uint64_t before = version;
  while (version == before) advance(milliseconds(50));
  ASSERT_FALSE(a.answers.empty()) << "the server has renewed the lease and the answer is on its way";
  bool released = false;
  a.engine->release([&released] { released = true; }, now);
  collect(a);
  EXPECT_FALSE(released);
  advance(seconds(1));
  EXPECT_TRUE(released);
  EXPECT_EQ(holder(), "");
}

TEST_F(Election, ALeaseIsGivenBackBeforeTheAnswerThatItWasTaken) {
  Candidate& a = add("a", milliseconds(300));
  while (!lease) advance(milliseconds(50));
  ASSERT_EQ(holder(), "a");
  ASSERT_FALSE(a.engine->leads());
  bool released = false;
  a.engine->release([&released] { released = true; }, now);
  collect(a);
  advance(seconds(1));
  EXPECT_TRUE(released);
  EXPECT_EQ(holder(), "");
  EXPECT_FALSE(a.elected);
}

TEST_F(Election, ALeaseWhoseRenewalFailedIsReadBeforeItIsGivenBack) {
  Candidate& a = add("a", milliseconds(300));
  advance(seconds(5));
  const std::size_t before = sent.size();
  while (sent.size() == before) advance(milliseconds(50));
  a.answers.back().done.response = api::Response{500, {}, R"({"kind":"Status","reason":"InternalError","code":500})"};
  bool released = false;
  a.engine->release([&released] { released = true; }, now);
  collect(a);
  advance(seconds(2));
  EXPECT_TRUE(released);
  EXPECT_EQ(holder(), "");
}

TEST_F(Election, AReleaseEndsWithoutAnAnswer) {
  Candidate& a = add("a", milliseconds(300));
  advance(seconds(5));
  const std::uint64_t before = version;
  while (version == before) advance(milliseconds(50));
  a.answers.clear();
  a.reaches = false;
  int released = 0;
  a.engine->release([&released] { ++released; }, now);
  collect(a);
  advance(seconds(4));
  EXPECT_EQ(released, 0);
  advance(seconds(2));
  EXPECT_EQ(released, 1) << "after half of renew_deadline, although the lease is being read";
  advance(seconds(30));
  EXPECT_EQ(released, 1);
}

TEST_F(Election, RandomOutagesNeverMakeTwo) {
  Rng rng(11);
  for (const char* identity : {"a", "b", "c"}) add(identity);
  for (int i = 0; i < 80; ++i) {
    Candidate& chosen = *candidates[rng.below(candidates.size())];
    if (rng.below(2) == 0) {
      chosen.reaches = !chosen.reaches;
    } else {
      chosen.runs = !chosen.runs;
    }
    advance(milliseconds(static_cast<std::int64_t>(rng.below(20'000))));
    if (chosen.lost) {  // the process ends, and another one begins
      chosen.runs = false;
      add(fmt::format("{}", i));
    }
  }
}

TEST_F(Election, RandomOutagesOfTheSameProcessesNeverMakeTwo) {
  Rng rng(12);
  for (const char* identity : {"a", "b", "c"}) add(identity);
  for (int i = 0; i < 200; ++i) {
    Candidate& chosen = *candidates[rng.below(candidates.size())];
    (rng.below(2) == 0 ? chosen.reaches : chosen.runs) ^= true;
    advance(milliseconds(static_cast<std::int64_t>(rng.below(20'000))));
  }
  for (const auto& candidate : candidates) candidate->reaches = candidate->runs = true;
  advance(seconds(40));
  EXPECT_EQ(std::ranges::count_if(candidates, [this](const auto& each) { return each->engine->may_act(now); }), 1);
}

TEST_F(Election, AnAnswerThreeSecondsLateDoesNotEndTheTerm) {
  Candidate& a = add("a", seconds(3));
  advance(minutes(3));
  EXPECT_TRUE(a.engine->may_act(now));
  EXPECT_EQ(a.engine->term(), 1U);
  EXPECT_FALSE(a.lost);
}

TEST_F(Election, TheTermIsCountedFromTheSendingOfTheRenewalNotFromItsAnswer) {
  Candidate& a = add("a", seconds(3));
  const Instant began = now.mono;  // GET: 404 after 3 s, POST: sent then, answered 3 s later
  advance(seconds(7));
  ASSERT_EQ(a.elected, began + seconds(6));
  a.reaches = false;
  const Instant ends = began + seconds(3) + seconds(10);
  advance(ends - now.mono - milliseconds(50));
  EXPECT_TRUE(a.engine->may_act(now));
  advance(milliseconds(50));
  EXPECT_FALSE(a.engine->may_act(now));
  EXPECT_EQ(a.lost, ends);
}

TEST_F(Election, LateAnswersNeverMakeTwo) {
  Rng rng(13);
  for (const char* identity : {"a", "b", "c"}) add(identity, seconds(3));
  for (int i = 0; i < 150; ++i) {
    Candidate& chosen = *candidates[rng.below(candidates.size())];
    if (rng.below(3) == 0) {
      chosen.delay = milliseconds(static_cast<std::int64_t>(rng.below(6'000)));
    } else {
      (rng.below(2) == 0 ? chosen.reaches : chosen.runs) ^= true;
    }
    advance(milliseconds(static_cast<std::int64_t>(rng.below(15'000))));
  }
  for (const auto& candidate : candidates) {
    candidate->reaches = candidate->runs = true;
    candidate->delay = {};
  }
  advance(seconds(60));
  EXPECT_EQ(std::ranges::count_if(candidates, [this](const auto& each) { return each->engine->may_act(now); }), 1);
}

TEST_F(Election, ALeaseTakenLongAgoIsNotLedWhenTheAnswerIsReadAtLast) {
  Candidate& a = add("a", milliseconds(100));
  advance(milliseconds(150));  // the first answer is read, the lease created
  ASSERT_EQ(holder(), "a");
  ASSERT_FALSE(a.elected);
  a.runs = false;  // stopped before it has read that answer
  advance(seconds(10));
  a.runs = true;
  a.engine->on_api_event(a.answers.front().done, now);  // before any timer
  a.answers.clear();
  collect(a);
  EXPECT_FALSE(a.elected);
  EXPECT_FALSE(a.engine->leads());
  advance(seconds(20));
  EXPECT_TRUE(a.engine->may_act(now)) << "it tries again";
}

TEST_F(Election, ALateAnswerOfATermThatIsOverChangesNothing) {
  Candidate& a = add("a");
  advance(seconds(5));
  ASSERT_TRUE(a.elected);
  a.delay = minutes(1);
  advance(seconds(20));
  ASSERT_TRUE(a.lost);
  const std::deque<Answer> late = a.answers;
  a.reaches = false;
  for (const Answer& answer : late) a.engine->on_api_event(answer.done, now);
  collect(a);
  EXPECT_FALSE(a.engine->leads());
  EXPECT_EQ(a.engine->term(), 1U);
}

TEST_F(Election, AConflictIsAnsweredByAReadNotByTheSameWriteAgain) {
  Candidate& a = add("a");
  advance(seconds(5));
  ASSERT_TRUE(a.elected);
  lease->make({"metadata", "resourceVersion"}) = std::to_string(++version);  // another client has annotated the lease
  sent.clear();
  advance(seconds(6));
  EXPECT_TRUE(a.engine->may_act(now));
  EXPECT_EQ(std::ranges::count_if(sent, [](const auto& each) { return each.method == api::Method::kGet; }), 1);
  EXPECT_EQ(a.engine->term(), 1U);
}

TEST_F(Election, ALeaderThatReadsAnotherHolderEndsItsTermAtOnce) {
  Candidate& a = add("a");
  advance(seconds(5));
  (*lease)["spec"]["holderIdentity"] = "thief";
  lease->make({"metadata", "resourceVersion"}) = std::to_string(++version);
  advance(seconds(5));
  EXPECT_TRUE(a.lost);
  EXPECT_FALSE(a.engine->may_act(now));
  EXPECT_EQ(holder(), "thief");
}

TEST_F(Election, ALeaseWithoutHolderOrDurationExpiresByOwnOptions) {
  lease = *api::parse_json(R"({"metadata":{"resourceVersion":"1"},"spec":{"holderIdentity":"old"}})");
  Candidate& a = add("a");
  advance(seconds(14));
  EXPECT_FALSE(a.elected);
  advance(seconds(6));
  EXPECT_TRUE(a.elected);
  EXPECT_EQ(lease->at({"spec", "leaseTransitions"})->if_int64(), 1);
}

TEST_F(Election, AReleasedLeaseIsOverForWhoGaveItBack) {
  Candidate& a = add("a");
  advance(seconds(5));
  a.engine->release([] {}, now);
  collect(a);
  EXPECT_EQ(holder(), "");
  EXPECT_EQ(lease->at({"spec", "leaseDurationSeconds"})->if_int64(), 1);
  advance(seconds(30));
  EXPECT_EQ(holder(), "") << "it does not take part any more";
  EXPECT_FALSE(a.engine->may_act(now));
}

TEST(LeaderElectionOptions, AreChecked) {
  EXPECT_TRUE(LeaderElection::check({}).has_value());
  EXPECT_FALSE(LeaderElection::check({.lease_duration = seconds(10)}).has_value());
  EXPECT_FALSE(LeaderElection::check({.lease_duration = milliseconds(10'900), .renew_deadline = milliseconds(10'500)}));
  EXPECT_FALSE(LeaderElection::check({.renew_deadline = seconds(2)}).has_value());
}

}  // namespace
}  // namespace spillway::client
