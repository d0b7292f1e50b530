// Goal: a KubeletConfiguration is read as upstream reads it, and what is wrong in it is named with its place.
#include "agent/config/kubelet_config.h"

#include "agent/config/config_lint.h"
#include "agent/config/config_refusals.h"
#include "agent/config/config_schema.h"
#include "agent/config/gate_config.h"
#include "agent/config/image_config.h"
#include "agent/config/manifest_config.h"
#include "agent/config/registration_config.h"
#include "agent/config/resource_config.h"
#include "agent/config/tls_config.h"
#include "agent/contract/blind_zone.h"
#include "api/text/duration.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;

ConfigDocument document(std::string_view members) {
  Json value = api::parse_json(members).value();
  value["apiVersion"] = "kubelet.config.k8s.io/v1beta1";
  value["kind"] = "KubeletConfiguration";
  return {.file = "k.yaml", .value = std::move(value), .origins = {}};
}

std::vector<std::string> errors(std::string_view members) {
  std::vector<std::string> texts;
  for (const ConfigFinding& each : check_config(document(members)).findings) texts.push_back(each.text());
  return texts;
}

Json effective(std::string_view members) {
  return effective_config(check_config(document(members)).value, std::nullopt);
}

TEST(KubeletConfig, NamesAnUnknownKeyAndTheNearestOne) {
  EXPECT_EQ(errors(R"({"evictionHrad": {}})"),
            std::vector<std::string>{"k.yaml: evictionHrad: unknown key; did you mean evictionHard?"});
  EXPECT_EQ(errors(R"({"authentication": {"webhook": {"cacheTLT": "2m"}}})"),
            std::vector<std::string>{"k.yaml: authentication[webhook][cacheTLT]: unknown key; did you mean cacheTTL?"});
  EXPECT_EQ(errors(R"({"zzzzzzzz": 1})"), std::vector<std::string>{"k.yaml: zzzzzzzz: unknown key"});
}

TEST(KubeletConfig, StartsWithUnknownKeysAsAKubeletDoes) {
  ConfigDocument given = document(R"({"anonymousAuth": false, "maxPods": 7})");
  given.repeated.push_back({.line = 9, .first_line = 4, .key = "maxPods"});
  const CheckedConfig checked = check_config(given);
  ASSERT_EQ(checked.findings.size(), 2U);
  for (const ConfigFinding& each : checked.findings) EXPECT_EQ(each.kind, ConfigFinding::Kind::kTolerated);
  EXPECT_EQ(checked.findings.front().text(),
            "k.yaml:9: maxPods: is there twice, first in line 4: the last value counts");
  EXPECT_EQ(checked.value.find("anonymousAuth"), nullptr);
  EXPECT_EQ(options_of(effective_config(checked.value, std::nullopt))->pods_max, 7);
}

TEST(KubeletConfig, ReadsWhatConfigzAnswers) {
  const auto file = [](std::string_view text) {
    return as_config_file(
        {.file = "k.json", .value = api::parse_json(text).value(), .origins = [](std::string_view path) {
           return std::optional(ScalarOrigin{path == "kubeletconfig[maxPods]" ? 3 : 1, {}});
         }});
  };
  const ConfigFile whole = file(R"({"kubeletconfig": {"maxPods": 7}})");
  EXPECT_FALSE(whole.has_header);
  EXPECT_EQ(whole.document.value.string_at({"kind"}), "KubeletConfiguration");
  EXPECT_EQ(whole.document.origin_of("maxPods").line, 3);
  EXPECT_TRUE(check_config(whole.document).findings.empty());
  EXPECT_TRUE(check_config(file(R"({"maxPods": 7})").document).findings.empty());
  const ConfigFile half = file(R"({"kind": "KubeletConfiguration", "maxPods": 7})");
  EXPECT_TRUE(half.has_header);
  EXPECT_EQ(check_config(half.document).findings.front().path, "apiVersion");
}

TEST(KubeletConfig, ReadsZeroDurationsOfKubeadmAsAbsent) {
  const auto options = options_of(effective(
      R"({"syncFrequency": "0s", "nodeStatusUpdateFrequency": "0s", "nodeStatusReportFrequency": "0s",
          "fileCheckFrequency": "0s", "evictionPressureTransitionPeriod": "0s", "shutdownGracePeriod": "0s"})"));
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->sync_frequency, minutes(1));
  EXPECT_EQ(options->status_update_frequency, seconds(10));
  EXPECT_EQ(options->status_report_frequency, minutes(5));
  EXPECT_EQ(options->file_check_frequency, seconds(20));
  EXPECT_EQ(options->eviction.pressure_transition_period, minutes(5));
}

TEST(KubeletConfig, SaysThePaceOfPulls) {
  const auto pace = [](std::string_view members) {
    const auto made = pull_pace_of(effective(members));
    return made ? fmt::format("{}/{}", made->per_second, made->burst) : made.error().message;
  };
  EXPECT_EQ(pace("{}"), "5/10");
  EXPECT_EQ(pace(R"({"registryPullQPS": 0})"), "0/10") << "not limited";
  EXPECT_EQ(pace(R"({"registryPullQPS": 2, "registryBurst": 0})"), "2/10") << "a burst of zero is the default";
  EXPECT_EQ(pace(R"({"registryPullQPS": -1})"), "registryPullQPS (--registry-qps) -1 must not be a negative number");
  EXPECT_EQ(pace(R"({"registryBurst": -1})"), "registryBurst (--registry-burst) -1 must not be a negative number");
}

