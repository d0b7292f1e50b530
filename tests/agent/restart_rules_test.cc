// Goal: containers restart by their own policies and rules, all of them together where a rule says so, and get
// variables from files that other containers wrote. Method: an agent between a scripted API server and a scripted
// machine.
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;

Json container(std::string_view text) {
  Json made = api::parse_json(text).value();
  made["image"] = "none";
  made["command"] = Json::array({"serve"});
  return made;
}

class RestartRules : public ::testing::Test {
 protected:
  void begin(const std::vector<std::string_view>& containers, const std::vector<std::string_view>& init = {},
             const std::string& policy = "Never") {
    Json pod = pod_document({.name = "web", .restart_policy = policy});
    Json& spec = pod["spec"];
    spec["containers"] = Json::array();
    for (const std::string_view each : containers) spec["containers"].if_array()->push_back(container(each));
    spec["initContainers"] = Json::array();
    for (const std::string_view each : init) spec["initContainers"].if_array()->push_back(container(each));
    cluster_.put(std::move(pod));
    cluster_.start();
    cluster_.run(seconds(5));
  }

  void end(const std::string& name, std::int32_t code) {
    cluster_.send(cluster_.host.exit("uid-web", name, code, cluster_.now()));
    cluster_.run(seconds(2));
  }

  bool runs(const std::string& name) const { return cluster_.host.is_running("uid-web", name); }

  Json status(std::string_view list, std::string_view name) const {
    const Json pod = cluster_.pod("web");
    const Json* statuses = pod.at({"status", list});
    if (statuses == nullptr || statuses->if_array() == nullptr) return {};
    for (const Json& each : *statuses->if_array()) {
      if (each.string_at({"name"}) == name) return each;
    }
    return {};
  }

  std::string_view condition(const std::string& type) {
    pod_ = cluster_.pod("web");
    for (const Json& each : *pod_.at({"status", "conditions"})->if_array()) {
      if (each.string_at({"type"}) == type) return each.string_at({"status"});
    }
    return "absent";
  }

  ScriptedCluster cluster_;
  Json pod_;
};

constexpr std::string_view kPatient = R"({"name":"patient","restartPolicy":"Never",
    "restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}]})";

TEST_F(RestartRules, RestartByTheExitCodeInAPodThatNeverRestarts) {
  begin({kPatient, R"({"name":"other"})"});
  end("patient", 42);
  EXPECT_TRUE(runs("patient")) << "the first restart has no back-off";
  EXPECT_EQ(status("containerStatuses", "patient").find("restartCount")->if_int64(), 1);
  end("patient", 1);
  cluster_.run(minutes(2));
  EXPECT_FALSE(runs("patient"));
  EXPECT_EQ(cluster_.phase("web"), "Running") << "the other container goes on";
  end("other", 0);
  cluster_.run(seconds(5));
  EXPECT_EQ(cluster_.phase("web"), "Failed");
}

TEST_F(RestartRules, LetAContainerRestartByItsOwnPolicy) {
  begin({R"({"name":"always","restartPolicy":"Always"})", R"({"name":"once"})"});
  end("once", 0);
  end("always", 0);
  EXPECT_TRUE(runs("always"));
  EXPECT_FALSE(runs("once"));
  EXPECT_EQ(cluster_.phase("web"), "Running");
}

TEST_F(RestartRules, LetAContainerOfARestartingPodEndForGood) {
  begin({R"({"name":"once","restartPolicy":"Never"})", R"({"name":"other"})"}, {}, "Always");
  end("once", 1);
  cluster_.run(minutes(2));
  EXPECT_FALSE(runs("once"));
  EXPECT_EQ(cluster_.phase("web"), "Running");
}

TEST_F(RestartRules, RestartAnInitContainerByARuleOnly) {
  begin({R"({"name":"app"})"}, {R"({"name":"init","restartPolicy":"Never",
      "restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[7]}}]})"});
  end("init", 7);
  EXPECT_TRUE(runs("init"));
  end("init", 1);
  cluster_.run(seconds(5));
  EXPECT_EQ(cluster_.phase("web"), "Failed");
}

constexpr std::string_view kTrigger = R"({"name":"trigger","restartPolicy":"Never",
    "restartPolicyRules":[{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[42]}}]})";

