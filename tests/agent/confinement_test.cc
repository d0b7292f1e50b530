// Goal: what a pod's security context promises is carried out or refused, never left out in silence; a container whose
// variables refer to nothing waits for it.
#include "agent/containers/container_env.h"
#include "agent/containers/container_security.h"
#include "agent/containers/pod_resources.h"
#include "agent/scripted_cluster.h"
#include "api/codec/codec.h"
#include "api/json/json.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;

api::Pod pod_of(std::string_view container_context, std::string_view pod_context = "{}", std::string_view more = "") {
  const std::string text = fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"ns","uid":"u1"}},"spec":{{"securityContext":{},"containers":[)"
      R"({{"name":"c","securityContext":{}{}}}]}}}})",
      pod_context, container_context, more);
  const auto document = api::parse_json(text);
  EXPECT_TRUE(document) << text;
  const auto pod = api::decode<api::Pod>(*document);
  EXPECT_TRUE(pod) << pod.error().text();
  return *pod;
}

auto decide(const api::Pod& pod, SeccompDefault seccomp = SeccompDefault::kUnconfined) {
  return security_of(pod, pod.spec.containers.front(), seccomp);
}

constexpr const char* kRootImage =
    "container has runAsNonRoot and image will run as root (pod: \"p_ns(u1)\", container: c)";
constexpr const char* kRootUser = "container's runAsUser breaks non-root policy (pod: \"p_ns(u1)\", container: c)";
constexpr std::uint64_t kDefaultRights = 0xa80425fb;  // the usual capabilities of container runtimes

TEST(ContainerSecurity, WithoutAContextIsRootWithTheDefaultRights) {
  const auto made = decide(pod_of("{}"));
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, (ContainerSecurity{.capabilities = kDefaultRights}));
}

TEST(ContainerSecurity, TheContainersWordCountsBeforeThePods) {
  const char* shared =
      R"({"runAsUser":1,"runAsGroup":2,"fsGroup":9,"supplementalGroups":[7,9,8],"seccompProfile":{"type":"RuntimeDefault"}})";
  const auto inherited = decide(pod_of("{}", shared));
  ASSERT_TRUE(inherited);
  EXPECT_EQ(inherited->uid, 1U);
  EXPECT_EQ(inherited->gid, 2U);
  EXPECT_EQ(inherited->groups, (std::vector<std::uint32_t>{9, 7, 8}));
  EXPECT_TRUE(inherited->filters_calls);
  const auto own = decide(
      pod_of(R"({"runAsUser":0,"runAsGroup":5,"seccompProfile":{"type":"Unconfined"},"readOnlyRootFilesystem":true})",
             shared));
  ASSERT_TRUE(own);
  EXPECT_EQ(own->uid, 0U);
  EXPECT_EQ(own->gid, 5U);
  EXPECT_FALSE(own->filters_calls);
  EXPECT_TRUE(own->read_only_root);
}

TEST(ContainerSecurity, SeccompFollowsTheNodesDefault) {
  EXPECT_TRUE(decide(pod_of("{}"), SeccompDefault::kRuntimeDefault)->filters_calls);
  EXPECT_FALSE(
      decide(pod_of(R"({"seccompProfile":{"type":"Unconfined"}})"), SeccompDefault::kRuntimeDefault)->filters_calls);
}

TEST(ContainerSecurity, RightsAreAddedAndDropped) {
  struct Row {
    const char* capabilities;
    std::uint64_t want;
  };

  for (const Row& row : {
           Row{R"({"drop":["ALL"]})", 0},
           Row{R"({"drop":["all"]})", 0},
           Row{R"({"drop":["ALL"],"add":["NET_BIND_SERVICE"]})", 1U << 10},
           Row{R"({"drop":["KILL"]})", kDefaultRights & ~std::uint64_t{1U << 5}},
           Row{R"({"add":["CAP_SYS_TIME"]})", kDefaultRights | 1U << 25},
           Row{R"({"add":["BPF"],"drop":["ALL"]})", std::uint64_t{1} << 39},
           Row{R"({"add":["KILL"],"drop":["KILL"]})", kDefaultRights & ~std::uint64_t{1U << 5}},
           Row{R"({"add":["ALL"]})", (std::uint64_t{1} << 41) - 1},
           Row{R"({"add":["ALL"],"drop":["CHOWN"]})", (std::uint64_t{1} << 41) - 2},
       }) {
    const auto made = decide(pod_of(fmt::format(R"({{"capabilities":{}}})", row.capabilities)));
    ASSERT_TRUE(made) << row.capabilities;
    EXPECT_EQ(made->capabilities, row.want) << row.capabilities;
  }
}

