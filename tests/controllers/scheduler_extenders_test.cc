// Goal: pods that concern extenders are placed as these allow and prefer, and bound by the extender that binds; any
// answer of an extender, or none, has a bounded cost, is reported in one line, and delays no other pod.
// Method: the scheduler that ships against the real API server; extenders are functions that answer after a while.
#include "controllers/controller_set.h"
#include "controllers/scheduling/extender_calls.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using scheduling::Extender;
using scheduling::ExtenderVerb;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kExtendedPods = "/api/v1/namespaces/default/pods";

/// A scheduler whose questions to extenders are answered by the test.
class AnsweredScheduler final : public client::ApiEngine {
 public:
  struct Answer {
    Result<api::Response> response;
    Duration after{};
  };

  /// nullopt: never.
  using Extenders = std::function<std::optional<Answer>(const ExtenderCall& call)>;

  AnsweredScheduler(Scheduler::Options options, telemetry::Registry& metrics, Extenders extenders)
      : scheduler_(std::move(options), Rng(4), telemetry::Log(), metrics), extenders_(std::move(extenders)) {}

  std::string_view name() const override { return scheduler_.name(); }

  void start(Now now) override { scheduler_.start(now); }

  void on_api_event(const client::ApiEvent& event, Now now) override {
    scheduler_.on_api_event(event, now);
    ask(now);
  }

  void on_wakeup(Now now) override {
    scheduler_.on_wakeup(now);
    ask(now);
    while (!answers_.empty() && answers_.begin()->first <= now.mono) {
      const auto [id, response] = answers_.begin()->second;
      answers_.erase(answers_.begin());
      scheduler_.on_extender_answer(id, response, now);
      ask(now);
    }
  }

  std::optional<Instant> next_wakeup() const override {
    std::optional<Instant> due = scheduler_.next_wakeup();
    if (!answers_.empty()) due = due ? std::min(*due, answers_.begin()->first) : answers_.begin()->first;
    return due;
  }

  std::vector<client::ApiCommand> take_api_commands() override { return scheduler_.take_api_commands(); }

 private:
  void ask(Now now) {
    for (const ExtenderCall& call : scheduler_.take_extender_calls()) {
      if (auto answer = extenders_(call)) {
        answers_.emplace(now.mono + answer->after, std::pair(call.id, std::move(answer->response)));
      }
    }
  }

  Scheduler scheduler_;
  Extenders extenders_;
  std::multimap<Instant, std::pair<std::uint64_t, Result<api::Response>>> answers_;
};

AnsweredScheduler::Answer say(std::string body, Duration after = Duration::zero(), int status = 200) {
  return {api::Response{.status = status, .headers = {}, .body = std::move(body), .document = nullptr}, after};
}

class SchedulerExtenders : public ::testing::Test {
 protected:
  SchedulerExtenders() : controllers_({}, Rng(3), telemetry::Log(), metrics_) {
    cluster_.create("/apis/scheduling.k8s.io/v1/priorityclasses",
                    Json::object({{"apiVersion", "scheduling.k8s.io/v1"},
                                  {"kind", "PriorityClass"},
                                  {"metadata", Json::object({{"name", "high"}})},
                                  {"value", 1000}}));
    for (const char* name : {"n0", "n1", "n2"}) cluster_.add_node(name);
    cluster_.run(controllers_);
  }

  ~SchedulerExtenders() override {
    cluster_.stop(controllers_);
    if (scheduler_) cluster_.stop(*scheduler_);
  }

  void start(std::vector<Extender> extenders, Scheduler::Options options = {}) {
    options.extenders = std::move(extenders);
    scheduler_ = std::make_unique<AnsweredScheduler>(
        std::move(options), metrics_, [this](const ExtenderCall& call) -> std::optional<AnsweredScheduler::Answer> {
          asked_.emplace_back(call.verb, *api::parse_json(call.body));
          const auto answer = answers_.find(call.verb);
          return answer == answers_.end() ? std::nullopt : answer->second(asked_.back().second);
        });
    cluster_.run(*scheduler_);
    cluster_.advance(seconds(2));
  }

  static Extender filtering() {
    Extender extender;
    extender.url = "http://gpu.example/v1/";
    extender.filter_verb = "filter";
    extender.knows_nodes = true;
    return extender;
  }