TEST_F(RestartRules, RestartAllContainersFromTheFirstInitContainer) {
  begin({kTrigger, R"({"name":"other"})"}, {R"({"name":"init"})"});
  end("init", 0);
  ASSERT_TRUE(runs("trigger"));
  ASSERT_TRUE(runs("other"));
  EXPECT_EQ(condition("AllContainersRestarting"), "False");
  cluster_.host.take_commands();
  end("trigger", 42);
  const auto* stop = cluster_.host.last<StopContainer>();
  ASSERT_NE(stop, nullptr);
  EXPECT_EQ(stop->name, "other");
  EXPECT_EQ(stop->grace, Duration{}) << "no grace";
  EXPECT_TRUE(runs("init")) << "the pod begins anew";
  EXPECT_FALSE(runs("other"));
  EXPECT_EQ(condition("AllContainersRestarting"), "True");
  EXPECT_EQ(condition("Initialized"), "True") << "stays as it was";
  const Json other = status("containerStatuses", "other");
  EXPECT_EQ(other.string_at({"state", "waiting", "reason"}), "RestartingAllContainers");
  EXPECT_EQ(other.string_at({"lastState", "terminated", "reason"}), "RestartingAllContainers");
  EXPECT_EQ(other.find("restartCount")->if_int64(), 1);
  end("init", 0);
  EXPECT_TRUE(runs("trigger"));
  EXPECT_TRUE(runs("other"));
  EXPECT_EQ(condition("AllContainersRestarting"), "False");
  EXPECT_EQ(cluster_.phase("web"), "Running");
  EXPECT_EQ(status("initContainerStatuses", "init").find("restartCount")->if_int64(), 1);
}

constexpr std::string_view kReader = R"({"name":"reader","env":[
    {"name":"TOKEN","valueFrom":{"fileKeyRef":{"volumeName":"shared","path":"env","key":"TOKEN"}}},
    {"name":"TEXT","value":"<$(TOKEN)>"}]})";

class FilesOfVariables : public RestartRules {
 protected:
  void begin_reader() {
    Json pod = pod_document({.name = "web"});
    pod["spec"]["volumes"] = Json::array({Json::object({{"name", "shared"}, {"emptyDir", Json::object()}})});
    pod["spec"]["containers"] = Json::array({container(kReader)});
    cluster_.put(std::move(pod));
    cluster_.start();
    cluster_.run(seconds(5));
  }

  /// Answers the last request for a file.
  void answer(Result<std::string> text) {
    const auto* asked = cluster_.host.last<ReadVolumeFile>();
    ASSERT_NE(asked, nullptr);
    EXPECT_EQ(asked->volume, "shared");
    EXPECT_EQ(asked->path, "env");
    cluster_.send(VolumeFileRead{asked->uid, asked->id, std::move(text)});
    cluster_.run(seconds(1));
  }

  std::string_view waiting_message() {
    pod_ = status("containerStatuses", "reader");
    return pod_.string_at({"state", "waiting", "message"});
  }
};

TEST_F(FilesOfVariables, AreReadBeforeTheContainerStarts) {
  begin_reader();
  EXPECT_FALSE(runs("reader"));
  answer("# written by another container\nTOKEN='a b'\n");
  ASSERT_TRUE(runs("reader"));
  const auto& env = cluster_.host.last<StartContainer>()->env;
  EXPECT_NE(std::ranges::find(env, std::pair<std::string, std::string>("TOKEN", "a b")), env.end());
  EXPECT_NE(std::ranges::find(env, std::pair<std::string, std::string>("TEXT", "<a b>")), env.end());
}

TEST_F(FilesOfVariables, AreReadAgainUntilTheVariableIsThere) {
  begin_reader();
  answer(make_error(ErrorCode::kNotFound, "no such file"));
  EXPECT_EQ(waiting_message(), R"(environment variable key "TOKEN" not found in file "env")");
  cluster_.run(seconds(15));
  answer("TOKEN=plain\n");
  EXPECT_TRUE(waiting_message().starts_with("couldn't parse env file")) << waiting_message();
  cluster_.run(seconds(15));
  answer("TOKEN='v'\n");
  EXPECT_TRUE(runs("reader"));
}

}  // namespace
}  // namespace spillway::agent
