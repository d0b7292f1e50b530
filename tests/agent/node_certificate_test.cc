// Goal: a node gets its serving certificate by asking, waits for it politely, and replaces it before it ends.
#include "agent/serving/node_certificate.h"

#include "api/text/base64.h"
#include "base/check.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

using api::Json;

class FakeKeys final : public CertificateKeys {
 public:
  Result<std::string> make_request() override { return "request " + std::to_string(++requests); }

  Result<WallTime> install(const std::string& certificate_pem) override {
    if (certificate_pem != "for request " + std::to_string(requests)) return Error{ErrorCode::kInvalid, "not mine", {}};
    ++installed;
    return end;
  }

  int requests = 0;
  int installed = 0;
  WallTime end{};
};

class Serving : public ::testing::Test {
 protected:
  Serving() {
    keys_.end = now_.wall + hours(100);
    certificate_.start(now_);
    collect();
  }

  void collect() {
    for (client::ApiCommand& command : certificate_.take_api_commands()) {
      calls_.push_back(std::get<client::SendCall>(std::move(command)));
    }
  }

  void answer(int code, const Json& body) {
    ASSERT_FALSE(calls_.empty()) << "nothing was asked";
    const client::CallId id = calls_.front().id;
    calls_.erase(calls_.begin());
    certificate_.on_api_event(client::CallDone{id, api::Response{code, {}, api::to_text(body)}}, now_);
    collect();
  }

  /// Advances the time, up to the next request.
  void advance(Duration by) {
    const Instant until = now_.mono + by;
    while (certificate_.next_wakeup() && *certificate_.next_wakeup() <= until && calls_.empty()) {
      move_to(std::max(now_.mono, *certificate_.next_wakeup()));
      certificate_.on_wakeup(now_);
      collect();
    }
    if (calls_.empty()) move_to(until);
  }

  void move_to(Instant time) {
    now_.wall += std::chrono::duration_cast<microseconds>(time - now_.mono);
    now_.mono = time;
  }

  static Json request(const Json& status = Json::object({})) {
    return Json::object(
        {{"kind", "CertificateSigningRequest"}, {"metadata", Json::object({{"name", "csr-abc"}})}, {"status", status}});
  }

  static Json issued(const std::string& pem) {
    return request(Json::object({{"certificate", api::encode_base64(pem)}}));
  }

  static Json denied() {
    return request(Json::object(
        {{"conditions", Json::array({Json::object({{"type", "Denied"}, {"status", "True"}, {"message", "no"}})})}}));
  }

  FakeKeys keys_;
  Now now_{Instant(seconds(100)), WallTime(seconds(1'800'000'000))};
  NodeCertificate certificate_{CertificatePurpose::kServing, keys_, telemetry::Log(), Rng(1)};
  std::vector<client::SendCall> calls_;
};

TEST_F(Serving, AsksForACertificateAndTakesIt) {
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_.front().request.method, api::Method::kPost);
  EXPECT_EQ(calls_.front().request.target, "/apis/certificates.k8s.io/v1/certificatesigningrequests");
  const Json body = api::parse_json(calls_.front().request.body).value();
  EXPECT_EQ(body.string_at({"spec", "signerName"}), "kubernetes.io/kubelet-serving");
  EXPECT_EQ(api::decode_base64(body.string_at({"spec", "request"})).value(), "request 1");
  answer(201, request());
  EXPECT_TRUE(calls_.empty());
  advance(seconds(1));
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_.front().request.target, "/apis/certificates.k8s.io/v1/certificatesigningrequests/csr-abc");
  answer(200, issued("for request 1"));
  EXPECT_EQ(keys_.installed, 1);
}

TEST_F(Serving, ReplacesItWithAFifthOfItsLifeLeft) {
  answer(201, issued("for request 1"));
  advance(hours(79));
  EXPECT_TRUE(calls_.empty());
  advance(hours(2));
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(keys_.requests, 2);
}

TEST_F(Serving, WaitsLongerEachTimeForASigner) {
  answer(201, request());
  int polls = 0;
  for (const Instant end = now_.mono + minutes(10); now_.mono < end;) {
    advance(minutes(1));
    if (calls_.empty()) break;
    ++polls;
    answer(200, request());
  }
  EXPECT_GT(polls, 15);
  EXPECT_LT(polls, 40);
}

TEST_F(Serving, ADenialIsNoReasonToAskEverySecond) {
  int asked = 0;
  for (const Instant end = now_.mono + hours(1); now_.mono < end && !calls_.empty();) {
    ++asked;
    answer(201, denied());
    advance(hours(1));
  }
  EXPECT_GT(asked, 10);
  EXPECT_LT(asked, 25);
  EXPECT_EQ(keys_.installed, 0);
}

TEST_F(Serving, AnotherKeysCertificateIsNotTaken) {
  answer(201, issued("for request 7"));
  EXPECT_EQ(keys_.installed, 0);
  advance(seconds(2));
  EXPECT_EQ(keys_.requests, 2);
}

TEST(NodeClientCertificate, IsAskedForBeforeTheOneThereIsEnds) {
  FakeKeys keys;
  Now now{Instant(seconds(100)), WallTime(seconds(1'800'000'000))};
  NodeCertificate certificate(CertificatePurpose::kClient, keys, telemetry::Log(), Rng(1), now.wall + hours(10));
  certificate.start(now);
  EXPECT_TRUE(certificate.take_api_commands().empty());
  EXPECT_EQ(certificate.next_wakeup(), now.mono + hours(8));
  now.mono += hours(8);
  now.wall += hours(8);
  certificate.on_wakeup(now);
  const auto calls = certificate.take_api_commands();
  ASSERT_EQ(calls.size(), 1U);
  const Json body = api::parse_json(std::get<client::SendCall>(calls.front()).request.body).value();
  EXPECT_EQ(body.string_at({"spec", "signerName"}), "kubernetes.io/kube-apiserver-client-kubelet");
  EXPECT_EQ(*body.at({"spec", "usages"}), Json::array({"digital signature", "client auth"}));
}

}  // namespace
}  // namespace spillway::agent