  /// The answer of an extender that binds the pod.
  AnsweredScheduler::Answer bind(const Json& args) {
    const std::string name(args.string_at({"PodName"}));
    cluster_.create(fmt::format("{}/{}/binding", kExtendedPods, name),
                    Json::object({{"apiVersion", "v1"},
                                  {"kind", "Binding"},
                                  {"metadata", Json::object({{"name", name}})},
                                  {"target", Json::object({{"kind", "Node"}, {"name", args.string_at({"Node"})}})}}));
    return say("{}");
  }

  void answer(ExtenderVerb verb, std::string body) {
    answers_[verb] = [body = std::move(body)](const Json&) { return say(body); };
  }

  void create(std::string_view name, std::string_view memory = "10Mi", std::string_view priority_class = {}) {
    Json pod = pod_json(std::string(name));
    Json& container = pod.find("spec")->find("containers")->if_array()->front();
    container["resources"] = Json::object({{"requests", Json::object({{"memory", memory}})}});
    pod.make({"metadata", "annotations"})["gpu.example/kind"] = "large";
    if (!priority_class.empty()) pod.make({"spec"})["priorityClassName"] = priority_class;
    cluster_.create(kExtendedPods, pod);
    cluster_.run_until_idle();
  }

  std::string at(std::string_view name, std::initializer_list<std::string_view> path) {
    return std::string(cluster_.get(fmt::format("{}/{}", kExtendedPods, name)).string_at(path));
  }

  std::string node_of(std::string_view name) { return at(name, {"spec", "nodeName"}); }

  Json condition(std::string_view name) {
    const Json found = cluster_.get(fmt::format("{}/{}", kExtendedPods, name));
    const Json* list = found.at({"status", "conditions"});
    for (const Json& each : list == nullptr ? Json::Array() : *list->if_array()) {
      if (each.string_at({"type"}) == "PodScheduled") return each;
    }
    return {};
  }

  std::string message(std::string_view name) { return std::string(condition(name).string_at({"message"})); }

  std::size_t asked(ExtenderVerb verb) const {
    return static_cast<std::size_t>(std::ranges::count(asked_, verb, &std::pair<ExtenderVerb, Json>::first));
  }

  telemetry::Registry metrics_;
  TestCluster cluster_;
  ControllerSet controllers_;
  std::map<ExtenderVerb, std::function<std::optional<AnsweredScheduler::Answer>(const Json&)>> answers_;
  std::vector<std::pair<ExtenderVerb, Json>> asked_;
  std::unique_ptr<AnsweredScheduler> scheduler_;
};

TEST_F(SchedulerExtenders, FilterAndScoreDecide) {
  Extender extender = filtering();
  extender.prioritize_verb = "rank";
  extender.weight = 5;
  start({extender});
  answer(ExtenderVerb::kFilter, R"({"nodenames": ["n2", "n1"], "failedNodes": {"n0": "no device"}})");
  answer(ExtenderVerb::kPrioritize, R"([{"Host": "n1", "Score": 9}, {"Host": "n2", "Score": 10}])");
  create("wants");
  EXPECT_EQ(node_of("wants"), "n2");
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_EQ(asked_[0].second.find("NodeNames")->if_array()->size(), 3U);
  EXPECT_TRUE(asked_[0].second.find("Nodes")->is_null());
  EXPECT_EQ(asked_[0].second.string_at({"Pod", "metadata", "name"}), "wants");
  EXPECT_EQ(asked_[0].second.string_at({"Pod", "spec", "terminationMessagePolicy"}), "");
  EXPECT_EQ(asked_[0]
                .second.find("Pod")
                ->at({"spec", "containers"})
                ->if_array()
                ->front()
                .string_at({"terminationMessagePolicy"}),
            "File")
      << "the pod as the API has it, with what the scheduler does not read";
  EXPECT_EQ(asked_[1].second.find("NodeNames")->if_array()->size(), 2U);
  EXPECT_THAT(metrics_.text(), HasSubstr("spillway_scheduler_extender_refusals_total"
                                         "{extender=\"http://gpu.example/v1/\"} 1"));
}