TEST(KubeletConfig, SaysHowMuchIsReservedForClasses) {
  constexpr std::string_view kGate = R"("featureGates": {"QOSReserved": true})";
  const auto percent = [&](std::string_view map, bool gate = true) {
    const Json config =
        effective(fmt::format(R"({{"qosReserved": {}{}}})", map, gate ? fmt::format(", {}", kGate) : ""));
    const Outcome checked = check_resources(config);
    if (!checked) return checked.error().message;
    const auto made = reserved_memory_percent(config);
    return made ? fmt::format("{}", *made) : "nothing";
  };
  EXPECT_EQ(percent("{}"), "nothing");
  EXPECT_EQ(percent(R"({"memory": "50%"})"), "50");
  EXPECT_EQ(percent(R"({"memory": "0%"})"), "0");
  EXPECT_EQ(percent(R"({"memory": "100%%"})"), "100") << "as upstream trims";
  EXPECT_EQ(percent(R"({"memory": "50%"})", false), "nothing") << "an alpha feature";
  const std::string failed = "--qos-reserved value failed to parse: ";
  const std::string memory = failed + R"(failed to parse percentage "{}" for "memory" resource: )";
  EXPECT_EQ(percent(R"({"cpu": "50%"})"), failed + R"(cannot reserve "cpu" resource)");
  EXPECT_EQ(percent(R"({"memory": "1Gi"})", false),
            fmt::format(fmt::runtime(memory + "percentage expected, got '{}'"), "1Gi", "1Gi"));
  EXPECT_EQ(percent(R"({"memory": "x%"})"),
            fmt::format(fmt::runtime(memory + "invalid number in percentage '{}'"), "x%", "x%"));
  for (const char* text : {"-1%", "101%"}) {
    EXPECT_EQ(percent(fmt::format(R"({{"memory": "{}"}})", text)),
              fmt::format(fmt::runtime(memory + "percentage must be between 0 and 100"), text));
  }
}

TEST(KubeletConfig, SaysTheLongestWaitBetweenRestarts) {
  const auto longest = [](std::string_view members) {
    const auto made = restart_delay_max(effective(members));
    return made ? api::format_duration(*made) : made.error().message;
  };
  EXPECT_EQ(longest("{}"), "5m0s");
  EXPECT_EQ(longest(R"({"crashLoopBackOff": {}})"), "5m0s");
  const auto of_period = [&](std::string_view period) {
    return longest(fmt::format(R"({{"crashLoopBackOff": {{"maxContainerRestartPeriod": "{}"}}}})", period));
  };
  EXPECT_EQ(of_period("20s"), "20s");
  EXPECT_EQ(of_period("500ms"),
            "CrashLoopBackOff.MaxContainerRestartPeriod (got: 0.5 seconds) must be set between 1s and 300s");
  EXPECT_EQ(of_period("6m"),
            "CrashLoopBackOff.MaxContainerRestartPeriod (got: 360 seconds) must be set between 1s and 300s");
  EXPECT_EQ(
      longest(R"({"crashLoopBackOff": {"maxContainerRestartPeriod": "20s"},
                  "featureGates": {"KubeletCrashLoopBackOffMax": false}})"),
      "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be "
      "set");
}

TEST(KubeletConfig, SaysHowManyImagesArePulledAtATime) {
  const auto pulls = [](std::string_view members) {
    const auto made = parallel_pulls_of(effective(members));
    return made ? fmt::format("{}", *made) : made.error().message;
  };
  EXPECT_EQ(pulls("{}"), "1");
  EXPECT_EQ(pulls(R"({"serializeImagePulls": false})"), "1000");
  EXPECT_EQ(pulls(R"({"serializeImagePulls": false, "maxParallelImagePulls": 4})"), "4");
  EXPECT_EQ(pulls(R"({"maxParallelImagePulls": 3})"), "3") << "which makes serializeImagePulls false";
  EXPECT_EQ(pulls(R"({"maxParallelImagePulls": 0})"), "maxParallelImagePulls 0 must be a positive number");
  EXPECT_EQ(
      pulls(R"({"serializeImagePulls": true, "maxParallelImagePulls": 2})"),
      "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to "
      "false");
}

TEST(KubeletConfig, NamesAWrongType) {
  EXPECT_EQ(errors(R"({"maxPods": "many"})"),
            std::vector<std::string>{"k.yaml: maxPods: expected a whole number, got a string \"many\""});
  EXPECT_EQ(
      errors(R"({"evictionHard": {"memory.available": 5}})"),
      std::vector<std::string>{"k.yaml: evictionHard[memory.available]: expected a string, got a whole number 5"});
  EXPECT_EQ(
      errors(R"({"kubeReserved": {"cpu": "lots"}})"),
      std::vector<std::string>{"k.yaml: kubeReserved[cpu]: expected a quantity such as 10Mi, got a string \"lots\""});
  EXPECT_EQ(
      errors(R"({"enforceNodeAllocatable": "pods"})"),
      std::vector<std::string>{"k.yaml: enforceNodeAllocatable: expected a list of strings, got a string \"pods\""});
  EXPECT_EQ(errors(R"({"nodeStatusUpdateFrequency": "10"})"),
            std::vector<std::string>{
                "k.yaml: nodeStatusUpdateFrequency: expected a duration such as 1m30s, got a string \"10\""});
}

TEST(KubeletConfig, FindsEverythingThatIsWrongAtOnce) {
  EXPECT_EQ(errors(R"({"maxPods": [], "podsPerCore": true, "nope": 1})").size(), 3U);
}

