// The resolver: allowed clients and rates, forwarding, time-outs, bounds.
#include "dns/resolver.h"

#include "policy/dns/names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::dns {
namespace {

const api::IpAddress kPod = api::parse_ip("10.244.0.7").value();
const api::IpAddress kOtherPod = api::parse_ip("10.244.0.8").value();

ForeignAnswer foreign(const std::string& text, Rcode rcode = Rcode::kNoError, std::optional<std::uint32_t> ttl = 20) {
  return {.message = std::make_shared<const std::string>(text), .rcode = rcode, .ttl_seconds = ttl};
}

class ResolverTest : public ::testing::Test {
 protected:
  ResolverTest() {
    records_.put_namespace("shop");
    api::NamedService web;
    web.metadata.ns = "shop";
    web.metadata.name = "web";
    web.type = "ClusterIP";
    web.cluster_ips = {"10.96.0.7"};
    records_.put_service(web);
    api::NamedService out;
    out.metadata.ns = "shop";
    out.metadata.name = "out";
    out.type = "ExternalName";
    out.external_name = "example.com";
    records_.put_service(out);
    options_.servers = 2;
    options_.allowed = {api::parse_ip_range("10.244.0.0/16").value()};
  }

  void start() {
    resolver_.emplace(records_, options_, metrics_);
    resolver_->set_complete();
  }

  Ticket ask(const std::string& name, const api::IpAddress& client = kPod, RecordType type = RecordType::kA) {
    const Ticket ticket = ++last_ticket_;
    resolver_->on_query({.ticket = ticket, .client = client, .question = {name, type}}, now());
    collect();
    return ticket;
  }

  void answer(AskId id, std::optional<ForeignAnswer> given) {
    resolver_->on_answer(id, std::move(given), now());
    collect();
  }

  void pass(Duration time) {
    mono_ += time;
    resolver_->on_wakeup(now());
    collect();
  }

  Now now() const { return {mono_, WallTime{}}; }

  void collect() {
    for (Command& command : resolver_->take_commands()) {
      if (auto* reply = std::get_if<Reply>(&command)) replies_[reply->ticket] = std::move(*reply);
      if (const auto* dropped = std::get_if<Drop>(&command)) dropped_.push_back(dropped->ticket);
      if (auto* asked = std::get_if<Ask>(&command)) asks_.push_back(std::move(*asked));
      if (const auto* ended = std::get_if<EndAsk>(&command)) ended_.push_back(ended->id);
    }
  }

  Rcode rcode(Ticket ticket) const { return replies_.at(ticket).answer.rcode; }