TEST_F(SchedulerExtenders, WholeNodesAreSentToThoseThatKnowNone) {
  Extender extender = filtering();
  extender.knows_nodes = false;
  start({extender});
  answers_[ExtenderVerb::kFilter] = [](const Json& args) {
    Json nodes = *args.find("Nodes");
    std::erase_if(*nodes.find("items")->if_array(),
                  [](const Json& node) { return node.string_at({"metadata", "name"}) != "n1"; });
    return say(api::to_text(Json::object({{"Nodes", nodes}})));
  };
  create("wants");
  EXPECT_EQ(node_of("wants"), "n1");
  EXPECT_TRUE(asked_.front().second.find("NodeNames")->is_null());
}

TEST_F(SchedulerExtenders, TheRefusedAreReportedWithTheCauseAndTriedAgain) {
  start({filtering()});
  answer(ExtenderVerb::kFilter,
         R"({"NodeNames": [], "FailedNodes": {"n0": "device\nbroken", "n1": "taken"},
             "FailedAndUnresolvableNodes": {"n1": "gone for good"}})");
  create("wants");
  EXPECT_EQ(node_of("wants"), "");
  EXPECT_THAT(message("wants"), HasSubstr("0/3 nodes are available: 1 device broken (extender http://gpu.example/v1/), "
                                          "1 gone for good (extender http://gpu.example/v1/), "
                                          "1 node(s) were left out by extender http://gpu.example/v1/."));
  EXPECT_EQ(condition("wants").string_at({"reason"}), "Unschedulable");
  EXPECT_EQ(cluster_.events_about("wants")["FailedScheduling"], 1);
  answer(ExtenderVerb::kFilter, R"({"NodeNames": ["n1"]})");
  cluster_.advance(minutes(4));
  EXPECT_EQ(node_of("wants"), "") << "nothing has changed";
  cluster_.advance(seconds(65));
  EXPECT_EQ(node_of("wants"), "n1");
}

TEST_F(SchedulerExtenders, WhatVolumesNeedCountsWhileOneIsAsked) {
  start({filtering()});
  answers_[ExtenderVerb::kFilter] = [](const Json&) { return say(R"({"NodeNames": []})", seconds(2)); };
  Json pod = pod_json("wants");
  pod.make({"spec"})["volumes"] = Json::array(
      {Json::object({{"name", "v"}, {"gcePersistentDisk", Json::object({{"pdName", "d"}, {"fsType", "ext4"}})}})});
  cluster_.create(kExtendedPods, pod);
  cluster_.advance(seconds(1));
  cluster_.create("/apis/storage.k8s.io/v1/storageclasses",
                  Json::object({{"metadata", Json::object({{"name", "s"}})}, {"provisioner", "disk.example.com"}}));
  cluster_.advance(milliseconds(1500));
  answer(ExtenderVerb::kFilter, R"({"NodeNames": ["n1"]})");
  cluster_.advance(seconds(10));
  EXPECT_EQ(node_of("wants"), "n1") << "it waits for its back-off alone";
}