TEST(KubeletConfig, HasTheFeaturesOfTheVersionThatItFollows) {
  const Result<AgentOptions> options = options_of(effective("{}"));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->pressure_stats, PressureStats::kReported);
  EXPECT_EQ(options->group_policies, SupplementalGroupPolicies::kOn);
  EXPECT_EQ(gate_of(effective("{}"))->fine_grained, FineGrained::kOn);
  EXPECT_FALSE(is_gate_on(effective("{}"), kMemoryQosGate));
  EXPECT_FALSE(is_gate_on(effective("{}"), kQosReservedGate));
  EXPECT_TRUE(errors(R"({"featureGates": {"KubeletPSI": true}})").empty());
  EXPECT_EQ(errors(R"({"featureGates": {"KubeletPSI": false}})"),
            std::vector<std::string>{"k.yaml: featureGates[KubeletPSI]: cannot set feature gate KubeletPSI to false, "
                                     "feature is locked to true"});
  EXPECT_EQ(errors(R"({"featureGates": {"NodeSwap": true}})"),
            std::vector<std::string>{
                "k.yaml: featureGates[NodeSwap]: has no effect here: this agent does not know the feature"});
  EXPECT_EQ(errors(R"({"featureGates": {"KubeletPSI": "on"}})"),
            std::vector<std::string>{"k.yaml: featureGates[KubeletPSI]: expected true or false, got a string \"on\""});
}

TEST(KubeletConfig, AllowsTheSysctlsItNames) {
  const Result<AgentOptions> options = options_of(effective(R"({"allowedUnsafeSysctls": ["kernel.msg*", "net.x"]})"));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->allowed_unsafe_sysctls, (std::vector<std::string>{"kernel.msg*", "net.x"}));
}

TEST(KubeletConfig, NamesAFieldThatHasNoEffect) {
  const CheckedConfig checked = check_config(document(R"({"volumePluginDir": "/etc"})"));
  ASSERT_EQ(checked.findings.size(), 1U);
  EXPECT_EQ(checked.findings.front().kind, ConfigFinding::Kind::kNotImplemented);
  EXPECT_EQ(checked.findings.front().path, "volumePluginDir");
}

TEST(KubeletConfig, TakesTheSocketOfAContainerRuntime) {
  const ConfigDocument given = document(R"({"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock"})");
  EXPECT_TRUE(check_config(given).findings.empty());
}

TEST(KubeletConfig, ReadsTheVersionAndTheSuitesOfTls) {
  const TlsSettings plain = tls_of(effective("{}")).value();
  EXPECT_EQ(plain.floor, TlsFloor::kTls12);
  EXPECT_TRUE(plain.cipher_suites.empty());
  EXPECT_TRUE(plain.warnings.empty());
  const TlsSettings chosen = tls_of(effective(R"({"tlsMinVersion": "VersionTLS12",
      "tlsCipherSuites": ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"]})"))
                                 .value();
  EXPECT_EQ(chosen.cipher_suites, (std::vector<std::string>{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
                                                            "TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"}));
  EXPECT_EQ(chosen.warnings,
            std::vector<std::string>{"tlsCipherSuites has TLS_RSA_WITH_RC4_128_SHA, which is insecure"});
  const TlsSettings newest =
      tls_of(effective(R"({"tlsMinVersion": "VersionTLS13", "tlsCipherSuites": ["TLS_AES_128_GCM_SHA256"]})")).value();
  EXPECT_EQ(newest.floor, TlsFloor::kTls13);
  EXPECT_EQ(newest.warnings.size(), 1U);
  EXPECT_EQ(tls_of(effective(R"({"tlsMinVersion": "VersionTLS10"})")).value().warnings.size(), 1U);
  EXPECT_EQ(tls_of(effective(R"({"tlsMinVersion": "1.3"})")).error().message, "unknown tls version \"1.3\"");
  EXPECT_EQ(tls_of(effective(R"({"tlsCipherSuites": ["AES128"]})")).error().message,
            "Cipher suite AES128 not supported or doesn't exist");
}

