// Goal: who may ask the node's server is what the API server says, asked once and remembered for a while.
#include "agent/serving/request_gate.h"

#include "base/check.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

using api::Json;

const NodeAccess kStats{"get", "stats"};
const api::UserInfo kPrometheus{"prometheus", "u", {"system:authenticated"}};

class Gate : public ::testing::Test {
 protected:
  Gate() { gate_.start(now_); }

  void ask(RequestGate::Caller caller, const NodeAccess& access = kStats) {
    gate_.ask(caller, access, [this](const RequestGate::Verdict& verdict) { verdicts_.push_back(verdict); }, now_);
    collect();
  }

  void ask_with(std::string token) { ask({.certified = std::nullopt, .token = std::move(token)}); }

  void ask_as(const api::UserInfo& user, const NodeAccess& access = kStats) {
    ask({.certified = user, .token = {}}, access);
  }

  /// The body of the oldest call that has no answer yet.
  Json body() {
    SPILLWAY_CHECK(!calls_.empty());
    return api::parse_json(calls_.front().request.body).value();
  }

  void answer(Result<api::Response> response) {
    ASSERT_FALSE(calls_.empty()) << "nothing was asked";
    const client::CallId id = calls_.front().id;
    calls_.erase(calls_.begin());
    gate_.on_api_event(client::CallDone{id, std::move(response)}, now_);
    collect();
  }

  void answer(const char* status) {
    answer(api::Response{201, {}, std::string(R"({"kind":"Review","status":)") + status + "}"});
  }

  void advance(Duration by) {
    now_.mono += by;
    gate_.on_wakeup(now_);
    collect();
  }

  void collect() {
    for (client::ApiCommand& command : gate_.take_api_commands()) {
      calls_.push_back(std::get<client::SendCall>(std::move(command)));
    }
  }

  int last_code() const { return verdicts_.empty() ? 0 : verdicts_.back().code; }

  Now now_{Instant(seconds(100)), WallTime(seconds(100))};
  RequestGate gate_{{.node_name = "n1", .remembered_max = 4, .waiting_max = 3}, Rng(1)};
  std::vector<client::SendCall> calls_;
  std::vector<RequestGate::Verdict> verdicts_;
};

TEST_F(Gate, MissingCredentialsAreRefusedWithoutAReview) {
  ask({});
  EXPECT_EQ(last_code(), 401);
  EXPECT_EQ(verdicts_.back().text, "Unauthorized");
  EXPECT_TRUE(calls_.empty());
}

TEST_F(Gate, ACertifiedUserIsAskedAbout) {
  ask_as(kPrometheus);
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_.front().request.target, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
  EXPECT_EQ(api::to_text(*body().find("spec")),
            R"({"groups":["system:authenticated"],"resourceAttributes":{"name":"n1","resource":"nodes",)"
            R"("subresource":"stats","verb":"get","version":"v1"},"uid":"u","user":"prometheus"})");
  answer(R"({"allowed":true})");
  EXPECT_EQ(last_code(), 200);
}

TEST_F(Gate, ATokenIsReviewedFirst) {
  ask_with("t");
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_.front().request.target, "/apis/authentication.k8s.io/v1/tokenreviews");
  EXPECT_EQ(api::to_text(*body().find("spec")), R"({"token":"t"})");
  answer(R"({"authenticated":true,"user":{"username":"sa","groups":["g"],"extra":{"k":["v"]}}})");
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(body().string_at({"spec", "user"}), "sa");
  EXPECT_EQ(*body().at({"spec", "extra", "k"}), Json::array({"v"}));
  answer(R"({"allowed":false})");
  EXPECT_EQ(last_code(), 403);
  EXPECT_EQ(verdicts_.back().text, "Forbidden (user=sa, verb=get, resource=nodes, subresource(s)=[stats])");
}

