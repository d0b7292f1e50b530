// Answers late, twice and out of order; names used again; a process that ends between two lines: a pod never gets an
// answer that was meant for another, runs once, and its status never goes back.
#include "agent/scripted_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;
using Pods = std::vector<PodSpecText>;
using ::testing::HasSubstr;

const std::string kWeb = "/api/v1/namespaces/shop/pods/web";

struct Running : ScriptedCluster {
  explicit Running(const Pods& pods, AgentOptions options = node_options()) : ScriptedCluster(std::move(options)) {
    for (const PodSpecText& pod : pods) put(pod_document(pod));
    start();
    run(seconds(1));
  }

  std::size_t writes(const std::string& what) const {
    return static_cast<std::size_t>(std::ranges::count(api.log(), what));
  }
};

std::int64_t restarts_of(const Json& pod) {
  const Json* statuses = pod.at({"status", "containerStatuses"});
  return statuses == nullptr ? -1 : statuses->if_array()->front().find("restartCount")->if_int64().value();
}

/// The pod goes, and another one of its name is created, just before the first matching request is carried out.
void replace_before(Running& cluster, api::Method method, const std::string& path, std::shared_ptr<bool> replaced) {
  cluster.api.set_fault(
      [&cluster, method, path, replaced](const api::Request& request) -> std::optional<Result<api::Response>> {
        if (*replaced || request.method != method || request.target.substr(0, request.target.find('?')) != path)
          return {};
        *replaced = true;
        cluster.remove(kWeb);
        Json next = pod_document({.name = "web"});
        next["metadata"]["uid"] = "uid-next";
        cluster.put(next);
        return {};
      });
}

TEST(PodRaces, AStatusIsNotWrittenOnTheNextPodOfThatName) {
  Running cluster(Pods{{.name = "web", .restart_policy = "Never"}});
  const auto replaced = std::make_shared<bool>(false);
  replace_before(cluster, api::Method::kPatch, kWeb + "/status", replaced);
  cluster.exit("web", 1);
  cluster.run(seconds(5));
  EXPECT_TRUE(*replaced);
  for (std::size_t i = 0; i < cluster.api.requests().size(); ++i) {
    if (!cluster.api.requests()[i].body.contains(R"("exitCode":1)")) continue;
    EXPECT_EQ(cluster.api.statuses()[i], 409) << "the end of the one was written on the other";
  }
  EXPECT_EQ(cluster.pod("web").string_at({"metadata", "uid"}), "uid-next");
  EXPECT_EQ(cluster.phase("web"), "Running");
  EXPECT_EQ(restarts_of(cluster.pod("web")), 0);
  EXPECT_TRUE(cluster.host.is_running("uid-next", "c"));
}

TEST(PodRaces, ADeletionThatWasFinishedDoesNotTakeTheNextPodOfThatName) {
  Running cluster(Pods{{.name = "web"}});
  const auto replaced = std::make_shared<bool>(false);
  replace_before(cluster, api::Method::kDelete, kWeb, replaced);
  cluster.delete_pod("web", 1);
  cluster.run(seconds(10));
  EXPECT_TRUE(*replaced);
  EXPECT_EQ(cluster.pod("web").string_at({"metadata", "uid"}), "uid-next");
  EXPECT_EQ(cluster.phase("web"), "Running");
  EXPECT_FALSE(cluster.host.is_running("uid-web", "c"));
}

TEST(PodRaces, CopiesThatAreOlderThanAnAnswerChangeNothing) {
  Running quick(Pods{{.name = "web"}});
  Running slow(Pods{{.name = "web"}});
  slow.delay_watches(seconds(2));
  for (Running* cluster : {&quick, &slow}) {
    for (int i = 0; i < 3; ++i) {
      cluster->exit("web", 1);
      cluster->run(minutes(2));
    }
    EXPECT_EQ(restarts_of(cluster->pod("web")), 3);
    EXPECT_EQ(cluster->phase("web"), "Running");
  }
  EXPECT_EQ(slow.writes("PATCH " + kWeb + "/status"), quick.writes("PATCH " + kWeb + "/status"))
      << "an old copy was taken for what the server has";
}

TEST(PodRaces, LateAnswersKeepTheLastStatus) {
  Running cluster(Pods{{.name = "web", .restart_policy = "Never"}});
  cluster.delay_answers(
      [](const api::Request& request) { return request.method == api::Method::kPatch ? seconds(3) : Duration(); });
  cluster.exit("web", 0);
  cluster.run(seconds(30));
  EXPECT_EQ(cluster.phase("web"), "Succeeded");
  cluster.delete_pod("web", 1);
  cluster.run(seconds(30));
  EXPECT_TRUE(cluster.pod("web").is_null());
}

