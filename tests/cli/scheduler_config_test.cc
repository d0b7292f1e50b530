// Goal: a KubeSchedulerConfiguration changes the default profile as it should, and every mistake in one is reported
// with its place.
#include "cli/config/scheduler_config.h"

#include "cli/config/scheduler_document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::cli {
namespace {

using scheduling::Filter;
using scheduling::Profile;
using scheduling::ScoringStrategy;

Result<SchedulerConfig> read(const std::string& members) {
  const std::string text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + members;
  const auto document = yaml::parse("s.yaml", text);
  if (!document) return document.error();
  return read_scheduler_config("s.yaml", *document);
}

std::string error_of(const std::string& members) {
  const auto found = read(members);
  return found ? "" : found.error().text();
}

/// The only profile with these members, each line indented by four.
Profile profile_of(const std::string& members) {
  const auto found = read("profiles:\n  - schedulerName: mine\n" + members);
  if (!found) {
    ADD_FAILURE() << found.error().text();
    return {};
  }
  return found->profiles.front();
}

TEST(SchedulerConfig, ThatSaysNothingIsTheDefault) {
  const auto config = read("");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->profiles, std::vector{Profile()});
  EXPECT_EQ(config->claims_timeout, seconds(600));
  EXPECT_EQ(config->leader_election.resource_name, "kube-scheduler");
  EXPECT_TRUE(config->leader_election.enabled);
  EXPECT_TRUE(config->warnings.empty());
}

TEST(SchedulerConfig, OfAStockSchedulerIsTaken) {
  const auto config = read(R"(parallelism: 16
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
enableProfiling: true
enableContentionProfiling: true
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf, qps: 50, burst: 100, contentType: "", acceptContentTypes: ""}
leaderElection: {leaderElect: false, leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 4s, resourceLock: leases,
                 resourceName: other, resourceNamespace: ops}
extenders: []
profiles: [{schedulerName: default-scheduler}, {schedulerName: batch}]
)");
  ASSERT_TRUE(config) << config.error().text();
  ASSERT_EQ(config->profiles.size(), 2U);
  EXPECT_EQ(config->profiles[0], Profile());
  EXPECT_EQ(config->profiles[1].scheduler, "batch");
  EXPECT_EQ(config->backoff.initial, seconds(2));
  EXPECT_EQ(config->backoff.max, seconds(20));
  EXPECT_EQ(config->kubeconfig, "/etc/kubernetes/scheduler.conf");
  EXPECT_FALSE(config->leader_election.enabled);
  EXPECT_EQ(config->leader_election.lease_duration, seconds(30));
  EXPECT_EQ(config->leader_election.renew_deadline, seconds(20));
  EXPECT_EQ(config->leader_election.retry_period, seconds(4));
  EXPECT_EQ(config->leader_election.resource_name, "other");
  EXPECT_EQ(config->leader_election.resource_namespace, "ops");
  ASSERT_FALSE(config->warnings.empty());
  EXPECT_EQ(config->warnings.front(), "s.yaml:3: parallelism: has no effect here");
}

TEST(SchedulerConfig, SwitchesPlugins) {
  const Profile off = profile_of(R"(    plugins:
      filter: {disabled: [{name: NodePorts}, {name: InterPodAffinity}]}
      score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 5}, {name: ImageLocality}]}
      postFilter: {disabled: [{name: DefaultPreemption}]}
)");
  EXPECT_TRUE(off.left_out.contains(Filter::kNodePorts));
  EXPECT_TRUE(off.left_out.contains(Filter::kInterPodAffinity));
  EXPECT_FALSE(off.left_out.contains(Filter::kNodeResourcesFit));
  EXPECT_EQ(off.weights, (scheduling::ScoreWeights{5, 0, 1, 0, 0, 0, 0}));
  EXPECT_FALSE(off.preempts);

  const Profile everywhere = profile_of(R"(    plugins:
      multiPoint:
        disabled: [{name: TaintToleration}, {name: NodeAffinity}, {name: DefaultPreemption}]
        enabled: [{name: NodeAffinity, weight: 7}, {name: PodTopologySpread}]
      score: {disabled: [{name: NodeAffinity}]}
)");
  EXPECT_TRUE(everywhere.left_out.contains(Filter::kTaintToleration));
  EXPECT_FALSE(everywhere.left_out.contains(Filter::kNodeAffinity));
  EXPECT_EQ(everywhere.weights, (scheduling::ScoreWeights{1, 1, 1, 0, 0, 2, 1})) << "a weight not given is one";
  EXPECT_FALSE(everywhere.preempts);
}