  ClusterRecords records_{ClusterRecords::Options{}};
  Resolver::Options options_;
  telemetry::Registry metrics_;
  std::optional<Resolver> resolver_;
  Instant mono_{std::chrono::hours(1)};
  Ticket last_ticket_ = 0;
  std::map<Ticket, Reply> replies_;
  std::vector<Ticket> dropped_;
  std::vector<Ask> asks_;
  std::vector<AskId> ended_;
};

TEST_F(ResolverTest, AnswersFromTheRecords) {
  start();
  const Ticket ticket = ask("web.shop.svc.cluster.local.");
  ASSERT_EQ(replies_.at(ticket).answer.answers.size(), 1U);
  EXPECT_TRUE(asks_.empty());
}

TEST_F(ResolverTest, IgnoresClientsOutsideOfTheRanges) {
  start();
  const Ticket ticket = ask("web.shop.svc.cluster.local.", api::parse_ip("192.0.2.1").value());
  EXPECT_EQ(dropped_, std::vector<Ticket>{ticket});
  EXPECT_TRUE(replies_.empty());
  EXPECT_TRUE(resolver_->may_ask(api::parse_ip("127.0.0.1").value()));
  EXPECT_FALSE(resolver_->may_ask(api::parse_ip("fd00::1").value()));
  resolver_->set_own_addresses({api::parse_ip("192.0.2.1").value()});
  EXPECT_TRUE(resolver_->may_ask(api::parse_ip("192.0.2.1").value()));
}

TEST_F(ResolverTest, FailsUntilTheRecordsAreComplete) {
  resolver_.emplace(records_, options_, metrics_);
  EXPECT_EQ(rcode(ask("web.shop.svc.cluster.local.")), Rcode::kServerFailure);
  EXPECT_EQ(rcode(ask("7.0.96.10.in-addr.arpa.", kPod, RecordType::kPtr)), Rcode::kServerFailure);
  ask("example.com.");
  EXPECT_EQ(asks_.size(), 1U);
}

TEST_F(ResolverTest, AClientBeyondItsRateGetsNoAnswer) {
  options_.client_rate = 10;
  options_.client_burst = 2;
  start();
  for (int i = 0; i < 5; ++i) ask("web.shop.svc.cluster.local.");
  EXPECT_EQ(replies_.size(), 2U);
  EXPECT_EQ(dropped_.size(), 3U);
  ask("web.shop.svc.cluster.local.", kOtherPod);
  EXPECT_EQ(replies_.size(), 3U);
  pass(milliseconds(100));
  ask("web.shop.svc.cluster.local.");
  EXPECT_EQ(replies_.size(), 4U);
}

TEST_F(ResolverTest, RefusesWhatItDoesNotDo) {
  start();
  const auto send = [&](Query query) {
    query.ticket = ++last_ticket_;
    query.client = kPod;
    resolver_->on_query(std::move(query), now());
    collect();
    return rcode(last_ticket_);
  };
  EXPECT_EQ(send({.question = {"web.shop.svc.cluster.local.", RecordType::kA}, .opcode = 5}), Rcode::kNotImplemented);
  EXPECT_EQ(send({.question = {"version.bind.", RecordType::kTxt}, .record_class = 3}), Rcode::kRefused);
  EXPECT_EQ(send({.question = {"example.com.", RecordType::kAxfr}}), Rcode::kRefused);
  EXPECT_TRUE(asks_.empty());
}

TEST_F(ResolverTest, ForwardsOtherNamesAndKeepsTheAnswer) {
  start();
  const Ticket first = ask("Example.com.");
  ASSERT_EQ(asks_.size(), 1U);
  EXPECT_EQ(asks_[0].question.name, "Example.com.");
  EXPECT_EQ(asks_[0].server, 0U);
  answer(asks_[0].id, foreign("answer"));
  EXPECT_EQ(*replies_.at(first).foreign, "answer");
  mono_ += seconds(3);
  const Ticket second = ask("example.COM.", kOtherPod);
  EXPECT_EQ(asks_.size(), 1U);
  EXPECT_EQ(*replies_.at(second).foreign, "answer");
  EXPECT_EQ(replies_.at(second).age_seconds, 3U);
  mono_ += seconds(20);
  ask("example.com.");
  EXPECT_EQ(asks_.size(), 2U);
}

TEST_F(ResolverTest, EqualQuestionsAreAskedOnce) {
  start();
  const Ticket first = ask("example.com.");
  const Ticket second = ask("example.com.", kOtherPod);
  EXPECT_EQ(asks_.size(), 1U);
  answer(asks_[0].id, foreign("answer"));
  EXPECT_TRUE(replies_.contains(first));
  EXPECT_TRUE(replies_.contains(second));
  EXPECT_EQ(resolver_->waiting(), 0U);
  EXPECT_EQ(resolver_->asked(), 0U);
}

TEST_F(ResolverTest, AnAliasIsFollowedElsewhere) {
  start();
  const Ticket ticket = ask("out.shop.svc.cluster.local.");
  ASSERT_EQ(asks_.size(), 1U);
  EXPECT_EQ(asks_[0].question.name, "example.com.");
  answer(asks_[0].id, foreign("answer"));
  ASSERT_EQ(replies_.at(ticket).answer.answers.size(), 1U);
  EXPECT_EQ(replies_.at(ticket).answer.answers[0].type, RecordType::kCname);
  EXPECT_EQ(*replies_.at(ticket).foreign, "answer");
}

TEST_F(ResolverTest, AServerThatIsSilentIsAskedAfterTheOthers) {
  start();
  const Ticket ticket = ask("example.com.");
  EXPECT_EQ(resolver_->next_wakeup(), mono_ + Resolver::kAttemptTime);
  pass(Resolver::kAttemptTime);
  EXPECT_EQ(ended_, std::vector<AskId>{asks_[0].id});
  ASSERT_EQ(asks_.size(), 2U);
  EXPECT_EQ(asks_[1].server, 1U);
  answer(asks_[0].id, foreign("too late"));
  EXPECT_FALSE(replies_.contains(ticket));
  answer(asks_[1].id, foreign("answer"));
  EXPECT_EQ(*replies_.at(ticket).foreign, "answer");
  ask("example.org.");
  EXPECT_EQ(asks_[2].server, 1U);
  pass(Resolver::kServerPause);
  ask("example.net.");
  EXPECT_EQ(asks_.back().server, 0U);
}

TEST_F(ResolverTest, GivesUpAfterAFewAttempts) {
  start();
  const Ticket ticket = ask("example.com.");
  for (int i = 0; i < Resolver::kAttemptsMax; ++i) pass(Resolver::kAttemptTime);
  EXPECT_EQ(asks_.size(), static_cast<std::size_t>(Resolver::kAttemptsMax));
  EXPECT_EQ(rcode(ticket), Rcode::kServerFailure);
  EXPECT_EQ(replies_.at(ticket).foreign, nullptr);
  EXPECT_FALSE(resolver_->next_wakeup());
}

TEST_F(ResolverTest, ARefusalIsTakenToTheNextServer) {
  start();
  const Ticket ticket = ask("example.com.");
  answer(asks_[0].id, foreign("refused", Rcode::kRefused, std::nullopt));
  ASSERT_EQ(asks_.size(), 2U);
  EXPECT_EQ(asks_[1].server, 1U);
  answer(asks_[1].id, foreign("failed", Rcode::kServerFailure, std::nullopt));
  EXPECT_EQ(*replies_.at(ticket).foreign, "failed");
}

TEST_F(ResolverTest, ACutAnswerIsAskedForByTcp) {
  start();
  const Ticket ticket = ask("example.com.");
  ForeignAnswer cut = foreign("cut");
  cut.truncated = true;
  answer(asks_[0].id, cut);
  ASSERT_EQ(asks_.size(), 2U);
  EXPECT_EQ(asks_[1].server, asks_[0].server);
  EXPECT_TRUE(asks_[1].over_tcp);
  answer(asks_[1].id, foreign("whole"));
  EXPECT_EQ(*replies_.at(ticket).foreign, "whole");
}

TEST_F(ResolverTest, NamesThatDoNotExistAreKeptToo) {
  start();
  ask("nosuch.example.com.");
  answer(asks_[0].id, foreign("none", Rcode::kNameError, 10));
  const Ticket again = ask("nosuch.example.com.");
  EXPECT_EQ(asks_.size(), 1U);
  EXPECT_EQ(*replies_.at(again).foreign, "none");
}

TEST_F(ResolverTest, QuestionsThatWaitAreBounded) {
  options_.asked_max = 3;
  start();
  for (int i = 0; i < 3; ++i) ask(fmt::format("n{}.example.com.", i));
  EXPECT_TRUE(replies_.empty());
  EXPECT_EQ(rcode(ask("n3.example.com.", kOtherPod)), Rcode::kServerFailure);
  const Ticket joins = ask("n1.example.com.", kOtherPod);
  EXPECT_FALSE(replies_.contains(joins));
  answer(asks_[0].id, foreign("answer"));
  ask("n4.example.com.");
  EXPECT_EQ(asks_.size(), 4U);
}

TEST_F(ResolverTest, OneClientDoesNotUseUpAllPlaces) {
  options_.waiting_per_client_max = 2;
  start();
  for (int i = 0; i < 3; ++i) ask(fmt::format("n{}.example.com.", i));
  EXPECT_EQ(replies_.size(), 1U);
  EXPECT_EQ(asks_.size(), 2U);
  ask("n9.example.com.", kOtherPod);
  EXPECT_EQ(asks_.size(), 3U);
  answer(asks_[0].id, foreign("answer"));
  ask("n5.example.com.");
  EXPECT_EQ(asks_.size(), 4U);
}

TEST_F(ResolverTest, WithoutServersOtherNamesAreRefused) {
  options_.servers = 0;
  start();
  EXPECT_EQ(rcode(ask("example.com.")), Rcode::kRefused);
  EXPECT_EQ(rcode(ask("1.2.0.192.in-addr.arpa.", kPod, RecordType::kPtr)), Rcode::kNameError);
  EXPECT_EQ(rcode(ask("out.shop.svc.cluster.local.")), Rcode::kServerFailure);
}

}  // namespace
}  // namespace spillway::dns