TEST_F(Gate, ARightThatIsDeniedMayBeReplacedByTheOlderOne) {
  const NodeAccess pods{"get", "pods", {}, "proxy"};
  ask_as(kPrometheus, pods);
  EXPECT_EQ(body().string_at({"spec", "resourceAttributes", "subresource"}), "pods");
  answer(R"({"allowed":false})");
  EXPECT_EQ(last_code(), 0);
  EXPECT_EQ(body().string_at({"spec", "resourceAttributes", "subresource"}), "proxy");
  answer(R"({"allowed":true})");
  EXPECT_EQ(last_code(), 200);
  ask_as(kPrometheus, pods);
  EXPECT_TRUE(calls_.empty()) << "both answers are remembered";
  EXPECT_EQ(verdicts_.size(), 2U);
}

TEST_F(Gate, WithNeitherRightBothAreNamed) {
  ask_as(kPrometheus, {"get", "configz", {}, "proxy"});
  answer(R"({"allowed":false})");
  answer(R"({"allowed":false})");
  EXPECT_EQ(verdicts_.back().text,
            "Forbidden (user=prometheus, verb=get, resource=nodes, subresource(s)=[configz proxy])");
}

TEST_F(Gate, AReviewThatFailsIsNotFollowedByTheOlderRight) {
  ask_as(kPrometheus, {"get", "pods", {}, "proxy"});
  answer(make_error(ErrorCode::kServiceUnavailable, "away"));
  EXPECT_EQ(last_code(), 500);
  EXPECT_TRUE(calls_.empty());
}

TEST_F(Gate, AnswersAreRememberedAsLongAsUpstreamDoes) {
  ask_as(kPrometheus);
  answer(R"({"allowed":true})");
  advance(minutes(5) - seconds(1));
  ask_as(kPrometheus);
  EXPECT_EQ(last_code(), 200);
  EXPECT_TRUE(calls_.empty()) << "remembered";
  advance(seconds(1));
  ask_as(kPrometheus);
  ASSERT_EQ(calls_.size(), 1U) << "five minutes are over";
  answer(R"({"allowed":false})");
  advance(seconds(29));
  ask_as(kPrometheus);
  EXPECT_EQ(last_code(), 403);
  EXPECT_TRUE(calls_.empty());
  advance(seconds(1));
  ask_as(kPrometheus);
  EXPECT_EQ(calls_.size(), 1U) << "thirty seconds are over";
}

TEST_F(Gate, OtherRightsAndUsersAreOtherQuestions) {
  ask_as(kPrometheus);
  answer(R"({"allowed":true})");
  ask_as(kPrometheus, {"get", "proxy"});
  EXPECT_EQ(calls_.size(), 1U);
  answer(R"({"allowed":false})");
  EXPECT_EQ(last_code(), 403);
  ask_as({"prometheus", "u", {"other"}});
  EXPECT_EQ(calls_.size(), 1U) << "the same name with other groups";
}

