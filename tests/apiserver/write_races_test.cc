// Requests that were decided on one state and are carried out on another: two at once before the store has answered,
// and objects that were replaced under their name in between.
#include "apiserver/server_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using ::testing::HasSubstr;

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kPod = "/api/v1/namespaces/default/pods/p";
const api::HeaderList kMerge = {{"content-type", "application/merge-patch+json"}};
const api::HeaderList kJson = {{"content-type", "application/json"}};

class WriteRaces : public ::testing::Test {
 protected:
  /// A pod on a node, so that its deletion takes its grace.
  std::string create_pod(const std::string& node = "n1") {
    const Answer answer = server.post(kPods, R"({"metadata":{"name":"p","labels":{"app":"a"}},"spec":{)" +
                                                 (node.empty() ? std::string() : R"("nodeName":")" + node + "\",") +
                                                 R"("containers":[{"name":"c","image":"i"}]}})");
    EXPECT_EQ(answer.code, 201) << answer.text;
    return answer.string_at({"metadata", "uid"});
  }

  /// Another writer's change, queued at the store before the requests that follow.
  void change_below(const std::function<void(api::Json&)>& change) {
    api::Json pod = server.get(kPod).body;
    pod.erase({"metadata", "resourceVersion"});
    change(pod);
    server.store().write(
        {"/registry/pods/default/p", std::make_shared<const std::string>(api::to_text(pod)), std::nullopt},
        [](const Result<store::WriteResult>& result) { EXPECT_TRUE(result && result->committed); });
  }

  /// Replaces the pod by another one of the same name.
  void replace_below() {
    change_below([](api::Json& pod) {
      pod["metadata"]["uid"] = "another";
      pod["metadata"]["labels"]["app"] = "another";
    });
  }

  int code_when_idle(const std::shared_ptr<TestSink>& sink) {
    server.run_until_idle();
    EXPECT_TRUE(sink->answered());
    return sink->answered() ? sink->response->status : 0;
  }

  void expect_another_untouched() {
    const Answer pod = server.get(kPod);
    ASSERT_EQ(pod.code, 200) << "the other pod is gone";
    EXPECT_EQ(pod.string_at({"metadata", "uid"}), "another");
    EXPECT_EQ(pod.string_at({"metadata", "labels", "app"}), "another");
    EXPECT_EQ(pod.body.at({"metadata", "deletionTimestamp"}), nullptr);
    EXPECT_EQ(pod.string_at({"status", "reason"}), "");
    const api::Json* conditions = pod.body.at({"status", "conditions"});
    EXPECT_THAT(conditions == nullptr ? "" : api::to_text(*conditions), ::testing::Not(HasSubstr("DisruptionTarget")));
  }

  TestServer server;
};

TEST_F(WriteRaces, APatchBesideADeletionKeepsBoth) {
  for (const bool patch_first : {false, true}) {
    SCOPED_TRACE(patch_first);
    create_pod();
    const auto patch = [&] {
      return server.begin(api::Method::kPatch, kPod, R"({"metadata":{"labels":{"b":"1"}}})", kMerge);
    };
    std::shared_ptr<TestSink> patched;
    if (patch_first) patched = patch();
    const auto deleted = server.begin(api::Method::kDelete, kPod);
    if (!patch_first) patched = patch();
    EXPECT_EQ(code_when_idle(patched), 200);
    EXPECT_EQ(code_when_idle(deleted), 200);
    const Answer pod = server.get(kPod);
    EXPECT_EQ(pod.string_at({"metadata", "labels", "b"}), "1");
    EXPECT_NE(pod.string_at({"metadata", "deletionTimestamp"}), "") << "the deletion was undone";
    ASSERT_EQ(server.remove(std::string(kPod) + "?gracePeriodSeconds=0").code, 200);
  }
}

