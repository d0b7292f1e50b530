// Pods, what makes pods, and namespaces, held against the Pod Security Standards through the server's own requests.
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kNamespaces = "/api/v1/namespaces";
const std::string kPods = "/api/v1/namespaces/ns/pods";

constexpr std::string_view kBadSpec = R"({"containers":[{"name":"a","image":"x"}]})";
constexpr std::string_view kGoodSpec =
    R"({"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"a",)"
    R"("image":"x","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]})";
constexpr std::string_view kPrivilegedSpec =
    R"({"hostNetwork":true,"containers":[{"name":"a","image":"x","securityContext":{"privileged":true}}]})";

const std::string kOfBad =
    R"(allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), )"
    R"(unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), )"
    R"(runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), )"
    R"(seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))";
const std::string kOfPrivileged =
    R"(host namespaces (hostNetwork), privileged (container "a" must not set securityContext.privileged=true))";

std::string namespace_with(std::string_view labels, std::string_view name = "ns") {
  std::string named(labels);
  return fmt::format(R"({{"metadata":{{"name":"{}","labels":{{{}}}}}}})", name, named);
}

/// "pod-security.kubernetes.io/MODE":"VALUE" for "MODE=VALUE,MODE=VALUE".
std::string label_list(std::string_view modes) {
  std::string out;
  while (!modes.empty()) {
    const std::string_view one = modes.substr(0, modes.find(','));
    modes.remove_prefix(std::min(one.size() + 1, modes.size()));
    const std::size_t at = one.find('=');
    out += fmt::format(R"({}"pod-security.kubernetes.io/{}":"{}")", out.empty() ? "" : ",", one.substr(0, at),
                       one.substr(at + 1));
  }
  return out;
}

/// A server with the namespace "ns", its labels, and its default service account.
struct World {
  explicit World(std::string_view modes, podsecurity::Configuration configuration = {})
      : server(ApiServer::Controllers::kUnknown,
               {.memory_pressure_toleration = true, .token_volumes = true, .pod_security = std::move(configuration)}) {
    make_namespace("ns", modes);
  }

  void make_namespace(const std::string& name, std::string_view modes) {
    EXPECT_EQ(server.post(std::string(kNamespaces), namespace_with(label_list(modes), name)).code, 201);
    server.post(fmt::format("{}/{}/serviceaccounts", kNamespaces, name), R"({"metadata":{"name":"default"}})");
  }

  Answer make_pod(std::string_view name, std::string_view spec, std::string_view query = "") {
    return server.post(fmt::format("{}{}", kPods, query),
                       fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{}}})", name, spec));
  }

  Answer label_namespace(std::string_view modes) {
    return server.merge(fmt::format("{}/ns", kNamespaces),
                        fmt::format(R"({{"metadata":{{"labels":{{{}}}}}}})", label_list(modes)));
  }

  /// The value of a metric with these labels, in the order of the exposition's text; 0 if there is none.
  std::string metric(std::string_view name, std::string_view holds) {
    const std::string text = server.get("/metrics").text;
    std::string found;
    for (std::size_t at = text.find(std::string(name) + "{"); at != std::string::npos;
         at = text.find(std::string(name) + "{", at + 1)) {
      const std::string line = text.substr(at, text.find('\n', at) - at);
      if (line.find(holds) != std::string::npos) found += line.substr(line.rfind(' ') + 1) + ";";
    }
    return found;
  }

  TestServer server;
};

Lines warnings_of(const Answer& answer) {
  Lines lines;
  for (const auto& [name, value] : answer.headers) {
    if (name != "Warning") continue;
    std::string text;
    for (const char c : value) {
      if (c != '\\') text += c;
    }
    EXPECT_TRUE(text.starts_with("299 - \"")) << text;
    lines.push_back(text.substr(7, text.size() - 8));
  }
  return lines;
}

