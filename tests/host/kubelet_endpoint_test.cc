// The node's HTTP surface over real containers.
#include "host/kubelet_endpoint.h"

#include "host/real_machine.h"

#include <sys/stat.h>

#include <fstream>

namespace spillway::host {
namespace {

struct Sink final : api::ResponseSink {
  void on_response(api::Response answer) override {
    response = std::move(answer);
    ended = true;
  }

  void on_stream(api::Response head) override { response = std::move(head); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    response.body += *chunk;
    return !full;
  }

  void on_end() override { ended = true; }

  api::Response response{.status = 0};
  bool ended = false;
  bool full = false;
};

class KubeletEndpointTest : public RealMachine {
 protected:
  void SetUp() override {
    RealMachine::SetUp();
    if (runtime_) endpoint_ = std::make_unique<KubeletEndpoint>(loop_, *runtime_, options_);
  }

  void TearDown() override {
    endpoint_.reset();
    RealMachine::TearDown();
  }

  static Result<agent::NodeRequest> parsed(const std::string& target, api::Method method = api::Method::kGet) {
    api::Request request;
    request.method = method;
    request.target = target;
    return agent::NodeRequest::parse(std::move(request));
  }

  std::shared_ptr<Sink> send(const std::string& target, api::Method method = api::Method::kGet) {
    auto sink = std::make_shared<Sink>();
    const Result<agent::NodeRequest> asked = parsed(target, method);
    EXPECT_TRUE(asked) << target;
    if (asked) last_id_ = endpoint_->handle(*asked, sink);
    return sink;
  }

  api::Response get(const std::string& target) {
    const std::shared_ptr<Sink> sink = send(target);
    EXPECT_TRUE(run_until([&] { return sink->ended; }));
    return sink->response;
  }