TEST_F(WriteRaces, TwoPatchesOfDifferentFieldsAreBothKept) {
  create_pod();
  const auto first = server.begin(api::Method::kPatch, kPod, R"({"metadata":{"labels":{"x":"1"}}})", kMerge);
  const auto second = server.begin(api::Method::kPatch, kPod, R"({"metadata":{"labels":{"y":"2"}}})", kMerge);
  const auto status =
      server.begin(api::Method::kPatch, std::string(kPod) + "/status", R"({"status":{"phase":"Running"}})", kMerge);
  EXPECT_EQ(code_when_idle(first), 200);
  EXPECT_EQ(code_when_idle(second), 200);
  EXPECT_EQ(code_when_idle(status), 200);
  const Answer pod = server.get(kPod);
  EXPECT_EQ(pod.string_at({"metadata", "labels", "x"}), "1");
  EXPECT_EQ(pod.string_at({"metadata", "labels", "y"}), "2");
  EXPECT_EQ(pod.string_at({"status", "phase"}), "Running");
}

TEST_F(WriteRaces, EachAnswerShowsWhatItsOwnWriteMade) {
  create_pod();
  const auto first = server.begin(api::Method::kPatch, kPod, R"({"metadata":{"labels":{"app":"x"}}})", kMerge);
  const auto second = server.begin(api::Method::kPatch, kPod, R"({"metadata":{"labels":{"app":"y"}}})", kMerge);
  ASSERT_EQ(code_when_idle(first), 200);
  ASSERT_EQ(code_when_idle(second), 200);
  const api::Json one = api::parse_json(first->response->body).value();
  const api::Json two = api::parse_json(second->response->body).value();
  EXPECT_EQ(one.string_at({"metadata", "labels", "app"}), "x");
  EXPECT_EQ(two.string_at({"metadata", "labels", "app"}), "y");
  EXPECT_NE(one.string_at({"metadata", "resourceVersion"}), two.string_at({"metadata", "resourceVersion"}));
}

/// Another write follows before the first one is answered.
TEST_F(WriteRaces, AnAnswerDoesNotShowWhatOverwroteItsWrite) {
  create_pod();
  api::Json other = server.get(kPod).body;
  other.erase({"metadata", "resourceVersion"});
  other["metadata"]["labels"]["app"] = "other";
  const auto mine = server.begin(api::Method::kPatch, kPod, R"({"metadata":{"labels":{"app":"mine"}}})", kMerge);
  server.store().write(
      {"/registry/pods/default/p", std::make_shared<const std::string>(api::to_text(other)), std::nullopt},
      [](const Result<store::WriteResult>& result) { EXPECT_TRUE(result && result->committed); });
  ASSERT_EQ(code_when_idle(mine), 200);
  const api::Json answer = api::parse_json(mine->response->body).value();
  const Answer present = server.get(kPod);
  EXPECT_EQ(answer.string_at({"metadata", "labels", "app"}), "mine");
  EXPECT_EQ(present.string_at({"metadata", "labels", "app"}), "other");
  EXPECT_EQ(std::stoull(std::string(answer.string_at({"metadata", "resourceVersion"}))) + 1,
            std::stoull(present.string_at({"metadata", "resourceVersion"})));
}

TEST_F(WriteRaces, OfTwoPutsOfOneVersionOneIsRefused) {
  create_pod();
  api::Json pod = server.get(kPod).body;
  pod["metadata"]["labels"]["app"] = "x";
  const auto first = server.begin(api::Method::kPut, kPod, api::to_text(pod), kJson);
  pod["metadata"]["labels"]["app"] = "y";
  const auto second = server.begin(api::Method::kPut, kPod, api::to_text(pod), kJson);
  EXPECT_EQ(code_when_idle(first), 200);
  EXPECT_EQ(code_when_idle(second), 409);
  EXPECT_EQ(server.get(kPod).string_at({"metadata", "labels", "app"}), "x");
}

TEST_F(WriteRaces, OfTwoCreationsOneIsRefused) {
  const std::string body = R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  const auto first = server.begin(api::Method::kPost, kPods, body, kJson);
  const auto second = server.begin(api::Method::kPost, kPods, body, kJson);
  EXPECT_EQ(code_when_idle(first), 201);
  EXPECT_EQ(code_when_idle(second), 409);
}