TEST(PodSecurity, RefusesWhatIsEnforced) {
  World world("enforce=restricted");
  const Answer refused = world.make_pod("bad", kBadSpec);
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.string_at({"reason"}), "Forbidden");
  EXPECT_EQ(refused.string_at({"details", "name"}), "bad");
  EXPECT_EQ(refused.string_at({"details", "kind"}), "pods");
  EXPECT_EQ(refused.string_at({"message"}),
            "pods \"bad\" is forbidden: violates PodSecurity \"restricted:latest\": " + kOfBad);
  EXPECT_EQ(warnings_of(refused), Lines{});
  EXPECT_EQ(world.server.get(kPods + "/bad").code, 404);

  const Answer made = world.make_pod("good", kGoodSpec);
  EXPECT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(warnings_of(made), Lines{});
  EXPECT_EQ(world.make_pod("tried", kBadSpec, "?dryRun=All").code, 403);
}

TEST(PodSecurity, LetsEverythingPassWhereNothingIsSaid) {
  World world("");
  EXPECT_EQ(world.make_pod("a", kPrivilegedSpec).code, 201);
  World privileged("enforce=privileged,enforce-version=v1.20");
  EXPECT_EQ(privileged.make_pod("a", kPrivilegedSpec).code, 201);
}

TEST(PodSecurity, EvaluatesByTheVersionThatIsNamed) {
  World world("enforce=restricted,enforce-version=v1.7,warn=privileged");
  const Answer refused = world.make_pod("bad", kBadSpec);
  EXPECT_EQ(
      refused.string_at({"message"}),
      R"(pods "bad" is forbidden: violates PodSecurity "restricted:v1.7": runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true))");
  EXPECT_EQ(
      world.make_pod("good", R"({"securityContext":{"runAsNonRoot":true},"containers":[{"name":"a","image":"x"}]})")
          .code,
      201);
}

/// An invalid pod gets its own errors, not the violations of its namespace's standard.
TEST(PodSecurity, RunsAfterValidation) {
  World world("enforce=restricted");
  EXPECT_EQ(world.make_pod("bad", R"({"containers":[{"name":"A","image":"x"}]})").code, 422);
}

TEST(PodSecurity, WarnsAndLetsPass) {
  World world("warn=restricted,audit=baseline");
  const Answer made = world.make_pod("bad", kBadSpec);
  EXPECT_EQ(made.code, 201);
  EXPECT_EQ(warnings_of(made), Lines{"would violate PodSecurity \"restricted:latest\": " + kOfBad});
  EXPECT_EQ(warnings_of(world.make_pod("good", kGoodSpec)), Lines{});
}

TEST(PodSecurity, SaysNothingWhereItOnlyAudits) {
  World world("audit=restricted");
  const Answer made = world.make_pod("bad", kBadSpec);
  EXPECT_EQ(made.code, 201);
  EXPECT_EQ(warnings_of(made), Lines{});
  EXPECT_EQ(world.metric("pod_security_evaluations_total", R"(mode="audit")"), "1;");
}

TEST(PodSecurity, RefusesWhatIsMadeOnOtherWays) {
  World world("enforce=baseline");
  const Answer generated =
      world.server.post(kPods, fmt::format(R"({{"metadata":{{"generateName":"g-"}},"spec":{}}})", kPrivilegedSpec));
  EXPECT_EQ(generated.code, 403);
  EXPECT_TRUE(generated.string_at({"message"}).starts_with("pods \"g-")) << generated.text;
  EXPECT_TRUE(generated.string_at({"message"}).ends_with("violates PodSecurity \"baseline:latest\": " + kOfPrivileged));
  const Answer applied = world.server.call(
      api::Method::kPatch, kPods + "/new?fieldManager=x",
      fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"new"}},"spec":{}}})", kPrivilegedSpec),
      {{"Content-Type", "application/apply-patch+yaml"}});
  EXPECT_EQ(applied.code, 403) << applied.text;
  const Answer init = world.make_pod(
      "init",
      R"({"initContainers":[{"name":"i","image":"x","securityContext":{"privileged":true}}],"containers":[{"name":"a","image":"x"}]})");
  EXPECT_EQ(
      init.string_at({"message"}),
      R"(pods "init" is forbidden: violates PodSecurity "baseline:latest": privileged (container "i" must not set securityContext.privileged=true))");
}