TEST(ContainerSecurity, WhatCannotBeKeptIsRefused) {
  struct Row {
    const char* container;
    const char* pod;
    const char* more;
    StartRefusal want;
  };

  const std::string config = "CreateContainerConfigError";
  const std::string create = "CreateContainerError";
  for (const Row& row : {
           Row{R"({"runAsNonRoot":true})", "{}", "", {config, kRootImage}},
           Row{"{}", R"({"runAsNonRoot":true})", "", {config, kRootImage}},
           Row{R"({"runAsUser":0})", R"({"runAsNonRoot":true})", "", {config, kRootUser}},
           Row{R"({"seccompProfile":{"type":"Localhost"}})",
               "{}",
               "",
               {config, "localhostProfile must be set if seccompProfile type is Localhost."}},
           Row{"{}",
               R"({"seccompProfile":{"type":"Localhost","localhostProfile":"a.json"}})",
               "",
               {create, R"(seccomp profile "a.json": the process runtime loads no profiles of type Localhost)"}},
           Row{R"({"privileged":true})",
               "{}",
               "",
               {create, "the process runtime runs no privileged containers while it confines pods"}},
           Row{R"({"capabilities":{"add":["FLY"]}})", "{}", "", {create, R"(unknown capability "FLY")"}},
           Row{R"({"runAsUser":65536})",
               "{}",
               "",
               {create, "runAsUser 65536: the process runtime gives a pod the ids 0 to 65535"}},
           Row{"{}",
               R"({"runAsGroup":-1})",
               "",
               {create, "runAsGroup -1: the process runtime gives a pod the ids 0 to 65535"}},
           Row{"{}",
               R"({"supplementalGroups":[70000]})",
               "",
               {create, "supplementalGroups 70000: the process runtime gives a pod the ids 0 to 65535"}},
       }) {
    const auto made = decide(pod_of(row.container, row.pod, row.more));
    ASSERT_FALSE(made) << row.want.message;
    EXPECT_EQ(made.error(), row.want) << made.error().message;
  }
  EXPECT_TRUE(decide(pod_of(R"({"runAsNonRoot":false})", R"({"runAsNonRoot":true})")));
  EXPECT_TRUE(decide(pod_of(R"({"runAsUser":10})", R"({"runAsNonRoot":true})")));
  api::Pod sharing = pod_of("{}");
  sharing.spec.share_process_namespace = true;
  EXPECT_FALSE(decide(sharing));
}

TEST(LeftOut, NamesWhatIsNotDone) {
  api::Pod pod = pod_of("{}");
  EXPECT_EQ(left_out_of(pod, {}).size(), 1U) << "the image, of every pod";
  EXPECT_EQ(left_out_of(pod, "no plug-ins").size(), 1U) << "it listens on no port";
  pod.spec.containers.front().ports = {{.name = {}, .container_port = 80, .protocol = "TCP"}};
  EXPECT_EQ(left_out_of(pod, {}).size(), 1U);
  const auto shared = left_out_of(pod, "no plug-ins");
  ASSERT_EQ(shared.size(), 2U);
  EXPECT_EQ(shared[1].reason, "NetworkShared");
  EXPECT_EQ(shared[1].message,
            "The pod uses the network of its node, so no other pod there can listen on its ports: no plug-ins");
  pod.spec.host_network = true;
  EXPECT_EQ(left_out_of(pod, "no plug-ins").size(), 1U) << "as it requested";
}