TEST(KubeletConfig, ReadsTheAddressOfStaticPods) {
  EXPECT_EQ(manifest_url_of(effective("{}")).value().server, "");
  const ManifestUrlSettings read =
      manifest_url_of(effective(R"({"staticPodURL": "https://pods.example.org:8443/a/b?node=n1#top",
          "staticPodURLHeader": {"X-Token": ["a", "b"]}, "httpCheckFrequency": "7s"})"))
          .value();
  EXPECT_EQ(read.server, "https://pods.example.org:8443");
  EXPECT_EQ(read.target, "/a/b?node=n1");
  EXPECT_EQ(read.headers, (api::HeaderList{{"x-token", "a"}, {"x-token", "b"}}));
  EXPECT_EQ(read.period, seconds(7));
  EXPECT_EQ(manifest_url_of(effective(R"({"staticPodURL": "http://h?x=1"})")).value().target, "/?x=1");
  EXPECT_EQ(manifest_url_of(effective(R"({"staticPodURL": "http://h", "httpCheckFrequency": "0s"})")).value().period,
            seconds(20));
  for (const char* wrong : {R"({"staticPodURL": "/etc/pods"})", R"({"staticPodURL": "file:///etc"})",
                            R"({"staticPodURL": "http://"})", R"({"staticPodURL": "http://h/ x"})",
                            R"({"staticPodURLHeader": {"a b": ["x"]}})", R"({"staticPodURLHeader": {"a": "x"}})",
                            R"({"staticPodURLHeader": {"a": ["x\r\ny: z"]}})", R"({"httpCheckFrequency": "-1s"})"})
    EXPECT_FALSE(manifest_url_of(effective(wrong))) << wrong;
}

TEST(KubeletConfig, ShowsNoHeaderOfTheAddressOfStaticPods) {
  const Json shown = without_secrets(effective(R"({"staticPodURLHeader": {"Authorization": ["Bearer secret"]}})"));
  EXPECT_EQ(api::to_text(*shown.find("staticPodURLHeader")), R"({"Authorization":["<masked>"]})");
}

TEST(KubeletConfig, ReadsThePaceOfEvents) {
  const auto pace = [](std::string_view members) {
    const AgentOptions options = options_of(effective(members)).value();
    return std::pair(options.events_per_second, options.events_burst);
  };
  EXPECT_EQ(pace("{}"), std::pair(50.0F, 100));
  EXPECT_EQ(pace(R"({"eventRecordQPS": 7, "eventBurst": 9})"), std::pair(7.0F, 9));
  EXPECT_EQ(pace(R"({"eventRecordQPS": 0, "eventBurst": 0})"), std::pair(5.0F, 100)) << "a client's default";
}

TEST(KubeletConfig, NamesEachGroupOfMembersThatANodeRefuses) {
  std::vector<std::string> keys;
  for (const Error& each : refusals_of(effective(R"({"maxPods": -1, "tlsMinVersion": "x", "registryBurst": -1})")))
    keys.push_back(each.at);
  EXPECT_EQ(keys, (std::vector<std::string>{"maxPods", "registryBurst", "tlsMinVersion"}));
  EXPECT_TRUE(refusals_of(effective("{}")).empty());
}

TEST(KubeletConfig, RefusesNumbersAsUpstreamDoes) {
  const auto error = [](std::string_view member) {
    const Result<AgentOptions> options = options_of(effective(member));
    return options ? std::string() : options.error().message;
  };
  EXPECT_EQ(error(R"({"nodeStatusMaxImages": -1})"), "");
  EXPECT_EQ(error(R"({"nodeStatusMaxImages": -2})"),
            "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater");
  EXPECT_EQ(error(R"({"maxPods": -1})"), "maxPods (--max-pods) -1 must not be a negative number");
  EXPECT_EQ(error(R"({"readOnlyPort": 70000})"),
            "readOnlyPort (--read-only-port) 70000 must be between 0 and 65535, inclusive");
  EXPECT_EQ(error(R"({"eventRecordQPS": -1})"), "eventRecordQPS (--event-qps) -1 must not be a negative number");
  EXPECT_EQ(error(R"({"eventBurst": -1})"), "eventBurst (--event-burst) -1 must not be a negative number");
  EXPECT_EQ(error(R"({"podsPerCore": -1})"), "podsPerCore (--pods-per-core) -1 must not be a negative number");
  EXPECT_EQ(error(R"({"port": 65536})"),
            "port (--port) 65536 must be between 1 and 65535, inclusive (0: any free one)");
  EXPECT_EQ(error(R"({"containerLogMaxFiles": 1})"), "containerLogMaxFiles must be greater than 1");
  EXPECT_EQ(error(R"({"containerLogMaxSize": "0"})"), "must be positive");
  EXPECT_EQ(error(R"({"containerLogMaxWorkers": 0})"), "containerLogMaxWorkers must be greater than or equal to 1");
}

TEST(KubeletConfig, SaysWhoIsLetIn) {
  const Result<GateSettings> usual = gate_of(effective("{}"));
  ASSERT_TRUE(usual) << usual.error().text();
  EXPECT_EQ(usual->strangers, Strangers::kRefused);
  EXPECT_EQ(usual->token_reviews, TokenReviews::kOn);
  EXPECT_EQ(usual->rights, Rights::kAsked);
  EXPECT_EQ(usual->token_life, minutes(2));
  EXPECT_EQ(usual->allowed_life, minutes(5));
  EXPECT_EQ(usual->denied_life, seconds(30));
  const std::string_view members =
      R"({"authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false},
                             "x509": {"clientCAFile": "/ca.pem"}},
          "authorization": {"mode": "AlwaysAllow", "webhook": {"cacheUnauthorizedTTL": "0s"}}})";
  EXPECT_TRUE(errors(members).empty());
  const Result<GateSettings> other = gate_of(effective(members));
  ASSERT_TRUE(other) << other.error().text();
  EXPECT_EQ(other->strangers, Strangers::kAnonymous);
  EXPECT_EQ(other->token_reviews, TokenReviews::kOff);
  EXPECT_EQ(other->client_authority_file, "/ca.pem");
  EXPECT_EQ(other->rights, Rights::kGranted);
  EXPECT_EQ(other->token_life, minutes(2)) << "what is not named keeps its default";
  EXPECT_EQ(other->denied_life, seconds(30)) << "zero is the default";
}

TEST(KubeletConfig, RefusesAGateThatCannotBe) {
  const auto error = [](std::string_view members) {
    const Result<GateSettings> gate = gate_of(effective(members));
    return gate ? std::string() : gate.error().text();
  };
  EXPECT_EQ(error(R"({"authorization": {"mode": "RBAC"}})"),
            "authorization[mode]: unknown authorization mode \"RBAC\"; expected Webhook or AlwaysAllow");
  EXPECT_EQ(error(R"({"authentication": {"webhook": {"cacheTTL": "2"}}})"),
            "authentication[webhook][cacheTTL]: expected a duration such as 2m, got \"2\"");
  EXPECT_EQ(error(R"({"authentication": {"anonymous": {"enabled": "no"}}})"),
            "authentication[anonymous][enabled]: expected true or false, got \"no\"");
  EXPECT_EQ(error(R"({"authentication": {"anonymous": true}})"),
            "authentication[anonymous]: expected a mapping, got true");
}

TEST(KubeletConfig, MayLeaveTheNodeToOthers) {
  EXPECT_EQ(options_of(effective("{}"))->registration, Registration::kSchedulable);
  EXPECT_EQ(options_of(effective(R"({"registerNode": false})"))->registration, Registration::kNone);
  EXPECT_TRUE(errors(R"({"registerNode": false})").empty());
}

TEST(KubeletConfig, ChecksTheTaintsItRegistersWith) {
  const auto error = [](std::string_view taint) {
    const Result<AgentOptions> options = options_of(effective(fmt::format(R"({{"registerWithTaints": [{}]}})", taint)));
    return options ? std::string() : options.error().message;
  };
  EXPECT_EQ(error(R"({"key": "a.b/c", "value": "v", "effect": "NoSchedule"})"), "");
  EXPECT_TRUE(error(R"({"key": "-", "effect": "NoSchedule"})").contains("key: name part must consist of"));
  EXPECT_TRUE(
      error(R"({"key": "a", "value": "b c", "effect": "NoSchedule"})").contains("value: a valid label must be"));
  EXPECT_TRUE(error(R"({"key": "a", "effect": "Never"})").contains("effect: expected NoSchedule, PreferNoSchedule or"));
  EXPECT_EQ(error(R"({"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"})"),
            "taint.TimeAdded is not nil");
}

TEST(NodeLabels, AreThoseANodeMayGiveItself) {
  EXPECT_TRUE(check_node_labels({{"topology.kubernetes.io/zone", "a"},
                                 {"node.kubernetes.io/anything", "x"},
                                 {"sub.kubelet.kubernetes.io/anything", "x"},
                                 {"example.com/mine", ""},
                                 {"plain", "v"}}));
  const Outcome reserved =
      check_node_labels({{"node-role.kubernetes.io/worker", ""}, {"k8s.io/x", ""}, {"notkubernetes.io/x", ""}});
  ASSERT_FALSE(reserved);
  EXPECT_TRUE(reserved.error().message.starts_with(
      "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [k8s.io/x "
      "node-role.kubernetes.io/worker]; --node-labels in the 'kubernetes.io' namespace must begin with an allowed "
      "prefix "
      "(kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set (beta.kubernetes.io/arch, "))
      << reserved.error().message;
  const Outcome wrong = check_node_labels({{"a", "b c"}});
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("invalid node labels: 'a' - a valid label must be"))
      << wrong.error().message;
}