TEST(PodSecurity, RefusesContainersForDebugging) {
  World world("enforce=baseline");
  ASSERT_EQ(world.make_pod("a", kGoodSpec).code, 201);
  const std::string endpoint = kPods + "/a/ephemeralcontainers";
  const Answer refused = world.server.strategic(
      endpoint, R"({"spec":{"ephemeralContainers":[{"name":"e","image":"x","securityContext":{"privileged":true}}]}})");
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(
      refused.string_at({"message"}),
      R"(pods "a" is forbidden: violates PodSecurity "baseline:latest": privileged (container "e" must not set securityContext.privileged=true))");
  EXPECT_EQ(world.server.strategic(endpoint, R"({"spec":{"ephemeralContainers":[{"name":"e","image":"x"}]}})").code,
            200);
}

/// A pod that was there before the standard can still be labelled and deleted, not given another image.
TEST(PodSecurity, KeepsTheMetadataOfExistingPods) {
  World world("");
  ASSERT_EQ(world.make_pod("old", kPrivilegedSpec).code, 201);
  ASSERT_EQ(world.label_namespace("enforce=baseline").code, 200);
  const std::string old = kPods + "/old";
  const Answer labelled = world.server.merge(old, R"({"metadata":{"labels":{"a":"b"}}})");
  EXPECT_EQ(labelled.code, 200) << labelled.text;
  EXPECT_EQ(warnings_of(labelled), Lines{});
  EXPECT_EQ(world.server.merge(old, R"({"spec":{"activeDeadlineSeconds":100}})").code, 200);
  EXPECT_EQ(world.server.merge(old + "/status", R"({"status":{"phase":"Running"}})").code, 200);
  const Answer image =
      world.server.json_patch(old, R"([{"op":"replace","path":"/spec/containers/0/image","value":"y"}])");
  EXPECT_EQ(image.code, 403);
  EXPECT_EQ(image.string_at({"message"}),
            "pods \"old\" is forbidden: violates PodSecurity \"baseline:latest\": " + kOfPrivileged);
  EXPECT_EQ(world.server.remove(old).code, 200);
}

TEST(PodSecurity, WarnsOfWhatMakesPods) {
  World world("enforce=baseline");
  const auto workload = [&](std::string_view kind, std::string_view path, std::string_view name,
                            std::string_view spec) {
    return world.server.post(
        fmt::format("/apis/apps/v1/namespaces/ns/{}", path),
        fmt::format(
            R"({{"apiVersion":"apps/v1","kind":"{}","metadata":{{"name":"{}"}},"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},)"
            R"("template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{}}}}}}})",
            kind, name, spec));
  };
  for (const auto& [kind, path] : {std::pair("Deployment", "deployments"), std::pair("ReplicaSet", "replicasets"),
                                   std::pair("DaemonSet", "daemonsets")}) {
    SCOPED_TRACE(kind);
    const Answer made = workload(kind, path, "w", kPrivilegedSpec);
    EXPECT_EQ(made.code, 201) << made.text;
    EXPECT_EQ(warnings_of(made), Lines{"would violate PodSecurity \"baseline:latest\": " + kOfPrivileged});
    EXPECT_EQ(warnings_of(workload(kind, path, "good", kGoodSpec)), Lines{});
    const std::string at = fmt::format("/apis/apps/v1/namespaces/ns/{}/w", path);
    EXPECT_EQ(warnings_of(world.server.merge(at, R"({"metadata":{"labels":{"x":"y"}}})")).size(), 1U);
    EXPECT_EQ(warnings_of(world.server.merge(at + "/status", R"({"status":{"observedGeneration":1}})")), Lines{});
  }
  EXPECT_EQ(
      warnings_of(world.server.merge("/apis/apps/v1/namespaces/ns/replicasets/w/scale", R"({"spec":{"replicas":2}})")),
      Lines{});
  EXPECT_EQ(world.metric("pod_security_evaluations_total", R"(mode="warn")"), "3;3;");
}