TEST_F(WriteRaces, OfTwoBindingsOneIsRefused) {
  create_pod("");
  const auto bind = [&](const std::string& node) {
    return server.begin(api::Method::kPost, std::string(kPod) + "/binding",
                        R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":")" + node + "\"}}", kJson);
  };
  const auto first = bind("n1");
  const auto second = bind("n2");
  EXPECT_EQ(code_when_idle(first), 201);
  EXPECT_EQ(code_when_idle(second), 409);
  EXPECT_EQ(server.get(kPod).string_at({"spec", "nodeName"}), "n1");
}

TEST_F(WriteRaces, ABindingBesideADeletionDoesNotBringThePodBack) {
  create_pod("");
  const auto deleted = server.begin(api::Method::kDelete, kPod);
  const auto bound = server.begin(api::Method::kPost, std::string(kPod) + "/binding",
                                  R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})", kJson);
  EXPECT_EQ(code_when_idle(deleted), 200);
  EXPECT_EQ(code_when_idle(bound), 404);
  EXPECT_EQ(server.get(kPod).code, 404);
}

TEST_F(WriteRaces, ADeletionOfAUidLeavesTheNextOfThatName) {
  const std::string uid = create_pod();
  replace_below();
  const auto sink = server.begin(
      api::Method::kDelete, kPod,
      R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":")" + uid + "\"}}",
      kJson);
  EXPECT_EQ(code_when_idle(sink), 409);
  expect_another_untouched();
}

TEST_F(WriteRaces, ADeletionOfAVersionLeavesALaterOne) {
  create_pod();
  const std::string version = server.get(kPod).string_at({"metadata", "resourceVersion"});
  change_below([](api::Json& pod) { pod["metadata"]["labels"]["app"] = "later"; });
  const auto sink = server.begin(
      api::Method::kDelete, kPod,
      R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":")" + version + "\"}}", kJson);
  EXPECT_EQ(code_when_idle(sink), 409);
  EXPECT_EQ(server.get(kPod).body.at({"metadata", "deletionTimestamp"}), nullptr);
}

TEST_F(WriteRaces, AStatusOfAUidIsNotWrittenOnTheNextOfThatName) {
  const std::string uid = create_pod();
  replace_below();
  const auto sink =
      server.begin(api::Method::kPatch, std::string(kPod) + "/status",
                   R"({"metadata":{"uid":")" + uid + R"("},"status":{"phase":"Failed","reason":"Evicted"}})", kMerge);
  EXPECT_EQ(code_when_idle(sink), 422) << "a patch that would change the uid";
  expect_another_untouched();
}

TEST_F(WriteRaces, APutOfAUidIsNotWrittenOnTheNextOfThatName) {
  create_pod();
  api::Json pod = server.get(kPod).body;
  pod.erase({"metadata", "resourceVersion"});
  pod["metadata"]["labels"]["app"] = "mine";
  replace_below();
  EXPECT_EQ(code_when_idle(server.begin(api::Method::kPut, kPod, api::to_text(pod), kJson)), 409);
  expect_another_untouched();
}

TEST_F(WriteRaces, ABindingOfAUidIsNotMadeForTheNextOfThatName) {
  const std::string uid = create_pod("");
  replace_below();
  const auto sink =
      server.begin(api::Method::kPost, std::string(kPod) + "/binding",
                   R"({"metadata":{"name":"p","uid":")" + uid + R"("},"target":{"kind":"Node","name":"n1"}})", kJson);
  EXPECT_EQ(code_when_idle(sink), 409);
  EXPECT_EQ(server.get(kPod).string_at({"spec", "nodeName"}), "");
}

TEST_F(WriteRaces, AnEvictionDoesNotGoOnToTheNextOfThatName) {
  create_pod();
  ASSERT_EQ(server
                .merge(std::string(kPod) + "/status",
                       R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})")
                .code,
            200);
  replace_below();
  const auto sink = server.begin(
      api::Method::kPost, std::string(kPod) + "/eviction",
      R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p","namespace":"default"}})", kJson);
  EXPECT_EQ(code_when_idle(sink), 409);
  expect_another_untouched();
}