TEST(PodRaces, WhatIsSaidTwiceHappensOnce) {
  for (const Duration later : {milliseconds(0), milliseconds(700), milliseconds(30'000)}) {
    ScriptedCluster cluster;
    cluster.repeat_answers(later);
    cluster.put(pod_document({.name = "web"}));
    cluster.put(pod_document({.name = "once", .restart_policy = "Never"}));
    cluster.start();
    cluster.run(seconds(2));
    EXPECT_EQ(cluster.phase("web"), "Running");
    const HostEvent ended = cluster.host.exit("uid-web", "c", 1, cluster.now());
    cluster.send(ended);
    cluster.send(ended);
    cluster.run(seconds(5));
    cluster.send(ended);  // when the next attempt runs already
    cluster.run(minutes(2));
    EXPECT_EQ(restarts_of(cluster.pod("web")), 1) << later / milliseconds(1);
    EXPECT_EQ(cluster.host.count<StartContainer>(), 3U) << "once, web, and web again";
    EXPECT_TRUE(cluster.host.is_running("uid-web", "c"));
    cluster.delete_pod("web", 1);
    cluster.run(minutes(1));
    EXPECT_TRUE(cluster.pod("web").is_null());
    EXPECT_EQ(cluster.phase("once"), "Running");
  }
}

TEST(PodRaces, AnEndBeforeTheAnswerToTheStartIsNotLost) {
  ScriptedCluster cluster;
  cluster.put(pod_document({.name = "web", .restart_policy = "Never"}));
  cluster.start();
  while (cluster.host.count<StartContainer>() == 0) cluster.run(milliseconds(1));
  cluster.exit("web", 3);  // the start is answered a millisecond later
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.phase("web"), "Failed");
}

TEST(PodRaces, ALateStartIsNoRunningContainerOfAStoppedPod) {
  Running cluster(Pods{{.name = "web"}});
  cluster.delete_pod("web", 1);
  cluster.run(milliseconds(1));
  cluster.send(ContainerStarted{"uid-web", "c", 0, 4711, cluster.now().wall});
  cluster.run(seconds(5));
  cluster.send(ContainerStarted{"uid-web", "c", 0, 4711, cluster.now().wall});
  cluster.send(PodStopped{"uid-web"});
  cluster.run(seconds(5));
  EXPECT_TRUE(cluster.pod("web").is_null());
}

TEST(PodRaces, ALateStartDoesNotKeepAnEndedContainerFromItsNextAttempt) {
  Running cluster(Pods{{.name = "web"}});
  for (int i = 0; i < 2; ++i) {
    cluster.exit("web", 1);
    cluster.run(milliseconds(100));
  }
  // An event of the attempt that has just ended.
  cluster.send(ContainerStarted{"uid-web", "c", 1, 4711, cluster.now().wall});
  cluster.run(minutes(1));
  EXPECT_EQ(restarts_of(cluster.pod("web")), 2);
  EXPECT_EQ(cluster.host.count<StartContainer>(), 3U);
}

/// The last request of the earlier process arrives when this one has read the pod, just before its first status: seed
/// 12080.
TEST(PodRaces, ALateStatusOfTheEarlierProcessIsNotOverwrittenUnseen) {
  Running cluster(Pods{{.name = "web"}});
  cluster.exit("web", 1);
  cluster.run(minutes(1));
  ASSERT_EQ(restarts_of(cluster.pod("web")), 1);
  const auto arrived = std::make_shared<bool>(false);
  std::vector<std::int64_t> counts;
  cluster.host = ScriptedHost();  // the machine is restarted, too
  cluster.api.set_fault([&, arrived](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (request.method != api::Method::kPatch || !request.target.starts_with(kWeb + "/status")) return {};
    if (!std::exchange(*arrived, true)) {
      Json late = cluster.pod("web");
      (*late.at({"status", "containerStatuses"})->if_array())[0]["restartCount"] = 4;
      cluster.put(late);
    }
    counts.push_back(restarts_of(cluster.pod("web")));
    return {};
  });
  cluster.restart();
  cluster.run(minutes(2));
  EXPECT_TRUE(*arrived);
  counts.push_back(restarts_of(cluster.pod("web")));
  EXPECT_EQ(*std::ranges::min_element(counts), 4) << "the count has gone back";
  EXPECT_EQ(cluster.phase("web"), "Running");
}

/// Its name is later in the alphabet than that of a pod that was added while there was no room.
TEST(PodRaces, AfterARestartWhoWasThereFirstKeepsItsPlace) {
  AgentOptions options = node_options();
  options.pods_max = 1;
  ScriptedCluster cluster(options);
  const auto arrive = [&](const std::string& name, const std::string& created) {
    Json pod = pod_document({.name = name});
    pod["metadata"]["creationTimestamp"] = created;
    cluster.put(pod);
  };
  arrive("zeta", "2023-11-14T22:00:00Z");
  cluster.start();
  cluster.run(seconds(1));
  ASSERT_EQ(cluster.phase("zeta"), "Running");
  cluster.host = ScriptedHost();
  arrive("alpha", "2023-11-14T22:00:10Z");
  arrive("middle", "2023-11-14T22:00:05Z");
  cluster.restart();
  cluster.run(seconds(5));
  EXPECT_EQ(cluster.phase("zeta"), "Running");
  EXPECT_EQ(cluster.phase("alpha"), "Failed");
  EXPECT_EQ(cluster.pod("alpha").string_at({"status", "reason"}), "OutOfpods");
  EXPECT_EQ(cluster.phase("middle"), "Failed");
}

/// Pods that do not fit any more are admitted in the order of their creation, whatever their names.
TEST(PodRaces, AfterARestartRoomGoesToTheOlderPod) {
  AgentOptions options = node_options();
  options.pods_max = 2;
  ScriptedCluster cluster(options);
  int created = 10;
  for (const char* name : {"delta", "alpha", "charlie", "bravo"}) {
    Json pod = pod_document({.name = name});
    pod["metadata"]["creationTimestamp"] = "2023-11-14T22:00:" + std::to_string(created++) + "Z";
    cluster.put(pod);
  }
  cluster.start();
  cluster.run(seconds(5));
  EXPECT_EQ(cluster.phase("delta"), "Running");
  EXPECT_EQ(cluster.phase("alpha"), "Running");
  EXPECT_EQ(cluster.phase("charlie"), "Failed");
  EXPECT_EQ(cluster.phase("bravo"), "Failed");
}

/// The process may end between any two lines: the eviction is in the journal before anything is done to the pod.
TEST(PodRaces, AnEvictionIsInTheJournalBeforeAnythingIsDone) {
  ScriptedCluster cluster;
  cluster.put(pod_document({.name = "hog"}));
  cluster.host.set_working_set("uid-hog", mebibytes(800));
  cluster.start();
  cluster.run(seconds(2));
  int entries = 0;
  cluster.journal.on_entry = [&] {
    ++entries;
    for (const HostCommand& command : cluster.agent().take_host_commands()) {
      EXPECT_FALSE(std::holds_alternative<StopPod>(command)) << "it was to be stopped before the line was written";
    }
    EXPECT_THAT(api::to_text(cluster.agent().state(cluster.now())), ::testing::Not(HasSubstr(R"("terminating")")));
  };
  cluster.host.set_available(mebibytes(50));
  cluster.run(seconds(5));
  EXPECT_GE(entries, 1);
  cluster.journal.on_entry = {};
  EXPECT_EQ(cluster.phase("hog"), "Failed");
}

TEST(PodRaces, AnEvictionOfAUidIsNotFinishedOnTheNextPodOfThatName) {
  Running cluster(Pods{{.name = "web"}});
  cluster.host.set_working_set("uid-web", mebibytes(800));
  cluster.api.set_fault([](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (request.method != api::Method::kPatch) return {};
    return make_error(ErrorCode::kServiceUnavailable, "no answer");
  });
  cluster.host.set_available(mebibytes(50));
  cluster.run(seconds(2));
  ASSERT_FALSE(cluster.journal.entries.empty());
  cluster.api.set_fault({});
  cluster.host = ScriptedHost();
  cluster.remove(kWeb);
  Json next = pod_document({.name = "web"});
  next["metadata"]["uid"] = "uid-next";
  cluster.put(next);
  cluster.restart();
  cluster.run(seconds(5));
  EXPECT_EQ(cluster.phase("web"), "Running");
  EXPECT_EQ(cluster.pod("web").string_at({"status", "reason"}), "");
}

/// Watch events of a pod that was replaced arrive in one: the old one's end is not lost.
TEST(PodRaces, APodThatIsReplacedUnseenIsStopped) {
  Running cluster(Pods{{.name = "web"}});
  cluster.break_watches(Error{ErrorCode::kExpired, "too old", {}});
  cluster.api.remove(kWeb);
  Json next = pod_document({.name = "web"});
  next["metadata"]["uid"] = "uid-next";
  cluster.api.put(next);
  cluster.run(seconds(10));
  EXPECT_FALSE(cluster.host.is_running("uid-web", "c"));
  EXPECT_TRUE(cluster.host.is_running("uid-next", "c"));
  EXPECT_EQ(cluster.phase("web"), "Running");
}

}  // namespace
}  // namespace spillway::agent