TEST(Isolation, FollowsTheHostSwitches) {
  MachineInfo machine;
  EXPECT_FALSE(isolation_of(pod_of("{}"), machine).confined);
  machine.confines_pods = true;
  api::Pod pod = pod_of("{}");
  EXPECT_EQ(isolation_of(pod, machine), (PodIsolation{.ipc = true, .confined = true, .hostname = "p"}));
  pod.spec.host_ipc = true;
  pod.spec.host_pid = true;
  pod.spec.host_network = true;
  EXPECT_EQ(isolation_of(pod, machine), (PodIsolation{.ipc = false, .confined = true, .host_pids = true}));
  pod.spec.host_network = false;
  pod.metadata.name = std::string(62, 'a') + "-b";
  EXPECT_EQ(isolation_of(pod, machine).hostname, std::string(62, 'a'));
}

Json config_map(const std::string& name, Json data) {
  return Json::object({{"apiVersion", "v1"},
                       {"kind", "ConfigMap"},
                       {"metadata", Json::object({{"name", name}, {"namespace", "shop"}, {"uid", "uid-" + name}})},
                       {"data", std::move(data)}});
}

Json secret(const std::string& name, Json data) {
  Json object = config_map(name, std::move(data));
  object["kind"] = "Secret";
  return object;
}

struct ReferenceTest : ::testing::Test {
  ScriptedCluster cluster;

  /// A pod "web" whose container has these members.
  void begin(std::string_view members) {
    Json document = pod_document({.name = "web", .memory_request = "64Mi"});
    const auto parsed = api::parse_json(members);
    ASSERT_TRUE(parsed) << members;
    for (const auto& [key, value] : *parsed->if_object())
      document.at({"spec", "containers"})->if_array()->front()[key] = value;
    cluster.put(std::move(document));
    cluster.start();
    cluster.run(seconds(1));
  }

  std::string waiting() const {
    const Json pod = cluster.pod("web");
    const Json* list = pod.at({"status", "containerStatuses"});
    if (list == nullptr || list->if_array()->empty()) return "no status";
    const Json& status = list->if_array()->front();
    return fmt::format("{}: {}", status.string_at({"state", "waiting", "reason"}),
                       status.string_at({"state", "waiting", "message"}));
  }

  std::optional<std::string> variable(std::string_view name) const {
    const StartContainer* start = cluster.host.last<StartContainer>();
    if (start == nullptr) return std::nullopt;
    for (const auto& [each, value] : start->env)
      if (each == name) return value;
    return std::nullopt;
  }
};

TEST_F(ReferenceTest, AMissingSecretIsWaitedFor) {
  begin(R"({"env":[{"name":"KEY","valueFrom":{"secretKeyRef":{"name":"keys","key":"k"}}}]})");
  EXPECT_EQ(waiting(), "CreateContainerConfigError: secret \"keys\" not found");
  EXPECT_EQ(cluster.host.last<StartContainer>(), nullptr);
  EXPECT_EQ(cluster.events("Failed").size(), 1U);
  EXPECT_EQ(cluster.events("Failed").front().string_at({"message"}), "Error: secret \"keys\" not found");

  cluster.put(secret("keys", Json::object({{"other", "eA=="}})));
  cluster.run(seconds(11));
  EXPECT_EQ(waiting(), "CreateContainerConfigError: couldn't find key k in Secret shop/keys");

  cluster.put(secret("keys", Json::object({{"k", "c2VjcmV0"}})));
  cluster.run(seconds(11));
  EXPECT_EQ(cluster.phase("web"), "Running");
  EXPECT_EQ(variable("KEY"), "secret");
  EXPECT_EQ(cluster.host.last<StartContainer>()->attempt, 0) << "it never ran before";
}