TEST(SchedulerConfig, GivesPluginsTheirArguments) {
  const Profile profile = profile_of(R"(    pluginConfig:
      - name: NodeResourcesFit
        args:
          apiVersion: kubescheduler.config.k8s.io/v1
          kind: NodeResourcesFitArgs
          ignoredResources: [example.com/one]
          ignoredResourceGroups: [example.org]
          scoringStrategy:
            type: RequestedToCapacityRatio
            resources: [{name: cpu, weight: 3}, {name: nvidia.com/gpu}]
            requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
      - {name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu, weight: 1}]}}
      - {name: InterPodAffinity, args: {hardPodAffinityWeight: 9, ignorePreferredTermsOfExistingPods: true}}
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints:
            - {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, minDomains: 3, nodeTaintsPolicy: Honor}
      - name: NodeAffinity
        args:
          addedAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]
            preferredDuringSchedulingIgnoredDuringExecution:
              - {weight: 4, preference: {matchExpressions: [{key: disk, operator: Exists}]}}
      - {name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 5}}
)");
  EXPECT_TRUE(profile.ignored.contains("example.com/one"));
  EXPECT_FALSE(profile.ignored.contains("example.com/two"));
  EXPECT_TRUE(profile.ignored.contains("example.org/any"));
  EXPECT_FALSE(profile.ignored.contains("example.org"));
  const Profile native =
      profile_of("    pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [cpu, pods]}}]\n");
  EXPECT_FALSE(native.ignored.contains("cpu")) << "extended resources alone";
  EXPECT_FALSE(native.ignored.contains("pods"));
  const Profile empty =
      profile_of("    pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {resources: []}}}]\n");
  EXPECT_EQ(empty.fit, Profile().fit) << "as if it were not there";
  EXPECT_EQ(profile.fit.type, ScoringStrategy::Type::kRequestedToCapacityRatio);
  EXPECT_EQ(profile.fit.resources, (std::vector<ScoringStrategy::Resource>{{"cpu", 3}, {"nvidia.com/gpu", 1}}));
  EXPECT_EQ(profile.fit.shape, (std::vector<ScoringStrategy::Point>{{0, 0}, {100, 10}}));
  EXPECT_EQ(profile.balanced, std::vector<std::string>{"cpu"});
  EXPECT_EQ(profile.hard_pod_affinity_weight, 9);
  EXPECT_TRUE(profile.ignore_preferred_terms_of_existing_pods);
  ASSERT_TRUE(profile.default_constraints && profile.default_constraints->size() == 1);
  const scheduling::SpreadConstraint& rack = profile.default_constraints->front();
  EXPECT_EQ(rack.topology_key, "rack");
  EXPECT_EQ(rack.max_skew, 2);
  EXPECT_EQ(rack.min_domains, 3);
  EXPECT_TRUE(rack.required && rack.honors_affinity && rack.honors_taints);
  ASSERT_TRUE(profile.added_affinity.required);
  EXPECT_EQ(profile.added_affinity.required->terms.size(), 1U);
  EXPECT_EQ(profile.added_affinity.preferred.size(), 1U);
  EXPECT_EQ(profile.preemption.percent, 0);
  EXPECT_EQ(profile.preemption.absolute, 5);

  const auto timeout = read("profiles: [{pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 30}}]}]\n");
  ASSERT_TRUE(timeout);
  EXPECT_EQ(timeout->claims_timeout, seconds(30));
}