  KubeletEndpoint::Options options_{
      .pages = {{"/pods", {"application/json", [] { return std::string(R"({"kind":"PodList"})"); }}},
                {"/debug/spillway", {"application/json", [] { return std::string("{}"); }}}},
      .choose_log = [this](const api::PodKey& pod, const std::string& container,
                           agent::LogInstance wanted) -> Result<std::int32_t> {
        const std::int32_t attempt = wanted == agent::LogInstance::kCurrent ? newest_ : newest_ - 1;
        if (container == "c" && attempt >= 0) return attempt;
        return make_error(ErrorCode::kBadRequest, "no log of {} in {}", container, pod.text());
      },
      .health = [this] { return std::vector<HealthCheck>{{"syncloop", problem_}}; }};
  std::int32_t newest_ = 0;  // attempt of the containers called c
  std::optional<std::string> problem_;
  std::unique_ptr<KubeletEndpoint> endpoint_;
  KubeletEndpoint::RequestId last_id_ = 0;
};

TEST_F(KubeletEndpointTest, AnswersHealthPodsAndNothingElse) {
  EXPECT_EQ(get("/healthz").body, "ok");
  EXPECT_EQ(get("/pods").body, R"({"kind":"PodList"})");
  EXPECT_EQ(get("/pods").header("content-type"), "application/json");
  EXPECT_EQ(get("/debug/spillway").body, "{}");
  EXPECT_EQ(get("/configz").status, 404) << "this endpoint has no such page";
  EXPECT_EQ(send("/healthz", api::Method::kDelete)->response.status, 405);
}

TEST_F(KubeletEndpointTest, SummaryCanBeNarrowedToProcessorAndMemory) {
  create_pod("u1");
  start_shell("u1", "sleep 1000");
  ASSERT_TRUE(wait_for<agent::ContainerStarted>("u1"));
  const auto whole = api::parse_json(get("/stats/summary").body).value();
  const auto narrow = api::parse_json(get("/stats/summary?only_cpu_and_memory=true").body).value();
  for (const char* member : {"fs", "rlimit", "swap", "runtime"}) {
    EXPECT_NE(whole.at({"node", member}), nullptr) << member;
    EXPECT_EQ(narrow.at({"node", member}), nullptr) << member;
  }
  const api::Json& pod = narrow.find("pods")->if_array()->at(0);
  EXPECT_NE(pod.find("memory"), nullptr);
  EXPECT_EQ(pod.find("process_stats"), nullptr);
  const api::Json& container = pod.find("containers")->if_array()->at(0);
  EXPECT_NE(container.find("cpu"), nullptr);
  EXPECT_EQ(container.find("logs"), nullptr);
  EXPECT_NE(api::parse_json(get("/stats/summary?only_cpu_and_memory=1").body)->at({"node", "fs"}), nullptr);
}

TEST_F(KubeletEndpointTest, ListsThePodsThatRun) {
  const std::string none = R"({"apiVersion":"v1","items":[],"kind":"PodList","metadata":{}})";
  const auto page_with = [](const std::string& containers) {
    return R"({"apiVersion":"v1","items":[{"metadata":{"name":"pod-u1","namespace":"default","uid":"u1"},)"
           R"("spec":{"containers":[)" +
           containers + R"(]},"status":{}}],"kind":"PodList","metadata":{}})";
  };
  EXPECT_EQ(get("/runningpods/").body, none);
  create_pod("u1");
  start_shell("u1", "sleep 1000");
  ASSERT_TRUE(wait_for<agent::ContainerStarted>("u1"));
  EXPECT_EQ(get("/runningpods/").body, page_with(R"({"image":"","name":"c","resources":{}})"));
  EXPECT_EQ(get("/runningpods").header("content-type"), "application/json");
  EXPECT_EQ(send("/runningpods", api::Method::kPost)->response.status, 405);
  runtime_->execute(agent::StopContainer{.uid = "u1", .name = "c", .grace = {}});
  ASSERT_TRUE(wait_for<agent::ContainerExited>("u1"));
  EXPECT_EQ(get("/runningpods").body, page_with("")) << "a pod that waits for its next container";
  runtime_->execute(agent::StopPod{.uid = "u1", .grace = {}});
  ASSERT_TRUE(wait_for<agent::PodStopped>("u1"));
  EXPECT_EQ(get("/runningpods").body, none);
}

TEST_F(KubeletEndpointTest, CheckpointsAreAMatterOfTheRuntime) {
  api::Pod pod;
  pod.metadata.name = "pod-u1";
  pod.metadata.ns = "default";
  pod.metadata.uid = "u1";
  pod.spec.containers.emplace_back().name = "c";
  options_.known_pods = [&] { return std::vector{pod}; };
  const auto post = [this](const std::string& target) { return send(target, api::Method::kPost)->response; };
  endpoint_ = std::make_unique<KubeletEndpoint>(loop_, *runtime_, options_);
  EXPECT_EQ(post("/checkpoint/default/pod-u1/c").status, 404) << "off";
  options_.checkpoint_folder = (state_ / "checkpoints").string();
  endpoint_ = std::make_unique<KubeletEndpoint>(loop_, *runtime_, options_);
  EXPECT_EQ(get("/checkpoint/default/pod-u1/c").status, 405);
  EXPECT_EQ(post("/checkpoint/default/other/c").body, "pod does not exist");
  EXPECT_EQ(post("/checkpoint/default/pod-u1/x").body, "container x does not exist");
  const api::Response malformed = post("/checkpoint/default/pod-u1/c?timeout=5&timeout=soon");
  EXPECT_EQ(malformed.status, 404);
  EXPECT_EQ(malformed.body, "cannot parse value of timeout parameter");
  const api::Response refused = post("/checkpoint/default/pod-u1/c?timeout=5");
  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(refused.body,
            "checkpointing of default/pod-u1/c failed (rpc error: code = Unimplemented desc = unknown method "
            "CheckpointContainer: containers are processes of this machine)");
}

TEST_F(KubeletEndpointTest, AnswersQueriesForLogsOfTheNodeIfTheyAreOn) {
  EXPECT_EQ(get("/logs/?query=kubelet").status, 405) << "off";
  EXPECT_EQ(get("/logs/messages").body, "logs endpoint is disabled.\n");
  options_.node_logs = NodeLogs::Serves::kFilesAndQueries;
  endpoint_ = std::make_unique<KubeletEndpoint>(loop_, *runtime_, options_);
  EXPECT_TRUE(get("/logs/").body.starts_with("<!doctype html>")) << "a list of files";
  EXPECT_EQ(get("/logs/no-such-file").status, 404);
  EXPECT_EQ(send("/logs/", api::Method::kPost)->response.status, 405);
  EXPECT_EQ(get("/logs/?query=").status, 400);
  EXPECT_EQ(get("/logs/?query=kubelet&tailLines=ten").body,
            "tailLines: Invalid value: \"ten\": strconv.Atoi: parsing \"ten\": invalid syntax\n");
  const api::Response refused = get("/logs/?query=a%3Breboot");
  EXPECT_EQ(refused.status, 406);
  EXPECT_EQ(refused.body, "query: Invalid value: \"a;reboot\": input contains unsupported characters\n");
  EXPECT_EQ(
      get("/logs/?query=/../../etc/passwd").body,
      "query: Invalid value: []string{\"/../../etc/passwd\"}: stat /var/log/etc/passwd: no such file or directory\n")
      << "no file outside of /var/log";
  EXPECT_EQ(parsed("/logs/?query=kubelet")->access(agent::FineGrained::kOff).subresource, "log");
}

TEST_F(KubeletEndpointTest, HealthIsOneWordOrAList) {
  EXPECT_EQ(get("/healthz?verbose").body, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n");
  EXPECT_EQ(get("/healthz/syncloop").body, "ok");
  EXPECT_EQ(get("/healthz/nothing").status, 404);
  problem_ = "stands still";
  const api::Response ill = get("/healthz");
  EXPECT_EQ(ill.status, 500);
  EXPECT_EQ(ill.body, "[+]ping ok\n[+]log ok\n[-]syncloop failed: stands still\nhealthz check failed\n");
  EXPECT_EQ(get("/healthz/ping").status, 200);
  EXPECT_EQ(get("/healthz/syncloop").status, 500);
}

TEST_F(KubeletEndpointTest, KnowsWhatItServes) {
  for (const char* path : {"/pods", "/healthz", "/healthz/ping", "/stats/summary", "/containerLogs/a/b/c",
                           "/exec/a/b/c", "/attach/a/b/u/c", "/portForward/a/b", "/runningpods"}) {
    EXPECT_TRUE(endpoint_->serves(*parsed(path))) << path;
  }
  for (const char* path : {"/configz", "/metrics", "/debug/spillway/recording"}) {
    EXPECT_FALSE(endpoint_->serves(*parsed(path))) << path << ": this endpoint has no such page";
    EXPECT_EQ(get(path).status, 404) << path;
  }
}

TEST_F(KubeletEndpointTest, ServesTheSummary) {
  create_pod("u1");
  const api::Response answer = get("/stats/summary");
  EXPECT_EQ(answer.status, 200);
  const Result<api::Json> summary = api::parse_json(answer.body);
  ASSERT_TRUE(summary) << answer.body;
  EXPECT_EQ(summary->string_at({"node", "nodeName"}), "n1");
  EXPECT_NE(summary->at({"node", "memory", "availableBytes"}), nullptr) << answer.body;
}

TEST_F(KubeletEndpointTest, PrintsLogsOfTheLastAndThePreviousAttempt) {
  create_pod("u1");
  start("u1", "c", {"sh", "-c", "echo old"}, 0);
  ASSERT_TRUE(wait_for<agent::ContainerExited>("u1"));
  ASSERT_TRUE(logs("u1", "c", {" F old\n"}));
  const std::string url = "/containerLogs/default/pod-u1/c";
  EXPECT_EQ(get(url).body, "old\n");
  const api::Response none = get(url + "?previous=true");
  EXPECT_EQ(none.status, 400);
  EXPECT_EQ(none.body, "no log of c in default/pod-u1\n");
  newest_ = 1;
  EXPECT_EQ(get(url).status, 404) << "nothing is there of it";
  start("u1", "c", {"sh", "-c", "seq 1 5"}, 1);
  ASSERT_TRUE(run_until([&] { return count<agent::ContainerExited>() == 2; }));
  ASSERT_TRUE(logs("u1", "c", {" F 5\n"}, 1));
  EXPECT_EQ(get(url).body, "1\n2\n3\n4\n5\n");
  EXPECT_EQ(get(url + "?tailLines=2").body, "4\n5\n");
  EXPECT_EQ(get(url + "?tailLines=0").body, "");
  EXPECT_EQ(get(url + "?limitBytes=3").body, "1\n2");
  EXPECT_EQ(get(url + "?previous=true").body, "old\n");
  EXPECT_EQ(get(url + "?sinceTime=2100-01-01T00:00:00Z").body, "");
  EXPECT_TRUE(get(url + "?timestamps=true&tailLines=1").body.ends_with("Z 5\n"));
  EXPECT_EQ(get(url + "?tailLines=x").status, 400);
  EXPECT_EQ(get("/containerLogs/default/nobody/c").status, 404);
  EXPECT_EQ(get("/containerLogs/default/pod-u1/other").status, 400);
}

TEST_F(KubeletEndpointTest, FollowsUntilTheContainerEnds) {
  create_pod("u1");
  ASSERT_EQ(::mkfifo((state_ / "go").c_str(), 0600), 0);
  start_shell("u1", "echo begin; read line < " + (state_ / "go").string() + "; echo end");
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").contains("begin"); }));
  const std::shared_ptr<Sink> sink = send("/containerLogs/default/pod-u1/c?follow=true");
  ASSERT_TRUE(run_until([&] { return sink->response.body == "begin\n"; }));
  EXPECT_FALSE(sink->ended);
  std::ofstream(state_ / "go") << "on\n";
  EXPECT_TRUE(run_until([&] { return sink->ended; }));
  EXPECT_EQ(sink->response.body, "begin\nend\n");
}

TEST_F(KubeletEndpointTest, FollowerThatIsFullOrGoneIsDropped) {
  create_pod("u1");
  start_shell("u1", "while :; do echo tick; sleep 0.01; done");
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").contains("tick"); }));
  const std::shared_ptr<Sink> full = send("/containerLogs/default/pod-u1/c?follow=true");
  full->full = true;
  EXPECT_TRUE(run_until([&] { return full->ended; }));
  const std::shared_ptr<Sink> gone = send("/containerLogs/default/pod-u1/c?follow=true");
  ASSERT_TRUE(run_until([&] { return gone->response.body.contains("tick"); }));
  endpoint_->abandon(last_id_);
  const std::size_t size = gone->response.body.size();
  const std::string log = log_text("u1", "c");
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").size() > log.size() + 200; }));
  EXPECT_EQ(gone->response.body.size(), size);
}

}  // namespace
}  // namespace spillway::host