TEST_F(ReferenceTest, WhatIsOptionalMayBeMissing) {
  cluster.put(config_map("there", Json::object({{"a", "1"}})));
  begin(R"x({"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"gone","key":"k","optional":true}}},
                    {"name":"B","valueFrom":{"configMapKeyRef":{"name":"there","key":"k","optional":true}}},
                    {"name":"C","valueFrom":{"configMapKeyRef":{"name":"there","key":"a"}}},
                    {"name":"D","value":"$(C)$(A)"}],
            "envFrom":[{"configMapRef":{"name":"gone","optional":true}},
                       {"prefix":"P_","configMapRef":{"name":"there"}}]})x");
  EXPECT_EQ(cluster.phase("web"), "Running");
  EXPECT_EQ(variable("A"), std::nullopt);
  EXPECT_EQ(variable("B"), std::nullopt);
  EXPECT_EQ(variable("C"), "1");
  EXPECT_EQ(variable("D"), "1$(A)");
  EXPECT_EQ(variable("P_a"), "1");
}

TEST_F(ReferenceTest, AMissingSourceIsNamed) {
  begin(R"({"envFrom":[{"configMapRef":{"name":"gone"}}]})");
  EXPECT_EQ(waiting(), "CreateContainerConfigError: configmap \"gone\" not found");
}

/// Members of a container: variables that each hold the one before `fan` times, and its arguments.
Json nested(int fan, const std::string& arg) {
  Json env = Json::array({Json::object({{"name", "V0"}, {"value", "x"}})});
  for (int i = 1; i <= 3; ++i) {
    std::string value;
    for (int j = 0; j < fan; ++j) value += fmt::format("$(V{})", i - 1);
    env.if_array()->push_back(Json::object({{"name", fmt::format("V{}", i)}, {"value", value}}));
  }
  return Json::object({{"env", env}, {"command", Json::array({"serve"})}, {"args", Json::array({arg, arg, arg})}});
}

TEST_F(ReferenceTest, WhatNoProgramCanBeStartedWithIsNotMade) {
  begin(api::to_text(nested(300, "a")));
  EXPECT_EQ(waiting(), "CreateContainerError: environment variable V3 exceeds 131071 bytes: argument list too long");
  EXPECT_EQ(cluster.host.last<StartContainer>(), nullptr);
  EXPECT_EQ(cluster.events("Failed").size(), 1U);
  EXPECT_EQ(cluster.events("Failed").front().string_at({"message"}),
            "Error: environment variable V3 exceeds 131071 bytes: argument list too long");
}