/// The pod is pending when the eviction is evaluated, and runs when it is to be deleted.
TEST_F(WriteRaces, AnEvictionOfAPodThatBeginsToRunIsDecidedAgain) {
  create_pod();
  server.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
              R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"a"}}}})");
  server.advance(seconds(2));
  change_below([](api::Json& pod) {
    pod["status"] = *api::parse_json(R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})");
  });
  EXPECT_EQ(
      code_when_idle(server.begin(
          api::Method::kPost, std::string(kPod) + "/eviction",
          R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p","namespace":"default"}})", kJson)),
      429);
  EXPECT_EQ(server.get(kPod).string_at({"metadata", "deletionTimestamp"}), "");
}

TEST_F(WriteRaces, AnEvictionOfAPendingPodThatChangesGoesOn) {
  create_pod();
  change_below([](api::Json& pod) { pod["metadata"]["labels"]["more"] = "b"; });
  EXPECT_EQ(
      code_when_idle(server.begin(
          api::Method::kPost, std::string(kPod) + "/eviction",
          R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p","namespace":"default"}})", kJson)),
      201);
}

/// The pod may be evicted freely while it is unready, and is one of the healthy ones when it is to be marked.
TEST_F(WriteRaces, AnEvictionOfAnUnreadyPodThatBecomesReadyIsRefused) {
  const auto status = [](const char* ready) {
    return R"({"phase":"Running","conditions":[{"type":"Ready","status":")" + std::string(ready) + R"("}]})";
  };
  create_pod();
  server.merge(std::string(kPod) + "/status", R"({"status":)" + status("False") + "}");
  server.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
              R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"unhealthyPodEvictionPolicy":"AlwaysAllow",)"
              R"("selector":{"matchLabels":{"app":"a"}}}})");
  server.advance(seconds(2));
  change_below([&](api::Json& pod) { pod["status"] = *api::parse_json(status("True")); });
  const auto sink = server.begin(
      api::Method::kPost, std::string(kPod) + "/eviction",
      R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p","namespace":"default"}})", kJson);
  EXPECT_EQ(code_when_idle(sink), 429);
  EXPECT_NE(sink->response->body.find("still being processed"), std::string::npos) << sink->response->body;
  EXPECT_EQ(server.get(kPod).text.find("DisruptionTarget"), std::string::npos);
}

/// The first of two evictions spends the last disruption; both were decided on the same budget.
TEST_F(WriteRaces, TwoEvictionsAtOnceDoNotSpendOneDisruptionTwice) {
  server.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
              R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"a"}}}})");
  for (const char* name : {"x", "y"}) {
    server.post(kPods,
                std::string(R"({"metadata":{"name":")") + name +
                    R"(","labels":{"app":"a"}},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}})");
    ASSERT_EQ(server
                  .merge(std::string(kPods) + "/" + name + "/status",
                         R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})")
                  .code,
              200);
  }
  server.advance(seconds(2));
  const auto evict = [&](const std::string& name) {
    return server.begin(
        api::Method::kPost, std::string(kPods) + "/" + name + "/eviction",
        R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":")" + name + R"(","namespace":"default"}})",
        kJson);
  };
  const auto first = evict("x");
  const auto second = evict("y");
  EXPECT_EQ(code_when_idle(first), 201);
  EXPECT_EQ(code_when_idle(second), 429);
}

TEST_F(WriteRaces, RequestsOfOneTurnAreAnsweredOnceEach) {
  create_pod();
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (int i = 0; i < 20; ++i) {
    sinks.push_back(server.begin(api::Method::kPatch, kPod,
                                 R"({"metadata":{"labels":{"n":")" + std::to_string(i) + "\"}}}", kMerge));
  }
  server.run_until_idle();
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->answered());
    EXPECT_EQ(sink->response->status, 200);
  }
  EXPECT_EQ(server.server().in_flight(), 0U);
}

}  // namespace

}  // namespace spillway::apiserver