/// Members of a configuration beside its enforceNodeAllocatable.
std::string enforcement_error(std::string_view list, std::string_view more = "{}") {
  Json value = effective(more);
  value["enforceNodeAllocatable"] = api::parse_json(list).value();
  const Result<AgentOptions> options = options_of(value);
  return options ? std::string() : options.error().message;
}

TEST(KubeletConfig, EnforcesReservationsWhereACgroupIsNamed) {
  const Result<AgentOptions> options = options_of(effective(
      R"({"enforceNodeAllocatable": ["system-reserved", "kube-reserved-compressible"], "systemReservedCgroup": "/s",
          "kubeReservedCgroup": "/k"})"));
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->eviction.thresholds.enforce_pods, eviction::EnforcePods::kNo);
  EXPECT_EQ(options->enforcement.system.limits, ReservedLimits::kAll);
  EXPECT_EQ(options->enforcement.system.cgroup, "/s");
  EXPECT_EQ(options->enforcement.kube.limits, ReservedLimits::kCompressible);
  EXPECT_EQ(options->enforcement.kube.cgroup, "/k");
  EXPECT_TRUE(errors(R"({"systemReservedCgroup": "/s", "kubeReservedCgroup": "/k"})").empty()) << "they have an effect";
  EXPECT_TRUE(options_of(effective(R"({"enforceNodeAllocatable": ["none"]})")));
  EXPECT_TRUE(options_of(effective(R"({"enforceNodeAllocatable": []})")));
}

TEST(KubeletConfig, RefusesEnforcementsAsUpstreamDoes) {
  EXPECT_EQ(enforcement_error(R"(["pods", "system-reserved"])"),
            "systemReservedCgroup (--system-reserved-cgroup) must be specified when \"system-reserved\" or "
            "\"system-reserved-compressible\" included in enforceNodeAllocatable (--enforce-node-allocatable)");
  EXPECT_EQ(enforcement_error(R"(["kube-reserved-compressible"])"),
            "kubeReservedCgroup (--kube-reserved-cgroup) must be specified when \"kube-reserved\" or "
            "\"kube-reserved-compressible\" included in enforceNodeAllocatable (--enforce-node-allocatable)");
  EXPECT_EQ(enforcement_error(R"(["pods", "pods"])"),
            "duplicated enforcements \"pods\" in enforceNodeAllocatable (--enforce-node-allocatable)");
  EXPECT_EQ(enforcement_error(R"(["kube-reserved", "kube-reserved-compressible"])", R"({"kubeReservedCgroup": "/k"})"),
            "both \"kube-reserved\" and \"kube-reserved-compressible\" cannot be specified together in "
            "enforceNodeAllocatable (--enforce-node-allocatable)");
  EXPECT_EQ(enforcement_error(R"(["pods", "none"])"),
            "enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when \"none\" "
            "is specified");
  EXPECT_EQ(enforcement_error(R"(["pod"])"),
            "option \"pod\" specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are "
            "\"pods\", \"system-reserved\", \"system-reserved-compressible\", \"kube-reserved\", "
            "\"kube-reserved-compressible\" or \"none\"");
  EXPECT_EQ(enforcement_error(R"(["pods"])", R"({"cgroupsPerQOS": false})"),
            "cgroupsPerQOS (--cgroups-per-qos) must be set to true when \"pods\" contained in enforceNodeAllocatable "
            "(--enforce-node-allocatable)");
  EXPECT_EQ(enforcement_error(R"(["pods"])", R"({"reservedSystemCPUs": "0", "kubeReservedCgroup": "/k"})"),
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or "
            "kubeReservedCgroup (--kube-reserved-cgroup)");
}

