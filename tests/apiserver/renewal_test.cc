// Heartbeats on the short way against the same heartbeats on the general one: for any request, two servers that differ
// in nothing else answer, deliver and store the same bytes.
#include "api/schema/protobuf.h"
#include "api/schema/schema.h"
#include "api/text/time_text.h"
#include "apiserver/renewal_requests.h"
#include "apiserver/server_fixture.h"
#include "base/rng.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <vector>

namespace spillway::apiserver {

namespace {

using ::testing::HasSubstr;

/// Sends the same requests to a server that renews in place and to one that does not.
class Renewals : public ::testing::Test {
 protected:
  Renewals() {
    general_.short_renewals = false;
    for (TestServer* server : both_) {
      server->restart();
      watches_.push_back(server->watch(kLeases + "?watch=true"));
      Asked frames{.method = api::Method::kGet, .target = kLeases + "?watch=true", .body = {}, .headers = {}};
      accept_protobuf(frames);
      frames_.push_back(server->send(frames.method, frames.target, {}, frames.headers));
    }
  }

  std::string both(const Asked& asked) {
    std::array<Answer, 2> answers;
    for (std::size_t i = 0; i < 2; ++i)
      answers[i] = both_[i]->call(asked.method, asked.target, asked.body, asked.headers);
    expect_same(asked, answers[0].code, answers[1].code, answers[0].text, answers[1].text);
    EXPECT_EQ(answers[0].headers, answers[1].headers) << asked.body;
    return answers[0].text;
  }

  static void expect_same(const Asked& asked, int code, int other_code, const std::string& text,
                          const std::string& other_text) {
    EXPECT_EQ(code, other_code) << asked.target << " " << asked.body;
    EXPECT_EQ(text, other_text) << asked.target << " " << asked.body;
  }

  /// Sends all requests before the store has answered.
  void at_once(const std::vector<Asked>& requests) {
    std::array<std::vector<std::shared_ptr<TestSink>>, 2> sinks;
    for (std::size_t i = 0; i < 2; ++i) {
      for (const Asked& asked : requests) {
        sinks[i].push_back(both_[i]->begin(asked.method, asked.target, asked.body, asked.headers));
      }
      both_[i]->run_until_idle();
    }
    for (std::size_t n = 0; n < requests.size(); ++n) {
      ASSERT_TRUE(sinks[0][n]->answered() && sinks[1][n]->answered()) << requests[n].body;
      expect_same(requests[n], sinks[0][n]->response->status, sinks[1][n]->response->status,
                  sinks[0][n]->response->body, sinks[1][n]->response->body);
      expect_as_bytes(*sinks[0][n]->response, requests[n].body);
    }
  }

  /// Writes the object as another writer of the same store, before the requests that follow.
  void touch_below(const std::string& name) {
    for (TestServer* server : both_) {
      api::Json lease = server->get(kLeases + "/" + name).body;
      if (lease.find("spec") == nullptr) return;
      lease.erase({"metadata", "resourceVersion"});
      lease["spec"]["leaseTransitions"] = 99;
      server->store().write(
          {"/registry/leases/default/" + name, std::make_shared<const std::string>(api::to_text(lease)), std::nullopt},
          [](const Result<store::WriteResult>& result) { EXPECT_TRUE(result && result->committed); });
    }
  }

  /// True: the clients of both servers are in their process.
  void set_in_process(bool in_process) {
    for (TestServer* server : both_) server->in_process = in_process;
  }

  void advance(Duration by) {
    for (TestServer* server : both_) server->advance(by);
  }

  /// The number of updates that took that way on the server with the short path.
  double count(std::string_view path) {
    const std::string text = quick_.get("/metrics").text;
    general_.get("/metrics");
    const std::string line = fmt::format("spillway_lease_updates_total{{path=\"{}\"}} ", path);
    const std::size_t at = text.find(line);
    return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + line.size(), nullptr);
  }

  void expect_same_past() {
    for (int n = 0; n < 6; ++n) {
      const std::string key = fmt::format("/registry/leases/default/n{}", n);
      EXPECT_EQ(quick_.at_rest(key), general_.at_rest(key));
    }
    EXPECT_EQ(frames_[0]->text, frames_[1]->text);
    EXPECT_EQ(watches_[0]->text, watches_[1]->text);
    EXPECT_EQ(quick_.get(kLeases).text, general_.get(kLeases).text);
    EXPECT_EQ(quick_.store().revision(), general_.store().revision());
  }

  api::Json lease(const std::string& name) { return quick_.get(kLeases + "/" + name).body; }