TEST_F(Gate, AnUnknownTokenIsRememberedForTwoMinutes) {
  ask_with("bad");
  answer(R"({"user":{}})");
  EXPECT_EQ(last_code(), 401);
  advance(minutes(2) - seconds(1));
  ask_with("bad");
  EXPECT_EQ(verdicts_.size(), 2U);
  EXPECT_TRUE(calls_.empty());
  advance(seconds(1));
  ask_with("bad");
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(Gate, AReviewThatCouldNotDecideIsNotRemembered) {
  ask_with("t");
  answer(R"({"user":{},"error":"expired"})");
  EXPECT_EQ(last_code(), 401);
  ask_with("t");
  ASSERT_EQ(calls_.size(), 1U);
  answer(make_error(ErrorCode::kServiceUnavailable, "connection refused"));
  EXPECT_EQ(last_code(), 401);
  ask_with("t");
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(Gate, AFailedQuestionIsAnErrorAndNotRemembered) {
  ask_as(kPrometheus);
  answer(make_error(ErrorCode::kServiceUnavailable, "connection refused"));
  EXPECT_EQ(last_code(), 500);
  EXPECT_EQ(verdicts_.back().text,
            "Authorization error (user=prometheus, verb=get, resource=nodes, subresource(s)=[stats])");
  ask_as(kPrometheus);
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(Gate, AnApiServerThatIsSilentEndsTheWait) {
  ask_as(kPrometheus);
  EXPECT_TRUE(verdicts_.empty());
  ASSERT_TRUE(gate_.next_wakeup().has_value());
  advance(seconds(10));
  EXPECT_EQ(last_code(), 500);
  EXPECT_EQ(gate_.waiting(), 0U);
}

TEST_F(Gate, EqualQuestionsAreAskedOnceAndTheRestWaitsBounded) {
  ask_with("t");
  ask_with("t");
  ask_with("t");
  EXPECT_EQ(calls_.size(), 1U);
  ask_with("t");
  EXPECT_EQ(last_code(), 429);
  answer(R"({"authenticated":true,"user":{"username":"sa"}})");
  ASSERT_EQ(calls_.size(), 1U);
  answer(R"({"allowed":true})");
  EXPECT_EQ(verdicts_.size(), 4U);
  EXPECT_EQ(last_code(), 200);
  EXPECT_EQ(gate_.waiting(), 0U);
}

TEST_F(Gate, RemembersABoundedNumber) {
  for (int i = 0; i < 20; ++i) {
    ask_as({"user" + std::to_string(i), {}, {}});
    answer(R"({"allowed":true})");
  }
  EXPECT_EQ(gate_.remembered(), 4U);
  ask_as({"user19", {}, {}});
  EXPECT_TRUE(calls_.empty()) << "the newest are kept";
}

/// A gate with settings of its own, for one question.
std::pair<int, std::vector<client::SendCall>> ask_once(GateSettings settings, const RequestGate::Caller& caller) {
  const Now now{Instant(seconds(100)), WallTime(seconds(100))};
  RequestGate gate({.node_name = "n1", .settings = std::move(settings)}, Rng(1));
  gate.start(now);
  int code = 0;
  gate.ask(caller, kStats, [&code](const RequestGate::Verdict& verdict) { code = verdict.code; }, now);
  std::vector<client::SendCall> calls;
  for (client::ApiCommand& command : gate.take_api_commands()) {
    calls.push_back(std::get<client::SendCall>(std::move(command)));
  }
  return {code, std::move(calls)};
}

TEST(GateSettings, AnonymousCallersAreAskedAboutUnderThatName) {
  const auto [code, calls] = ask_once({.strangers = Strangers::kAnonymous}, {.certified = std::nullopt, .token = {}});
  EXPECT_EQ(code, 0) << "the API server is asked";
  ASSERT_EQ(calls.size(), 1U);
  const Json review = api::parse_json(calls.front().request.body).value();
  EXPECT_EQ(review.string_at({"spec", "user"}), "system:anonymous");
  EXPECT_EQ(api::to_text(*review.at({"spec", "groups"})), R"(["system:unauthenticated"])");
}

TEST(GateSettings, WithoutReviewsATokenSaysNothing) {
  const RequestGate::Caller bearer{.certified = std::nullopt, .token = "t"};
  EXPECT_EQ(ask_once({.token_reviews = TokenReviews::kOff}, bearer).first, 401);
}

TEST(GateSettings, RightsThatAreGrantedNeedNoQuestion) {
  const GateSettings granted{.rights = Rights::kGranted};
  const auto [code, calls] = ask_once(granted, {.certified = kPrometheus, .token = {}});
  EXPECT_EQ(code, 200);
  EXPECT_TRUE(calls.empty());
  EXPECT_EQ(ask_once(granted, {.certified = std::nullopt, .token = {}}).first, 401) << "who it is counts all the same";
  EXPECT_EQ(ask_once(granted, {.certified = std::nullopt, .token = "t"}).second.size(), 1U) << "the token is reviewed";
}

TEST_F(Gate, ATokenOfExcessiveLengthIsUnknown) {
  ask_with(std::string(RequestGate::kTokenBytesMax + 1, 'x'));
  EXPECT_EQ(last_code(), 401);
  EXPECT_TRUE(calls_.empty());
}

}  // namespace
}  // namespace spillway::agent