TEST(KubeletConfig, TakesAPlainScalarAsItWasWrittenWhereAStringIsWanted) {
  ConfigDocument given = document(R"({"evictionHard": {"memory.available": 1000.0}})");
  given.origins = [](std::string_view path) {
    return path == "evictionHard[memory.available]" ? std::optional(ScalarOrigin{.line = 4, .text = "1e3"})
                                                    : std::nullopt;
  };
  const CheckedConfig checked = check_config(given);
  EXPECT_TRUE(checked.findings.empty());
  EXPECT_EQ(checked.value.string_at({"evictionHard", "memory.available"}), "1e3");
}

TEST(KubeletConfig, NamingAThresholdDropsTheDefaults) {
  EXPECT_EQ(threshold_config_of(effective("{}")).hard, eviction::default_hard_thresholds());
  EXPECT_EQ(threshold_config_of(effective(R"({"evictionHard": {"memory.available": "1Gi"}})")).hard,
            (eviction::SignalMap{{"memory.available", "1Gi"}}));
  const auto merged = threshold_config_of(
      effective(R"({"evictionHard": {"memory.available": "1Gi"}, "mergeDefaultEvictionSettings": true})"));
  EXPECT_EQ(merged.hard.size(), eviction::default_hard_thresholds().size());
  EXPECT_EQ(merged.hard.at("memory.available"), "1Gi");
  EXPECT_TRUE(threshold_config_of(effective(R"({"evictionHard": {}})")).hard.empty());
}

TEST(KubeletConfig, TheReportFrequencyFollowsTheUpdateFrequency) {
  EXPECT_EQ(effective("{}").string_at({"nodeStatusReportFrequency"}), "5m0s");
  EXPECT_EQ(effective(R"({"nodeStatusUpdateFrequency": "20s"})").string_at({"nodeStatusReportFrequency"}), "20s");
  EXPECT_EQ(effective(R"({"nodeStatusUpdateFrequency": "20s", "nodeStatusReportFrequency": "1m"})")
                .string_at({"nodeStatusReportFrequency"}),
            "1m0s");
}

TEST(KubeletConfig, DropInsMergeByKeyAndFlagsReplace) {
  const Json base = api::parse_json(R"({"evictionHard": {"a": "1", "b": "2"}, "clusterDNS": ["x", "y"]})").value();
  const Json over = api::parse_json(R"({"evictionHard": {"b": "3"}, "clusterDNS": ["z"]})").value();
  EXPECT_EQ(api::to_text(merge_config(base, over)), R"({"clusterDNS":["z"],"evictionHard":{"a":"1","b":"3"}})");
  EXPECT_EQ(api::to_text(apply_flags(base, over)), R"({"clusterDNS":["z"],"evictionHard":{"b":"3"}})");
}

TEST(KubeletConfig, BecomesTheOptionsOfAnAgent) {
  const auto options = options_of(effective(
      R"({"maxPods": 7, "kubeReserved": {"memory": "1Gi"}, "nodeLeaseDurationSeconds": 20, "evictionMaxPodGracePeriod": 9,
          "registerWithTaints": [{"key": "a", "effect": "NoSchedule"}]})"));
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->pods_max, 7);
  EXPECT_EQ(options->kube_reserved.at("memory").bytes(), gibibytes(1));
  EXPECT_EQ(options->lease_duration, seconds(20));
  EXPECT_EQ(options->eviction.max_pod_grace_period_seconds, 9);
  EXPECT_EQ(options->taints.size(), 1U);
  EXPECT_EQ(options->pod_pids_max, std::nullopt);
  EXPECT_EQ(options->container_log_max, mebibytes(10));
  EXPECT_EQ(options->container_log_files_max, 5);
  EXPECT_EQ(options->container_log_workers, 1);
  const auto bounded = options_of(
      effective(R"({"podPidsLimit": 300, "containerLogMaxSize": "1Mi", "containerLogMaxFiles": 2, "port": 4194})"));
  ASSERT_TRUE(bounded.has_value()) << bounded.error().text();
  EXPECT_EQ(bounded->pod_pids_max, 300);
  EXPECT_EQ(bounded->container_log_max, mebibytes(1));
  EXPECT_EQ(bounded->container_log_files_max, 2);
  EXPECT_EQ(options_of(effective(R"({"containerLogMaxWorkers": 3})"))->container_log_workers, 3);
  EXPECT_EQ(options_of(effective(R"({"containerLogMaxWorkers": 3000})"))->container_log_workers, 8) << "threads";
  EXPECT_FALSE(options_of(effective(R"({"evictionHard": {"memory.availabel": "1Gi"}})")).has_value());
  EXPECT_FALSE(options_of(effective(R"({"nodeLeaseDurationSeconds": 0})")).has_value());
}

TEST(KubeletConfig, AMinimumAgeOfImagesIsNotNegative) {
  const auto refused = image_gc_of(effective(R"({"imageMinimumGCAge": "-1s"})"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "imageMinimumGCAge -1s must not be negative");
  EXPECT_TRUE(image_gc_of(effective(R"({"imageMinimumGCAge": "0s"})")).has_value()) << "the default";
}

// Lint.

std::vector<std::string> lint(std::string_view members, Bytes memory = gibibytes(8)) {
  std::vector<std::string> found;
  const ConfigDocument given = document(members);
  for (const LintFinding& each : lint_config(given, {.memory = memory, .disk = gibibytes(100)}).findings) {
    found.push_back(std::string(to_string(each.severity)) + " " + each.key);
  }
  return found;
}

constexpr std::string_view kMerge = R"("mergeDefaultEvictionSettings": true)";

std::string with_merge(std::string_view members) {
  return "{" + std::string(kMerge) + ", " + std::string(members) + "}";
}

using Found = std::vector<std::string>;

TEST(Lint, HasNothingToSayOfAGoodConfiguration) {
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "300Mi"})")), Found{});
}