TEST(PodSecurity, RefusesWrongLabels) {
  World world("");
  const Answer refused = world.server.post(std::string(kNamespaces),
                                           namespace_with(label_list("enforce=strict,audit-version=1.2"), "wrong"));
  EXPECT_EQ(refused.code, 422);
  EXPECT_EQ(refused.string_at({"reason"}), "Invalid");
  EXPECT_EQ(
      refused.string_at({"message"}),
      "Namespace \"wrong\" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "
      "\"strict\": "
      "must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/audit-version]: "
      "Invalid value: \"1.2\": must be \"latest\" or \"v1.x\"]");
  EXPECT_EQ(world.label_namespace("warn=x").code, 422);
  EXPECT_EQ(world.label_namespace("warn=baseline,warn-version=v1.99").code, 200);
}

/// Labels that are wrong already (written through the status, where they are not checked) prevent no write, and count
/// as the strictest.
TEST(PodSecurity, TakesWrongLabelsForTheStrictest) {
  World world("");
  ASSERT_EQ(world.server
                .merge(fmt::format("{}/ns/status", kNamespaces),
                       fmt::format(R"({{"metadata":{{"labels":{{{}}}}}}})", label_list("enforce=x")))
                .code,
            200);
  EXPECT_EQ(world.server.merge(fmt::format("{}/ns", kNamespaces), R"({"metadata":{"annotations":{"a":"b"}}})").code,
            200);
  EXPECT_EQ(world.label_namespace("warn=y").code, 422);
  EXPECT_EQ(world.make_pod("bad", kBadSpec).code, 403);
  EXPECT_EQ(world.metric("pod_security_errors_total", R"(fatal="false")"), "1;");
}

TEST(PodSecurity, WarnsOfExistingPods) {
  World world("");
  ASSERT_EQ(world.make_pod("b", kPrivilegedSpec).code, 201);
  ASSERT_EQ(world.make_pod("a", kPrivilegedSpec).code, 201);
  ASSERT_EQ(world.make_pod("good", kGoodSpec).code, 201);
  world.make_namespace("ns-other", "");
  const Lines warned{"existing pods in namespace \"ns\" violate the new PodSecurity enforce level \"baseline:latest\"",
                     "a (and 1 other pod): host namespaces, privileged"};
  const Answer tried =
      world.server.merge(fmt::format("{}/ns?dryRun=All", kNamespaces),
                         fmt::format(R"({{"metadata":{{"labels":{{{}}}}}}})", label_list("enforce=baseline")));
  EXPECT_EQ(tried.code, 200);
  EXPECT_EQ(warnings_of(tried), warned);
  EXPECT_EQ(warnings_of(world.label_namespace("enforce=baseline")), warned);
  EXPECT_EQ(warnings_of(world.label_namespace("enforce=baseline")), Lines{});    // no change
  EXPECT_EQ(warnings_of(world.label_namespace("warn=restricted")), Lines{});     // nothing that is enforced
  EXPECT_EQ(warnings_of(world.label_namespace("enforce=privileged")), Lines{});  // laxer
}