  /// Compares the lease on both servers; returns the one that was renewed in place.
  api::Json both_lease(const std::string& name) {
    general_.get(kLeases + "/" + name);
    return lease(name);
  }

  void create(const std::string& name, const std::string& metadata = "", const std::string& spec = "") {
    both({.method = api::Method::kPost,
          .target = kLeases,
          .body =
              fmt::format(R"({{"metadata":{{"name":"{}"{}}},"spec":{{"holderIdentity":"{}","leaseDurationSeconds":40,)"
                          R"("renewTime":"2026-01-01T00:00:00.000000Z"{}}}}})",
                          name, metadata, name, spec),
          .headers = {{"user-agent", "kubelet/v1.32.0"}}});
  }

  TestServer quick_;
  TestServer general_;
  std::array<TestServer*, 2> both_{&quick_, &general_};
  std::vector<std::shared_ptr<TestSink>> watches_;
  std::vector<std::shared_ptr<TestSink>> frames_;  // frames of watches in protobuf
};

TEST_F(Renewals, AHeartbeatTakesTheShortWay) {
  create("n1");
  for (int i = 0; i < 3; ++i) {
    advance(seconds(10));
    both(heartbeat(both_lease("n1"), quick_.now().wall));
  }
  EXPECT_EQ(count("spliced"), 3);
  expect_same_past();
  EXPECT_EQ(lease("n1").string_at({"spec", "renewTime"}), api::format_micro_time(quick_.now().wall));
  const api::Json managed = *lease("n1").at({"metadata", "managedFields"});
  EXPECT_EQ(managed.if_array()->front().string_at({"time"}), api::format_time(quick_.now().wall));
}

TEST_F(Renewals, InWhateverEncodingsAHeartbeatTakesTheShortWay) {
  create("n1");
  int sent = 0;
  for (const bool in : {false, true}) {
    for (const bool out : {false, true}) {
      advance(seconds(10));
      Asked asked = heartbeat(both_lease("n1"), quick_.now().wall);
      if (in) asked = in_protobuf(std::move(asked));
      if (out) accept_protobuf(asked);
      const std::string answer = both(asked);
      EXPECT_EQ(answer.starts_with("k8s"), out);
      EXPECT_EQ(count("spliced"), ++sent);
    }
  }
  expect_same_past();
}

/// A kubelet sends the answer back with another time.
TEST_F(Renewals, TheAnswerInProtobufIsTheNextHeartbeat) {
  create("n1");
  const api::Type& type = *api::find_kind("coordination.k8s.io/v1", "Lease");
  api::Json lease = both_lease("n1");
  for (int i = 1; i < 5; ++i) {
    advance(milliseconds(10'123));
    Asked asked = in_protobuf(heartbeat(lease, quick_.now().wall));
    accept_protobuf(asked);
    const Result<api::Json> answer = api::read_protobuf(type, both(asked));
    ASSERT_TRUE(answer);
    lease = *answer;
    EXPECT_EQ(count("spliced"), i);
  }
  EXPECT_EQ(api::to_text(both_lease("n1")), api::to_text(lease));
}

TEST_F(Renewals, AClientInTheProcessIsAnsweredWithADocument) {
  create("n1");
  set_in_process(true);
  for (int i = 1; i < 4; ++i) {
    advance(seconds(10));
    const Asked asked = heartbeat(both_lease("n1"), quick_.now().wall);
    const auto sink = quick_.send(asked.method, asked.target, asked.body, asked.headers);
    general_.call(asked.method, asked.target, asked.body, asked.headers);
    EXPECT_EQ(count("spliced"), i);
    ASSERT_TRUE(sink->answered() && sink->response->document);
    expect_as_bytes(*sink->response, asked.body);
  }
  expect_same_past();
}

TEST_F(Renewals, TheSameTimeAgainIsNotWritten) {
  create("n1");
  advance(seconds(1));
  const Asked asked = heartbeat(both_lease("n1"), quick_.now().wall);
  both(asked);
  const store::Revision before = quick_.store().revision();
  both(heartbeat(both_lease("n1"), quick_.now().wall));
  EXPECT_EQ(quick_.store().revision(), before);
  EXPECT_EQ(count("unchanged"), 1);
}

TEST_F(Renewals, ALeaseThatThisServerHasNotCheckedIsCheckedFirst) {
  create("n1");
  touch_below("n1");
  for (TestServer* server : both_) server->run_until_idle();
  advance(seconds(1));
  both(heartbeat(both_lease("n1"), quick_.now().wall));
  EXPECT_EQ(count("spliced"), 0);
  EXPECT_EQ(count("object"), 1);
  advance(seconds(1));
  both(heartbeat(both_lease("n1"), quick_.now().wall));
  EXPECT_EQ(count("spliced"), 1);
}

TEST_F(Renewals, AnotherNodesLeaseIsRefused) {
  create("n1");
  for (TestServer* server : both_) {
    server->user = {"system:node:n2", {}, {"system:nodes", "system:masters", "system:authenticated"}};
  }
  const std::string refused = both(heartbeat(both_lease("n1"), quick_.now().wall));
  EXPECT_THAT(refused, HasSubstr("another node"));
  for (TestServer* server : both_) server->user = kAdmin;
  EXPECT_EQ(count("admission"), 1);
  EXPECT_EQ(count("spliced"), 0);
}

TEST_F(Renewals, TwoAtOnceOfOneVersionAreOneRenewalAndOneConflict) {
  create("n1");
  advance(seconds(1));
  const Asked first = heartbeat(both_lease("n1"), quick_.now().wall);
  Asked patch = {.method = api::Method::kPatch,
                 .target = kLeases + "/n1",
                 .body = R"({"metadata":{"labels":{"a":"b"}}})",
                 .headers = kMerge};
  at_once({first, first, patch});
  EXPECT_EQ(count("spliced"), 1);
  EXPECT_EQ(count("queued"), 2);
  EXPECT_EQ(lease("n1").string_at({"metadata", "labels", "a"}), "b");
  expect_same_past();
}

TEST_F(Renewals, AWriteThatWasFasterIsAConflict) {
  create("n1");
  advance(seconds(1));
  const Asked asked = heartbeat(both_lease("n1"), quick_.now().wall);
  touch_below("n1");
  at_once({asked});
  EXPECT_EQ(count("spliced"), 1);
  EXPECT_EQ(lease("n1").at({"spec", "leaseTransitions"})->if_int64(), 99);
  expect_same_past();
}

TEST_F(Renewals, WhateverIsAskedBothWaysSayTheSame) {
  const char* seeds = std::getenv("SPILLWAY_RENEWAL_SEEDS");
  const int rounds = seeds != nullptr ? std::atoi(seeds) : 3;
  for (TestServer* server : both_) server->post("/api/v1/nodes", R"({"metadata":{"name":"owner"}})");
  const std::string uid(quick_.get("/api/v1/nodes/owner").body.string_at({"metadata", "uid"}));
  general_.get("/api/v1/nodes/owner");
  const std::string owner =
      R"("ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"owner","uid":")" + uid + "\"}]";
  create("n0");
  create("n1", "," + owner);
  create("n2", R"(,"labels":{"a":"b","c":""},"annotations":{"x":"y z","empty":""})");
  create("n3", R"(,"finalizers":["example.com/x"])",
         R"(,"leaseTransitions":3,"acquireTime":"2026-01-01T00:00:00.000000Z")");
  create("n4", "", R"(,"leaseTransitions":0)");
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    Rng rng = Rng(static_cast<std::uint64_t>(round)).fork("renewals");
    RequestMaker maker(rng);
    for (int step = 0; step < 200 && !HasFailure(); ++step) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", round, step));
      set_in_process(rng.below(3) == 0);
      if (rng.below(3) == 0) advance(milliseconds(static_cast<std::int64_t>(rng.below(3'000))));
      std::vector<Asked> requests;
      const std::uint64_t count = rng.below(6) == 0 ? 3 : 1;
      const std::string name = fmt::format("n{}", rng.below(5));
      for (std::uint64_t i = 0; i < count; ++i) {
        const api::Json stored = both_lease(name);
        if (stored.find("spec") == nullptr || stored.find("spec")->if_object() == nullptr) break;
        requests.push_back(rng.below(3) == 0 ? heartbeat(stored, quick_.now().wall)
                                             : maker.make(stored, quick_.now().wall));
        if (rng.below(4) == 0) requests.back() = maker.as_of_kubelet(stored, quick_.now().wall);
      }
      if (requests.empty()) create(name);
      if (rng.below(25) == 0) touch_below(name);
      if (requests.size() == 1 && rng.below(2) == 0) {
        both(requests.front());
      } else {
        at_once(requests);
      }
      if (rng.below(60) == 0) both({.method = api::Method::kDelete, .target = kLeases + "/" + name, .headers = {}});
    }
  }
  expect_same_past();
  EXPECT_GT(count("spliced"), 30 * rounds);
  for (const char* path : {"unchanged", "request", "object", "content", "queued"}) EXPECT_GT(count(path), 0) << path;
}

}  // namespace

}  // namespace spillway::apiserver