TEST(Lint, SeesTheDroppedDefaults) {
  EXPECT_EQ(lint(R"({"evictionHard": {"memory.available": "300Mi"}})"), Found{"dangerous evictionHard"});
}

TEST(Lint, SeesASoftThresholdThatNeverActs) {
  EXPECT_EQ(
      lint(with_merge(R"("evictionHard": {"memory.available": "10%"}, "evictionSoft": {"memory.available": "500Mi"},
      "evictionSoftGracePeriod": {"memory.available": "1m"}, "evictionMaxPodGracePeriod": 30)")),
      Found{"dangerous evictionSoft[memory.available]"});
}

/// A hard threshold is kept from pods, a soft one is not: 200Mi of it may be requested here.
TEST(Lint, SeesASoftThresholdThatRequestsCanReach) {
  const auto reserving = [](std::string_view memory) {
    return with_merge(fmt::format(
        R"("evictionHard": {{"memory.available": "300Mi"}}, "evictionSoft": {{"memory.available": "500Mi"}},
        "evictionSoftGracePeriod": {{"memory.available": "1m"}}, "evictionMaxPodGracePeriod": 30,
        "systemReserved": {{"memory": "{}"}})",
        memory));
  };
  EXPECT_EQ(lint(reserving("0")), Found{"warning evictionSoft[memory.available]"});
  EXPECT_EQ(lint(reserving("199Mi")), Found{"warning evictionSoft[memory.available]"});
  EXPECT_EQ(lint(reserving("200Mi")), Found{});
  const LintReport report = lint_config(document(reserving("50Mi")), {.memory = gibibytes(8), .disk = std::nullopt});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings.front().what,
            "is 500Mi, of which only 350Mi is kept from pods (system, kube and hard threshold)");
  EXPECT_THAT(report.findings.front().why, ::testing::EndsWith("reserve 150Mi more (systemReserved)"));
}

TEST(Lint, SeesWhatTheParserRefuses) {
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "120%"})")),
            Found{"invalid evictionHard[memory.available]"});
  EXPECT_EQ(lint(R"({"evictionSoft": {"memory.available": "1Gi"}, "evictionMaxPodGracePeriod": 30})"),
            Found{"invalid evictionSoft[memory.available]"});
}

TEST(Lint, SeesTheBlindZone) {
  EXPECT_EQ(oom_blind_zone(mebibytes(512)), mebibytes(55));
  EXPECT_EQ(oom_blind_zone(mebibytes(1536)), mebibytes(95));
  EXPECT_EQ(oom_blind_zone(gibibytes(64)), mebibytes(95));
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "80Mi"})")),
            Found{"dangerous evictionHard[memory.available]"});
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "100Mi"})")),
            Found{"warning evictionHard[memory.available]"});
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "80Mi"})"), mebibytes(512)), Found{});
}

TEST(Lint, SeesThresholdsThatAreNeverLeft) {
  EXPECT_EQ(
      lint(with_merge(R"("evictionHard": {"memory.available": "9Gi"}, "enforceNodeAllocatable": ["pods"])")).back(),
      "dangerous evictionHard[memory.available]");
  EXPECT_EQ(
      lint(with_merge(
          R"("evictionHard": {"memory.available": "300Mi"}, "evictionMinimumReclaim": {"memory.available": "8Gi"})")),
      Found{"dangerous evictionMinimumReclaim[memory.available]"});
}

TEST(Lint, SeesWhatBelongsToNothing) {
  EXPECT_EQ(
      lint(
          with_merge(R"("evictionHard": {"memory.available": "300Mi"}, "evictionMinimumReclaim": {"pid.available": "8"},
      "evictionSoftGracePeriod": {"memory.available": "1m"})")),
      (Found{"warning evictionMinimumReclaim[pid.available]", "warning evictionSoftGracePeriod[memory.available]"}));
}

TEST(Lint, SeesPeriodsAndReservationsThatCannotBe) {
  EXPECT_EQ(
      lint(with_merge(R"("evictionHard": {"memory.available": "300Mi"}, "evictionPressureTransitionPeriod": "-1s")")),
      Found{"dangerous evictionPressureTransitionPeriod"});
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "300Mi"}, "kubeReserved": {"memory": "8Gi"})")),
            Found{"invalid kubeReserved"});
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "300Mi"}, "kubeReserved": {"memory": "5Gi"})")),
            Found{"warning kubeReserved"});
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "300Mi"}, "nodeStatusUpdateFrequency": "20s")")),
            Found{"warning nodeStatusUpdateFrequency"});
}

TEST(Lint, SeesWhatTheAgentRefuses) {
  const auto refused = [](std::string_view members) {
    Found found = lint(members);
    std::erase_if(found, [](const std::string& each) { return !each.starts_with("invalid "); });
    return found;
  };
  EXPECT_EQ(refused("{}"), Found());
  EXPECT_EQ(refused(R"({"enforceNodeAllocatable": ["kube-reserved"]})"), (Found{"invalid enforceNodeAllocatable"}));
  EXPECT_EQ(refused(R"({"registerWithTaints": [{"key": "a", "effect": "No"}]})"),
            (Found{"invalid registerWithTaints"}));
  EXPECT_EQ(refused(R"({"authorization": {"mode": "RBAC"}})"), (Found{"invalid authorization[mode]"}));
  EXPECT_EQ(refused(R"({"podsPerCore": -1})"), (Found{"invalid podsPerCore"}));
  EXPECT_EQ(refused(R"({"nodeLeaseDurationSeconds": 0})"), (Found{"invalid nodeLeaseDurationSeconds"})) << "once";
}