TEST(SchedulerConfig, NamesWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"paralelism: 4\n", "s.yaml:3: paralelism: unknown (did you mean parallelism?)"},
      {"profiles: []\n", "s.yaml:3: profiles: must not be empty"},
      {"profiles:\n- {schedulerName: a}\n- {schedulerName: a}\n",
       "s.yaml:5: profiles[1]: there is a profile of \"a\" already"},
      {"profiles:\n- plugins:\n    score: {enabled: [{name: NodeResourceFit}]}\n",
       "s.yaml:5: profiles[0][plugins][score][enabled][0][name]: there is no plug-in \"NodeResourceFit\" (did you mean "
       "NodeResourcesFit?)"},
      {"profiles:\n- plugins:\n    score: {enabled: [{name: NodePorts}]}\n",
       "s.yaml:5: profiles[0][plugins][score][enabled][0][name]: NodePorts has nothing to say there"},
      {"profiles:\n- plugins:\n    multiPoint: {disabled: [{name: '*'}]}\n",
       "s.yaml:4: profiles[0][plugins]: PrioritySort is off and nothing is there in its place"},
      {"profiles:\n- pluginConfig:\n  - {name: NodeName, args: {}}\n",
       "s.yaml:5: profiles[0][pluginConfig][0][args]: NodeName takes no arguments"},
      {"profiles:\n- pluginConfig:\n  - {name: NodeResourcesFit, args: {scoringStrategy: {type: Most}}}\n",
       "s.yaml:5: profiles[0][pluginConfig][0][args][scoringStrategy][type]: expected LeastAllocated, MostAllocated or "
       "RequestedToCapacityRatio"},
      {"podInitialBackoffSeconds: 20\n", "s.yaml:1: podMaxBackoffSeconds must not be below podInitialBackoffSeconds"},
      {"leaderElection: {leaseDuration: soon}\n",
       "s.yaml:3: leaderElection[leaseDuration]: expected a duration such as 15s, got \"soon\""},
  };
  for (const auto& [members, expected] : cases) EXPECT_EQ(error_of(members), expected);
  EXPECT_NE(
      error_of("profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 1}]}}]}]\n"),
      "");
  const auto other = read_scheduler_config("s.yaml", *yaml::parse("s.yaml", "apiVersion: v1\nkind: Pod\n"));
  EXPECT_FALSE(other);
}

TEST(SchedulerConfig, ReadsExtenders) {
  const auto config = read(R"(percentageOfNodesToScore: 30
profiles: [{schedulerName: default-scheduler}, {schedulerName: batch, percentageOfNodesToScore: 70}]
extenders:
- urlPrefix: https://gpu.example:8443/v1/
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  bindVerb: bind
  weight: 5
  enableHTTPS: true
  tlsConfig: {serverName: gpu, caFile: /etc/ca.pem, certData: Y2VydA==, keyData: a2V5}
  httpTimeout: 100ms
  nodeCacheCapable: true
  ignorable: true
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/nic}]
- {urlPrefix: 'http://127.0.0.1:8080', filterVerb: f}
)");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_TRUE(config->warnings.empty());
  ASSERT_EQ(config->extenders.rules.size(), 2U);
  const scheduling::Extender want{.url = "https://gpu.example:8443/v1/",
                                  .filter_verb = "filter",
                                  .prioritize_verb = "prioritize",
                                  .preempt_verb = "preempt",
                                  .bind_verb = "bind",
                                  .weight = 5,
                                  .timeout = milliseconds(100),
                                  .knows_nodes = true,
                                  .resources = {"example.com/gpu", "example.com/nic"},
                                  .ignorable = true};
  EXPECT_EQ(config->extenders.rules[0], want);
  EXPECT_EQ(config->extenders.rules[1].timeout, seconds(5));
  const ExtenderTls& tls = config->extenders.tls[0];
  EXPECT_TRUE(tls.enabled && !tls.insecure);
  EXPECT_EQ(tls.where, "s.yaml:6: extenders[0]");
  EXPECT_EQ(tls.server_name + tls.ca_file + tls.certificate_pem + tls.key_pem, "gpu/etc/ca.pemcertkey");
  for (const Profile& profile : config->profiles) {
    EXPECT_EQ(profile.ignored.names, std::vector<std::string>{"example.com/gpu"});
    EXPECT_EQ(profile.share.global_percent, 30);
  }
  EXPECT_FALSE(config->profiles[0].share.profile_percent);
  EXPECT_EQ(config->profiles[1].share.profile_percent, 70);
}