TEST_F(ReferenceTest, ArgumentsForAnImageAreBoundedAsWell) {
  cluster.machine.runs_images = true;
  std::string arg;
  for (int i = 0; i < 3'000; ++i) arg += "$(V3)";
  begin(api::to_text(nested(10, arg)));
  EXPECT_EQ(waiting(), "CreateContainerError: argument 1 exceeds 131071 bytes: argument list too long");
  EXPECT_EQ(cluster.host.last<StartContainer>(), nullptr);
}

TEST_F(ReferenceTest, ArgumentsThatNoProgramTakesAreNotMade) {
  std::string arg;
  for (int i = 0; i < 3'000; ++i) arg += "$(V3)";
  begin(api::to_text(nested(10, arg)));
  EXPECT_EQ(waiting(), "CreateContainerError: argument 1 exceeds 131071 bytes: argument list too long");
  EXPECT_EQ(cluster.host.last<StartContainer>(), nullptr);
}

TEST_F(ReferenceTest, ALongEnvironmentIsWaitedFor) {
  Json data = Json::object();
  for (int i = 0; i < 600; ++i) data[fmt::format("K{}", i)] = std::string(1'000, 'v');
  cluster.put(config_map("many", data));
  begin(R"({"envFrom":[{"prefix":"A","configMapRef":{"name":"many"}},{"prefix":"B","configMapRef":{"name":"many"}},
                       {"prefix":"C","configMapRef":{"name":"many"}},{"prefix":"D","configMapRef":{"name":"many"}}]})");
  EXPECT_EQ(waiting(),
            "CreateContainerError: arguments and environment exceed 2097152 bytes: argument list too "
            "long");
  cluster.put(config_map("many", Json::object({{"K1", "less"}})));
  cluster.run(seconds(11));
  EXPECT_EQ(cluster.phase("web"), "Running");
  EXPECT_EQ(variable("DK1"), "less");
}

/// A pod with this number of containers, all with these members; the first one is named "c".
Json pod_of_many(int containers, const Json& members) {
  Json document = pod_document({.name = "web", .memory_request = "1Mi"});
  Json::Array& list = *document.at({"spec", "containers"})->if_array();
  for (const auto& [key, value] : *members.if_object()) list.front()[key] = value;
  const Json first = list.front();
  for (int i = 1; i < containers; ++i) {
    list.push_back(first);
    list.back()["name"] = fmt::format("c{}", i);
  }
  return document;
}

/// An environment of 10 variables of 100,000 bytes each.
Json a_megabyte() {
  Json members = nested(1, "a");
  members["env"].if_array()->front()["value"] = std::string(1'000, 'x');
  std::string value;
  for (int j = 0; j < 100; ++j) value += "$(V0)";
  for (int i = 0; i < 10; ++i)
    members["env"].if_array()->push_back(Json::object({{"name", fmt::format("W{}", i)}, {"value", value}}));
  return members;
}

TEST_F(ReferenceTest, ContainersWithLargeEnvironmentsStartInTurns) {
  cluster.put(pod_of_many(7, a_megabyte()));
  cluster.start();
  std::size_t first = 0;  // commands of the first turn: the machine answers a millisecond later
  for (int i = 0; i < 30'000 && first == 0; ++i) {
    cluster.run(microseconds(100));
    first = cluster.host.count<StartContainer>();
  }
  EXPECT_EQ(first, 5u) << "of 4 MiB";
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.host.count<StartContainer>(), 7u);
  EXPECT_EQ(cluster.phase("web"), "Running");
}

TEST_F(ReferenceTest, EnvironmentsOfAPodHaveABoundTogether) {
  cluster.put(pod_of_many(30, a_megabyte()));
  cluster.start();
  cluster.run(seconds(30));
  EXPECT_EQ(cluster.host.count<StartContainer>(), 9u);
  const Json pod = cluster.pod("web");
  EXPECT_EQ(pod.at({"status", "containerStatuses"})->if_array()->back().string_at({"state", "waiting", "message"}),
            "arguments and environments of the pod's other containers exceed 8388608 bytes");
}

TEST_F(ReferenceTest, AContainerThatIsTooLargeHoldsTheOthersUpForASecond) {
  Json document = pod_of_many(3, nested(300, "a"));
  document.at({"spec", "containers"})->if_array()->back()["env"] = Json::array();
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(milliseconds(500));
  EXPECT_EQ(cluster.events("Failed").size(), 1U);
  EXPECT_EQ(cluster.host.count<StartContainer>(), 0u);
  cluster.run(seconds(3));
  EXPECT_EQ(cluster.events("Failed").size(), 2U);
  EXPECT_EQ(cluster.host.count<StartContainer>(), 1u);
}

TEST_F(ReferenceTest, SourcesOfOneEnvironmentHaveABoundOfBytes) {
  std::string members;
  for (int i = 0; i < 20; ++i) {
    cluster.put(config_map(fmt::format("m{}", i), Json::object({{"k", std::string(1'000'000, 'v')}, {"s", "1"}})));
    members += fmt::format(R"({}{{"name":"V{}","valueFrom":{{"configMapKeyRef":{{"name":"m{}","key":"s"}}}}}})",
                           i == 0 ? "" : ",", i, i);
  }
  begin(R"({"env":[)" + members + "]}");
  EXPECT_EQ(waiting(),
            "CreateContainerConfigError: the ConfigMaps, Secrets and files of its environment hold more than "
            "16777216 bytes");
}

TEST_F(ReferenceTest, AWorkingDirectoryIsAPath) {
  cluster.machine.confines_pods = true;
  std::string path;
  for (int i = 0; i < 1'000; ++i) path += "/$(V2)";
  Json members = nested(10, "a");
  members["workingDir"] = path;
  begin(api::to_text(members));
  EXPECT_EQ(waiting(), "CreateContainerError: workingDir: File name too long");
}

TEST_F(ReferenceTest, APodThatIsDeletedMeanwhileEnds) {
  begin(R"({"envFrom":[{"secretRef":{"name":"gone"}}]})");
  cluster.delete_pod("web", 1);
  cluster.run(seconds(15));
  EXPECT_TRUE(cluster.pod("web").is_null());
  EXPECT_EQ(cluster.host.last<StartContainer>(), nullptr);
}

TEST_F(ReferenceTest, AConfinedPodHasAnEventAboutWhatItDoesNotGet) {
  cluster.machine.confines_pods = true;
  begin(R"({"securityContext":{"runAsNonRoot":true}})");
  EXPECT_EQ(waiting(),
            "CreateContainerConfigError: container has runAsNonRoot and image will run as root (pod: "
            "\"web_shop(uid-web)\", container: c)");
  EXPECT_EQ(cluster.events("ImageNotUsed").size(), 1U);
  EXPECT_EQ(cluster.events("Failed").size(), 1U);
  cluster.run(minutes(5));
  EXPECT_EQ(cluster.events("ImageNotUsed").size(), 1U);
  EXPECT_EQ(cluster.events("Failed").size(), 1U) << "it cannot change";
}

TEST_F(ReferenceTest, AConfinedContainerCarriesItsContext) {
  cluster.machine.confines_pods = true;
  begin(R"({"securityContext":{"runAsUser":7,"capabilities":{"drop":["ALL"]}}})");
  ASSERT_NE(cluster.host.last<StartContainer>(), nullptr);
  EXPECT_EQ(cluster.host.last<StartContainer>()->security, (ContainerSecurity{.uid = 7}));
  EXPECT_TRUE(cluster.host.last<CreatePod>()->isolation.confined);
}

/// A pod that an API server of a later version sends, which keeps the field.
Json pod_with_own_users() {
  Json pod = pod_document({.name = "web", .memory_request = "64Mi"});
  pod["spec"]["hostUsers"] = false;
  pod["spec"]["initContainers"] = api::parse_json(R"([{"name":"i","image":"none","command":["x"]}])").value();
  return pod;
}

TEST_F(ReferenceTest, APodThatAsksForUsersOfItsOwnIsNotStartedWithoutThem) {
  cluster.put(pod_with_own_users());
  cluster.start();
  cluster.run(minutes(5));
  EXPECT_EQ(cluster.host.last<StartContainer>(), nullptr);
  const Json pod = cluster.pod("web");
  EXPECT_EQ(pod.string_at({"status", "phase"}), "Pending");
  const Json& waits = *pod.at({"status", "initContainerStatuses"})->if_array()->front().at({"state", "waiting"});
  EXPECT_EQ(waits.string_at({"reason"}), "CreateContainerError");
  EXPECT_EQ(waits.string_at({"message"}),
            "hostUsers: false: this node gives pods no user namespace (--process-isolation=none)");
  ASSERT_EQ(cluster.events("Failed").size(), 1U) << "it cannot change";
  EXPECT_EQ(cluster.events("Failed").front().string_at({"message"}),
            "Error: hostUsers: false: this node gives pods no user namespace (--process-isolation=none)");
  cluster.delete_pod("web", 1);
  cluster.run(seconds(15));
  EXPECT_TRUE(cluster.pod("web").is_null());
}

TEST_F(ReferenceTest, AConfinedPodHasUsersOfItsOwn) {
  cluster.machine.confines_pods = true;
  cluster.put(pod_with_own_users());
  cluster.start();
  cluster.run(seconds(5));
  ASSERT_NE(cluster.host.last<StartContainer>(), nullptr);
  EXPECT_TRUE(cluster.host.last<CreatePod>()->isolation.confined);
}

TEST(HostUsers, OnlyTheWishForUsersOfItsOwnNeedsConfinement) {
  api::Pod pod = pod_of("{}");
  EXPECT_EQ(refusal_without_confinement(pod), std::nullopt);
  pod.spec.host_users = true;
  EXPECT_EQ(refusal_without_confinement(pod), std::nullopt);
  pod.spec.host_users = false;
  ASSERT_TRUE(refusal_without_confinement(pod));
  EXPECT_EQ(refusal_without_confinement(pod)->reason, "CreateContainerError");
}

}  // namespace
}  // namespace spillway::agent