TEST(Lint, SaysWhatWasExpectedOfAnAmount) {
  const auto said = [](std::string_view amount) {
    const ConfigDocument given =
        document(with_merge(fmt::format(R"("evictionHard": {{"memory.available": "{}"}})", amount)));
    const LintReport report = lint_config(given, {.memory = gibibytes(8), .disk = std::nullopt});
    return report.findings.empty() ? std::string() : report.findings.front().what;
  };
  const std::string expected = "is not an amount: expected bytes with a unit, such as 100Mi, or a share, such as 10%";
  EXPECT_EQ(said("100MB"), "\"100MB\" " + expected + "; did you mean 100M?");
  EXPECT_EQ(said("100MiB"), "\"100MiB\" " + expected + "; did you mean 100Mi?");
  EXPECT_EQ(said("much"), "\"much\" " + expected);
  EXPECT_EQ(said("-5%"), "eviction percentage threshold memory.available must be >= 0%: -5%") << "upstream's words";
}

TEST(Lint, SeesSignalsThatAreTurnedOff) {
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "0%"})")),
            Found{"dangerous evictionHard[memory.available]"});
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "300Mi", "nodefs.available": "100%"})")),
            Found{"dangerous evictionHard[nodefs.available]"});
}

TEST(Lint, SaysTheNegativeGraceThatIsWritten) {
  const ConfigDocument given = document(with_merge(
      R"("evictionHard": {"memory.available": "300Mi"}, "evictionSoft": {"memory.available": "500Mi"},
      "evictionSoftGracePeriod": {"memory.available": "1m"}, "evictionMaxPodGracePeriod": -1,
      "systemReserved": {"memory": "200Mi"})"));
  const LintReport report = lint_config(given, {.memory = gibibytes(8), .disk = std::nullopt});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings.front().what, "is -1 while there are soft thresholds");
  EXPECT_EQ(lint(with_merge(R"("evictionHard": {"memory.available": "300Mi"}, "evictionMaxPodGracePeriod": -1)")),
            Found{"warning evictionMaxPodGracePeriod"});
}

TEST(Lint, SaysNothingOfWhatAKubeletImplements) {
  const ConfigDocument given =
      document(with_merge(R"("evictionHard": {"memory.available": "300Mi"}, "volumeStatsAggPeriod": "1h")"));
  const LintMachine machine{.memory = gibibytes(8), .disk = std::nullopt};
  EXPECT_EQ(lint_config(given, machine, LintTarget::kAgent).findings.size(), 1U);
  EXPECT_EQ(lint_config(given, machine, LintTarget::kKubelet).findings.size(), 0U);
  const ConfigDocument wrong = document(with_merge(R"("evictionHard": {"memory.available": "120%"})"));
  EXPECT_EQ(lint_config(wrong, machine, LintTarget::kKubelet).findings.front().why, "the kubelet refuses to start");
}

TEST(Lint, SaysWhatAKubeletRefuses) {
  const LintMachine machine{.memory = gibibytes(8), .disk = std::nullopt};
  const ConfigDocument given = document(
      with_merge(R"("evictionHard": {"memory.available": "300Mi"}, "eventBurst": -1, "topologyManagerScope": "node")"));
  std::vector<std::string> found;
  for (const LintFinding& each : lint_config(given, machine, LintTarget::kKubelet).findings)
    found.push_back(fmt::format("{}: {}", each.key, each.what));
  EXPECT_EQ(found, (std::vector<std::string>{
                       "eventBurst: invalid configuration: eventBurst (--event-burst) -1 must not be a negative number",
                       "topologyManagerScope: invalid configuration: topologyManagerScope (--topology-manager-scope) "
                       "\"node\" must be one of: \"container\", or \"pod\""}));
}

TEST(Lint, SaysWhereReliefHasNoEffect) {
  const LintMachine machine{.memory = gibibytes(8), .disk = std::nullopt};
  const ConfigDocument given =
      document(with_merge(R"("evictionHard": {"memory.available": "300Mi"}, "memoryRelief": true)"));
  EXPECT_EQ(lint_config(given, machine, LintTarget::kAgent).findings.size(), 0U);
  const LintReport for_kubelet = lint_config(given, machine, LintTarget::kKubelet);
  ASSERT_EQ(for_kubelet.findings.size(), 1U);
  EXPECT_EQ(for_kubelet.findings.front().key, "memoryRelief");
  const ConfigDocument disks = document(R"({"evictionHard": {"nodefs.available": "10%"}, "memoryRelief": true})");
  const LintReport without = lint_config(disks, machine, LintTarget::kAgent);
  EXPECT_TRUE(
      std::ranges::any_of(without.findings, [](const LintFinding& each) { return each.key == "memoryRelief"; }));
}

TEST(Lint, NamesTheLine) {
  ConfigDocument given = document(R"({"evictionHard": {"memory.available": "300Mi"}})");
  given.origins = [](std::string_view path) {
    return path == "evictionHard" ? std::optional(ScalarOrigin{.line = 7, .text = {}}) : std::nullopt;
  };
  const LintReport report = lint_config(given, {.memory = gibibytes(8), .disk = std::nullopt});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings.front().line, 7);
  ASSERT_EQ(report.thresholds.size(), 1U);
  EXPECT_EQ(report.thresholds.front().amount, mebibytes(300).count());
}

}  // namespace
}  // namespace spillway::agent