TEST(SchedulerConfig, NamesWhatIsWrongWithExtenders) {
  const auto one = [](std::string_view members) {
    return error_of(fmt::format("extenders:\n- urlPrefix: http://x\n  {}\n", members));
  };
  EXPECT_EQ(one("prioritizeVerb: p"), "s.yaml:4: extenders[0]: must have a positive weight applied to it");
  EXPECT_EQ(one("prioritizeVerb: p\n  weight: -1"),
            "s.yaml:6: extenders[0][weight]: must have a positive weight applied to it");
  EXPECT_EQ(one("managedResources: [{name: cpu}]"),
            "s.yaml:5: extenders[0][managedResources][0][name]: is an invalid extended resource name");
  EXPECT_EQ(one("managedResources: [{name: a.b/c}, {name: a.b/c}]"),
            "s.yaml:5: extenders[0][managedResources][1][name]: duplicate extender managed resource name");
  EXPECT_EQ(one("filterverb: f"), "s.yaml:5: extenders[0][filterverb]: unknown (did you mean filterVerb?)");
  EXPECT_EQ(one("httpTimeout: soon"),
            "s.yaml:5: extenders[0][httpTimeout]: expected a duration up to 5m, such as 5s, got \"soon\"");
  EXPECT_EQ(one("tlsConfig: {insecure: true, caFile: /x}"),
            "s.yaml:5: extenders[0][tlsConfig]: specifying a root certificates file with the insecure flag is not "
            "allowed");
  EXPECT_EQ(one("tlsConfig: {certFile: /x}"),
            "s.yaml:5: extenders[0][tlsConfig]: a certificate and its key are given together");
  EXPECT_EQ(one("tlsConfig: {caData: '*'}"), "s.yaml:5: extenders[0][tlsConfig][caData]: expected base64");
  EXPECT_EQ(error_of("extenders: [{urlPrefix: ftp://x}]\n"),
            "s.yaml:3: extenders[0][urlPrefix]: expected urlPrefix: http://HOST:PORT/PATH or https, got \"ftp://x\"");
  EXPECT_EQ(error_of("extenders: [{urlPrefix: 'http://x', bindVerb: b}, {urlPrefix: 'http://y', bindVerb: b}]\n"),
            "s.yaml:3: extenders: found 2 extenders implementing bind: only one extender can implement bind");
}

TEST(SchedulerConfig, SaysThatAShareOfNodesMattersToExtendersAlone) {
  const auto config = read("percentageOfNodesToScore: 30\n");
  ASSERT_TRUE(config);
  ASSERT_EQ(config->warnings.size(), 1U);
  EXPECT_EQ(config->warnings[0],
            "s.yaml:3: percentageOfNodesToScore: without extenders all nodes are checked: has no effect here");
}

/// Parses the text of scheduler_document() again.
Result<SchedulerConfig> again(const SchedulerConfig& config, InlineKeys keys = InlineKeys::kWritten) {
  const auto document = yaml::parse("again.yaml", yaml::to_text(scheduler_document(config, keys)));
  if (!document) return document.error();
  return read_scheduler_config("again.yaml", *document);
}

TEST(SchedulerDocument, ReadAgainIsTheSame) {
  for (const std::string& members : {std::string(), std::string(R"(podInitialBackoffSeconds: 3
podMaxBackoffSeconds: 30
percentageOfNodesToScore: 40
clientConnection: {kubeconfig: /etc/scheduler.conf}
leaderElection: {leaderElect: false, leaseDuration: 30s, resourceName: other, resourceNamespace: ops}
profiles:
- schedulerName: one
  percentageOfNodesToScore: 70
  plugins:
    multiPoint: {disabled: [{name: TaintToleration}, {name: DefaultPreemption}], enabled: [{name: NodeAffinity, weight: 7}]}
    filter: {disabled: [{name: NodePorts}, {name: InterPodAffinity}]}
    score: {disabled: [{name: ImageLocality}, {name: NodeResourcesFit}]}
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: a, operator: In, values: [x, y]}, {key: b, operator: Gt, values: ["3"]}, {key: c, operator: DoesNotExist}]
            matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]
        preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 5, preference: {matchExpressions: [{key: d, operator: Exists}]}}
  - name: NodeResourcesFit
    args:
      ignoredResourceGroups: [example.com]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
  - {name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu, weight: 1}]}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 9, ignorePreferredTermsOfExistingPods: true}}
  - {name: DefaultPreemption, args: {minCandidateNodesPercentage: 20, minCandidateNodesAbsolute: 7}}
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 30}}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3, nodeTaintsPolicy: Honor}
      - {maxSkew: 1, topologyKey: host, whenUnsatisfiable: ScheduleAnyway, nodeAffinityPolicy: Ignore}