TEST_F(SchedulerExtenders, OnlyPodsThatAskForItsResources) {
  Extender extender = filtering();
  extender.resources = {"example.com/gpu"};
  start({extender});
  create("plain");
  EXPECT_NE(node_of("plain"), "");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(SchedulerExtenders, ASilentOneDelaysNoOtherPod) {
  Extender extender = filtering();
  extender.timeout = seconds(3);
  start({extender});
  answers_[ExtenderVerb::kFilter] = [](const Json& args) {
    return args.string_at({"Pod", "metadata", "name"}) == "stuck" ? say("{}", minutes(5))
                                                                  : say(R"({"NodeNames": ["n1"]})");
  };
  create("stuck", "10Mi", "high");
  create("next");
  EXPECT_EQ(node_of("next"), "n1");
  EXPECT_EQ(node_of("stuck"), "");
  cluster_.advance(seconds(4));
  EXPECT_EQ(message("stuck"), "extender http://gpu.example/v1/filter did not answer within 3s");
  EXPECT_EQ(condition("stuck").string_at({"reason"}), "SchedulerError");
  answer(ExtenderVerb::kFilter, R"({"NodeNames": ["n2"]})");
  cluster_.advance(seconds(15));
  EXPECT_EQ(node_of("stuck"), "n2") << "after its back-off";
}

TEST_F(SchedulerExtenders, AnIgnorableOneIsPassedOver) {
  Extender extender = filtering();
  extender.ignorable = true;
  start({extender});
  answers_[ExtenderVerb::kFilter] = [](const Json&) { return say("", Duration::zero(), 500); };
  create("wants");
  EXPECT_NE(node_of("wants"), "");
}

TEST_F(SchedulerExtenders, WhatGoesBeyondTheQuestionIsNoAnswer) {
  Extender extender = filtering();
  start({extender});
  const std::vector<std::pair<std::string, std::string>> wrong{
      {R"({"NodeNames": ["n9"]})", R"(claims a filtered node "n9" which is not found in the input node list)"},
      {R"([])", "expected an object, it answered a list"},
      {R"({"NodeNames": "n0"})", "expected a list of nodes, it answered a string"},
      {R"({"NodeNames": [7]})", "it answered with a node that has no name"},
      {R"({"Error": "out of\norder"})", "out of order"},
      {"<html>", "it did not answer in JSON"},
      {std::string(5000, '['), "it did not answer in JSON"},
  };
  int count = 0;
  for (const auto& [body, want] : wrong) {
    answer(ExtenderVerb::kFilter, body);
    const std::string name = fmt::format("wants-{}", ++count);
    create(name);
    EXPECT_EQ(node_of(name), "") << body;
    EXPECT_THAT(message(name), HasSubstr("extender http://gpu.example/v1/filter: " + want)) << body;
    EXPECT_THAT(message(name), Not(HasSubstr("\n")));
    cluster_.remove(fmt::format("{}/{}", kExtendedPods, name));
    cluster_.run_until_idle();
  }
  answers_[ExtenderVerb::kFilter] = [](const Json&) { return say("", Duration::zero(), 302); };
  create("moved");
  EXPECT_EQ(message("moved"), "failed filter with extender at URL http://gpu.example/v1/filter, code 302");
  EXPECT_THAT(metrics_.text(), HasSubstr("result=\"disbelieved\",verb=\"filter\"} 7"));
}

TEST_F(SchedulerExtenders, ScoresBeyondTheRangeDoNotCount) {
  Extender extender = filtering();
  extender.filter_verb.clear();
  extender.prioritize_verb = "rank";
  extender.weight = 1000;
  start({extender});
  answer(ExtenderVerb::kPrioritize, R"([{"Host": "n2", "Score": 11}])");
  create("first");
  EXPECT_EQ(node_of("first"), "n0");
  answer(ExtenderVerb::kPrioritize, R"([{"Host": "n2", "Score": -1}])");
  create("second");
  EXPECT_EQ(node_of("second"), "n1");
  answer(ExtenderVerb::kPrioritize, R"([{"Host": "n7", "Score": 10}, {"Host": "n0", "Score": 1}])");
  create("third");
  EXPECT_EQ(node_of("third"), "n0");
}

TEST_F(SchedulerExtenders, TheClusterIsScannedAgain) {
  start({filtering()});
  answers_[ExtenderVerb::kFilter] = [](const Json&) { return say(R"({"NodeNames": ["n1"]})", seconds(2)); };
  create("wants", "600Mi");
  Json other = pod_json("other");
  other.find("spec")->find("containers")->if_array()->front()["resources"] =
      Json::object({{"requests", Json::object({{"memory", "600Mi"}})}});
  other.make({"spec"})["nodeName"] = "n1";
  cluster_.create(kExtendedPods, other);
  cluster_.advance(seconds(3));
  EXPECT_EQ(node_of("wants"), "") << "the room is gone";
  cluster_.remove(kExtendedPods + "/other");
  cluster_.advance(seconds(60));
  EXPECT_EQ(node_of("wants"), "n1");
}

TEST_F(SchedulerExtenders, APodThatIsGoneIsForgotten) {
  start({filtering()});
  answers_[ExtenderVerb::kFilter] = [](const Json&) { return say(R"({"NodeNames": ["n1"]})", seconds(2)); };
  create("wants");
  cluster_.remove(kExtendedPods + "/wants");
  answer(ExtenderVerb::kFilter, R"({"NodeNames": ["n2"]})");
  create("wants");
  EXPECT_EQ(node_of("wants"), "n2");
  cluster_.advance(seconds(5));
  EXPECT_EQ(node_of("wants"), "n2");
  EXPECT_EQ(asked(ExtenderVerb::kFilter), 2U);
}

TEST_F(SchedulerExtenders, OneBinds) {
  Extender extender = filtering();
  extender.filter_verb.clear();
  extender.bind_verb = "bind";
  start({extender});
  answers_[ExtenderVerb::kBind] = [this](const Json& args) { return bind(args); };
  cluster_.requests.clear();
  create("wants");
  EXPECT_EQ(node_of("wants"), "n0");
  EXPECT_EQ(std::ranges::count_if(cluster_.requests, [](const auto& line) { return line.ends_with("/binding"); }), 0);
  EXPECT_EQ(cluster_.events_about("wants")["Scheduled"], 1);
}

TEST_F(SchedulerExtenders, ABindingThatHangsDelaysNoOtherPod) {
  Extender extender = filtering();
  extender.filter_verb.clear();
  extender.bind_verb = "bind";
  extender.timeout = seconds(30);
  Scheduler::Options options;
  options.bindings_max = 1;
  start({extender}, options);
  answers_[ExtenderVerb::kBind] = [this](const Json& args) {
    return args.string_at({"PodName"}) == "stuck" ? std::nullopt : std::optional(bind(args));
  };
  create("stuck");
  create("next");
  EXPECT_NE(node_of("next"), "");
  EXPECT_EQ(node_of("stuck"), "");
  answers_[ExtenderVerb::kBind] = [this](const Json& args) { return bind(args); };
  cluster_.advance(seconds(45));
  EXPECT_NE(node_of("stuck"), "") << "it got another turn after the extender's time was over";
}

TEST_F(SchedulerExtenders, OneThatSaysItBoundIsTrustedForAWhile) {
  Extender extender = filtering();
  extender.filter_verb.clear();
  extender.bind_verb = "bind";
  start({extender});
  answer(ExtenderVerb::kBind, "{}");
  create("wants");
  EXPECT_EQ(asked(ExtenderVerb::kBind), 1U);
  cluster_.advance(seconds(29));
  EXPECT_EQ(asked(ExtenderVerb::kBind), 1U);
  cluster_.advance(seconds(20));
  EXPECT_GE(asked(ExtenderVerb::kBind), 2U);
  answer(ExtenderVerb::kBind, R"({"Error": "no"})");
  cluster_.advance(minutes(2));
  EXPECT_EQ(node_of("wants"), "");
}

TEST_F(SchedulerExtenders, VictimsAreAgreedOn) {
  Extender extender = filtering();
  extender.filter_verb.clear();
  extender.preempt_verb = "preempt";
  start({extender});
  for (const char* name : {"low-0", "low-1", "low-2"}) create(name, "600Mi");
  answers_[ExtenderVerb::kPreempt] = [](const Json& args) {
    const Json* all = args.find("NodeNameToMetaVictims");
    return say(api::to_text(Json::object({{"NodeNameToMetaVictims", Json::object({{"n2", *all->find("n2")}})}})));
  };
  create("important", "600Mi", "high");
  EXPECT_EQ(asked_.front().second.find("NodeNameToMetaVictims")->if_object()->size(), 3U);
  EXPECT_EQ(at("important", {"status", "nominatedNodeName"}), "n2");
  cluster_.advance(seconds(60));
  EXPECT_EQ(node_of("important"), "n2");
  EXPECT_EQ(cluster_.pod_names().size(), 3U);
}

/// A node becomes free after the victims are chosen and before any pod has left: the extenders are called about it.
TEST_F(SchedulerExtenders, NoPodIsEvictedWhileExtendersAreCalled) {
  start({filtering()});
  answers_[ExtenderVerb::kFilter] = [](const Json& args) {
    return say(api::to_text(Json::object({{"NodeNames", *args.find("NodeNames")}})));
  };
  for (const char* name : {"low-0", "low-1", "low-2"}) create(name, "600Mi");
  answers_[ExtenderVerb::kFilter] = [](const Json& args) {
    return say(api::to_text(Json::object({{"NodeNames", *args.find("NodeNames")}})), seconds(4));
  };
  cluster_.delay_answers(api::Method::kPatch, "/pods/important/status", seconds(3));
  create("important", "600Mi", "high");
  const std::string promised = at("important", {"status", "nominatedNodeName"});
  ASSERT_NE(promised, "");
  const std::string leaver = node_of("low-0") == promised ? "low-1" : "low-0";
  const std::string freed = node_of(leaver);
  ASSERT_NE(freed, "");
  cluster_.remove(kExtendedPods + "/" + leaver);
  cluster_.advance(seconds(30));
  EXPECT_EQ(node_of("important"), freed);
  EXPECT_EQ(cluster_.pod_names().size(), 3U) << "nobody else had to leave";
}

TEST_F(SchedulerExtenders, NoPodIsEvictedThatOnlyAnExtenderNames) {
  Extender extender = filtering();
  extender.filter_verb.clear();
  extender.preempt_verb = "preempt";
  start({extender});
  for (const char* name : {"high-0", "low-1", "low-2"}) {
    create(name, "600Mi", std::string_view(name).starts_with("high") ? "high" : "");
  }
  const std::string safe = at("high-0", {"metadata", "uid"});
  const std::string node = node_of("high-0");
  const std::string other = node == "n1" ? "n2" : "n1";
  const std::vector<std::pair<std::string, std::string>> wrong{
      {fmt::format(R"({{"NodeNameToMetaVictims": {{"{}": {{"Pods": [{{"UID": "{}"}}]}}}}}})", node, safe),
       "which it did not get"},
      {fmt::format(R"({{"NodeNameToMetaVictims": {{"{}": {{"Pods": [{{"UID": "{}"}}]}}}}}})", other, safe),
       "but the pod is not found on that node"},
      {fmt::format(R"({{"NodeNameToMetaVictims": {{"{}": {{"Pods": []}}}}}})", other),
       "expected at least one victim pod on node"},
      {R"({"NodeNameToMetaVictims": {}})", "no victims that the extenders agree to"},
  };
  for (const auto& [body, want] : wrong) {
    answer(ExtenderVerb::kPreempt, body);
    create("important", "600Mi", "high");
    EXPECT_THAT(message("important"), HasSubstr(want));
    EXPECT_EQ(at("important", {"status", "nominatedNodeName"}), "");
    cluster_.remove(kExtendedPods + "/important");
    cluster_.run_until_idle();
  }
  EXPECT_EQ(cluster_.pod_names().size(), 3U);
}

TEST_F(SchedulerExtenders, VictimsAreOfLowerPriorityAndEnough) {
  Extender extender = filtering();
  extender.filter_verb.clear();
  extender.preempt_verb = "preempt";
  start({extender});
  for (const char* name : {"low-0", "low-1", "low-2"}) create(name, "600Mi");
  create("top", "10Mi", "high");
  create("tiny", "10Mi");
  const auto names_one = [this](const std::string& victim) {
    answer(ExtenderVerb::kPreempt,
           fmt::format(R"({{"NodeNameToMetaVictims": {{"{}": {{"Pods": [{{"UID": "{}"}}]}}}}}})", node_of(victim),
                       at(victim, {"metadata", "uid"})));
  };
  names_one("top");
  create("important", "600Mi", "high");
  EXPECT_THAT(message("important"), HasSubstr("whose priority is not lower"));
  cluster_.remove(kExtendedPods + "/important");
  names_one("tiny");
  create("important", "600Mi", "high");
  EXPECT_THAT(message("important"), HasSubstr("no victims that the extenders agree to"));
  EXPECT_EQ(cluster_.pod_names().size(), 6U);
}

TEST_F(SchedulerExtenders, OfALargeClusterAShareIsSent) {
  for (int i = 0; i < 250; ++i) cluster_.add_node(fmt::format("m{:03}", i));
  start({filtering()});
  answers_[ExtenderVerb::kFilter] = [](const Json& args) {
    return say(api::to_text(Json::object({{"NodeNames", *args.find("NodeNames")}})));
  };
  create("first");
  create("second");
  ASSERT_EQ(asked_.size(), 2U);
  const auto sent = [this](std::size_t i) { return *asked_[i].second.find("NodeNames")->if_array(); };
  EXPECT_EQ(sent(0).size(), 121U) << "of 253 nodes 48 percent";
  EXPECT_EQ(sent(1).size(), 121U);
  EXPECT_NE(sent(0).front(), sent(1).front()) << "the next look begins where this one ended";
}

}  // namespace
}  // namespace spillway::controllers