TEST(PodSecurity, SparesWhoIsExempt) {
  const podsecurity::LevelVersion restricted{podsecurity::Level::kRestricted, {}};
  World world("", {.defaults = {.enforce = restricted, .audit = restricted, .warn = restricted},
                   .exempt_users = {"trusted"},
                   .exempt_runtime_classes = {"vm"},
                   .exempt_namespaces = {"free"}});
  EXPECT_EQ(world.make_pod("a", kBadSpec).code, 403);
  const api::UserInfo admin = world.server.user;
  world.server.user.name = "trusted";
  EXPECT_EQ(world.make_pod("a", kBadSpec).code, 201);
  world.server.user = admin;
  ASSERT_EQ(
      world.server.post("/apis/node.k8s.io/v1/runtimeclasses", R"({"metadata":{"name":"vm"},"handler":"vm"})").code,
      201);
  EXPECT_EQ(world.make_pod("b", R"({"runtimeClassName":"vm","containers":[{"name":"a","image":"x"}]})").code, 201);
  const Answer made =
      world.server.post(std::string(kNamespaces), namespace_with(label_list("enforce=baseline"), "free"));
  EXPECT_EQ(made.code, 201);
  EXPECT_EQ(warnings_of(made), Lines{"namespace \"free\" is exempt from Pod Security, and the policy "
                                     "(enforce=baseline:latest) will be ignored"});
  world.server.post(fmt::format("{}/free/serviceaccounts", kNamespaces), R"({"metadata":{"name":"default"}})");
  EXPECT_EQ(world.server
                .post(fmt::format("{}/free/pods", kNamespaces),
                      fmt::format(R"({{"metadata":{{"name":"c"}},"spec":{}}})", kBadSpec))
                .code,
            201);
  EXPECT_EQ(world.metric("pod_security_exemptions_total", R"(resource="pod")"), "3;");
}

TEST(PodSecurity, CanBeSwitchedOff) {
  TestServer server(ApiServer::Controllers::kUnknown,
                    {.memory_pressure_toleration = true, .token_volumes = true, .pod_security = std::nullopt});
  ASSERT_EQ(server.post(std::string(kNamespaces), namespace_with(label_list("enforce=x"))).code, 201);
  server.post("/api/v1/namespaces/ns/serviceaccounts", R"({"metadata":{"name":"default"}})");
  EXPECT_EQ(server.post(kPods, fmt::format(R"({{"metadata":{{"name":"a"}},"spec":{}}})", kPrivilegedSpec)).code, 201);
}

TEST(PodSecurity, CountsWhatItDecides) {
  World world("enforce=baseline,enforce-version=v1.99");
  world.make_pod("good", kGoodSpec);
  world.make_pod("bad", kPrivilegedSpec);
  world.make_pod("bad", kPrivilegedSpec);
  EXPECT_EQ(world.metric("pod_security_evaluations_total", R"(decision="deny")"), "2;");
  const std::string text = world.server.get("/metrics").text;
  for (const std::string_view part : {R"(policy_level="baseline")", R"(policy_version="future")", R"(mode="enforce")",
                                      R"(request_operation="create")", R"(resource="pod")", R"(subresource="")"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST(PodSecurity, IsShortAboutManyContainers) {
  World world("enforce=restricted");
  std::string spec = R"({"containers":[)";
  for (int i = 0; i < 1'000; ++i) {
    spec += fmt::format(R"({}{{"name":"a-rather-long-name-of-a-container-that-says-little-{}","image":"x"}})",
                        i == 0 ? "" : ",", i);
  }
  const Answer refused = world.make_pod("many", spec + "]}");
  EXPECT_EQ(refused.code, 403);
  EXPECT_LT(refused.text.size(), 20'000U);
  // A warning that is too long for a header is cut, not left out.
  ASSERT_EQ(world.label_namespace("enforce=privileged,warn=restricted").code, 200);
  const Answer made = world.make_pod("many", spec + "]}");
  EXPECT_EQ(made.code, 201) << made.text.substr(0, 300);
  const Lines warned = warnings_of(made);
  ASSERT_EQ(warned.size(), 1U);
  EXPECT_LT(warned[0].size(), 300U);
  EXPECT_TRUE(warned[0].starts_with("would violate PodSecurity \"restricted:latest\": allowPrivilegeEscalation"))
      << warned[0];
}

}  // namespace

}  // namespace spillway::apiserver