- schedulerName: two
extenders:
- {urlPrefix: "https://x:1/v", filterVerb: f, prioritizeVerb: p, preemptVerb: e, bindVerb: b, weight: 4, enableHTTPS: true,
   httpTimeout: 300ms, nodeCacheCapable: true, ignorable: true, managedResources: [{name: a.b/c, ignoredByScheduler: true}, {name: a.b/d}],
   tlsConfig: {serverName: s, caFile: /ca, certData: Y2VydA==, keyData: a2V5}}
- {urlPrefix: "http://y", tlsConfig: {insecure: true}}
)")}) {
    const auto config = read(members);
    ASSERT_TRUE(config) << config.error().text();
    auto same = again(*config);
    ASSERT_TRUE(same) << same.error().text();
    EXPECT_EQ(same->profiles, config->profiles);
    EXPECT_EQ(same->backoff.initial, config->backoff.initial);
    EXPECT_EQ(same->backoff.max, config->backoff.max);
    EXPECT_EQ(same->claims_timeout, config->claims_timeout);
    EXPECT_EQ(same->kubeconfig, config->kubeconfig);
    EXPECT_EQ(same->leader_election.enabled, config->leader_election.enabled);
    EXPECT_EQ(same->leader_election.lease_duration, config->leader_election.lease_duration);
    EXPECT_EQ(same->leader_election.resource_name, config->leader_election.resource_name);
    EXPECT_EQ(same->leader_election.resource_namespace, config->leader_election.resource_namespace);
    EXPECT_EQ(same->extenders.rules, config->extenders.rules);
    EXPECT_EQ(same->extenders.ignored, config->extenders.ignored);
    ASSERT_EQ(same->extenders.tls.size(), config->extenders.tls.size());
    for (std::size_t i = 0; i < same->extenders.tls.size(); ++i) {
      same->extenders.tls[i].where = config->extenders.tls[i].where;
      EXPECT_EQ(same->extenders.tls[i], config->extenders.tls[i]);
    }
    EXPECT_EQ(same->warnings, std::vector<std::string>()) << "it says nothing without effect";
  }
}

TEST(SchedulerDocument, SaysTheDefaultsAndKeepsKeys) {
  const api::Json plain = scheduler_document(SchedulerConfig(), InlineKeys::kWritten);
  const std::string text = yaml::to_text(plain);
  for (const std::string_view said :
       {"schedulerName: default-scheduler", "minCandidateNodesAbsolute: 100", "resourceName: kube-scheduler",
        "podMaxBackoffSeconds: 10", "bindTimeoutSeconds: 600"}) {
    EXPECT_NE(text.find(said), std::string::npos) << said;
  }
  const auto config = read("extenders: [{urlPrefix: 'http://y', tlsConfig: {certData: Y2VydA==, keyData: a2V5}}]\n");
  ASSERT_TRUE(config);
  EXPECT_NE(yaml::to_text(scheduler_document(*config, InlineKeys::kWritten)).find("a2V5"), std::string::npos);
  const std::string shown = yaml::to_text(scheduler_document(*config, InlineKeys::kLeftOut));
  EXPECT_EQ(shown.find("a2V5"), std::string::npos);
  EXPECT_NE(shown.find("Y2VydA=="), std::string::npos);
}

}  // namespace
}  // namespace spillway::cli
