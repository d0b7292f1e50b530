// Every flag of a kubelet 1.32 is taken by `spillway agent`: it works, or one warning says what it does here.
#include "cli/flags/command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::cli {
namespace {

struct KubeletFlag {
  const char* name;
  const char* value;
};

// All of a kubelet but --help and --version, with a value that each takes.
constexpr KubeletFlag kKubeletFlags[] = {
    {"--address", "x"},
    {"--allowed-unsafe-sysctls", "x"},
    {"--anonymous-auth", "true"},
    {"--application-metrics-count-limit", "x"},
    {"--authentication-token-webhook", "true"},
    {"--authentication-token-webhook-cache-ttl", "x"},
    {"--authorization-mode", "x"},
    {"--authorization-webhook-cache-authorized-ttl", "x"},
    {"--authorization-webhook-cache-unauthorized-ttl", "x"},
    {"--boot-id-file", "x"},
    {"--bootstrap-kubeconfig", "/dev/null"},
    {"--cert-dir", "x"},
    {"--cgroup-driver", "x"},
    {"--cgroup-root", "x"},
    {"--cgroups-per-qos", "x"},
    {"--client-ca-file", "/ca.pem"},
    {"--cloud-config", "x"},
    {"--cloud-provider", "external"},
    {"--cluster-dns", "x"},
    {"--cluster-domain", "x"},
    {"--config", "/dev/null"},
    {"--config-dir", "/tmp"},
    {"--container-hints", "x"},
    {"--container-log-max-files", "7"},
    {"--container-log-max-size", "x"},
    {"--container-runtime-endpoint", "x"},
    {"--containerd", "x"},
    {"--containerd-namespace", "x"},
    {"--contention-profiling", "x"},
    {"--cpu-cfs-quota", "true"},
    {"--cpu-cfs-quota-period", "x"},
    {"--cpu-manager-policy", "x"},
    {"--cpu-manager-policy-options", "full-pcpus-only=true"},
    {"--cpu-manager-reconcile-period", "x"},
    {"--enable-controller-attach-detach", "true"},
    {"--enable-debugging-handlers", "true"},
    {"--enable-load-reader", "x"},
    {"--enable-server", "true"},
    {"--enforce-node-allocatable", "pods"},
    {"--event-burst", "7"},
    {"--event-qps", "7"},
    {"--event-storage-age-limit", "x"},
    {"--event-storage-event-limit", "x"},
    {"--eviction-hard", "memory.available<100Mi"},
    {"--eviction-max-pod-grace-period", "1"},
    {"--eviction-minimum-reclaim", "memory.available=1Mi"},
    {"--eviction-pressure-transition-period", "1m"},
    {"--eviction-soft", "memory.available<100Mi"},
    {"--eviction-soft-grace-period", "memory.available=1m"},
    {"--exit-on-lock-contention", "x"},
    {"--experimental-allocatable-ignore-eviction", "x"},
    {"--experimental-mounter-path", "x"},
    {"--fail-cgroupv1", "true"},
    {"--fail-swap-on", "true"},
    {"--feature-gates", "MemoryQoS=true"},
    {"--file-check-frequency", "20s"},
    {"--global-housekeeping-interval", "x"},
    {"--hairpin-mode", "x"},
    {"--healthz-bind-address", "x"},
    {"--healthz-port", "7"},
    {"--hostname-override", "x"},
    {"--housekeeping-interval", "x"},
    {"--http-check-frequency", "x"},
    {"--image-credential-provider-bin-dir", "/tmp"},
    {"--image-credential-provider-config", "/dev/null"},
    {"--image-gc-high-threshold", "7"},
    {"--image-gc-low-threshold", "7"},
    {"--image-service-endpoint", "x"},
    {"--kernel-memcg-notification", "true"},
    {"--kube-api-burst", "x"},
    {"--kube-api-content-type", "x"},
    {"--kube-api-qps", "x"},
    {"--kube-reserved", "cpu=100m"},
    {"--kube-reserved-cgroup", "x"},
    {"--kubeconfig", "/k"},
    {"--kubelet-cgroups", "x"},
    {"--local-storage-capacity-isolation", "true"},
    {"--lock-file", "x"},
    {"--log-cadvisor-usage", "x"},
    {"--log-flush-frequency", "x"},
    {"--log-text-info-buffer-size", "x"},
    {"--log-text-split-stream", "x"},
    {"--logging-format", "x"},
    {"--machine-id-file", "x"},
    {"--make-iptables-util-chains", "x"},
    {"--manifest-url", "x"},
    {"--manifest-url-header", "a:b"},
    {"--max-housekeeping-interval", "x"},
    {"--max-open-files", "x"},
    {"--max-pods", "5"},
    {"--maximum-dead-containers", "x"},
    {"--maximum-dead-containers-per-container", "x"},
    {"--memory-manager-policy", "x"},
    {"--minimum-container-ttl-duration", "x"},
    {"--minimum-image-ttl-duration", "x"},
    {"--node-ip", "127.0.0.1"},
    {"--node-labels", "a=b"},
    {"--node-status-max-images", "3"},
    {"--node-status-update-frequency", "10s"},
    {"--oom-score-adj", "7"},
    {"--pod-cidr", "x"},
    {"--pod-infra-container-image", "x"},
    {"--pod-manifest-path", "/etc"},
    {"--pod-max-pids", "10"},
    {"--pods-per-core", "1"},
    {"--port", "10250"},
    {"--protect-kernel-defaults", "true"},
    {"--provider-id", "x"},
    {"--qos-reserved", "x"},
    {"--read-only-port", "7"},
    {"--register-node", "true"},
    {"--register-schedulable", "true"},
    {"--register-with-taints", "a=b:NoSchedule"},
    {"--registry-burst", "7"},
    {"--registry-qps", "7"},
    {"--reserved-cpus", "0"},
    {"--reserved-memory", "0:memory=1Gi"},
    {"--resolv-conf", "x"},
    {"--root-dir", "x"},
    {"--rotate-certificates", "x"},
    {"--rotate-server-certificates", "x"},
    {"--runonce", "x"},
    {"--runtime-cgroups", "x"},
    {"--runtime-request-timeout", "1m"},
    {"--seccomp-default", "true"},
    {"--serialize-image-pulls", "true"},
    {"--storage-driver-buffer-duration", "x"},
    {"--storage-driver-db", "x"},
    {"--storage-driver-host", "x"},
    {"--storage-driver-password", "x"},
    {"--storage-driver-secure", "x"},
    {"--storage-driver-table", "x"},
    {"--storage-driver-user", "x"},
    {"--streaming-connection-idle-timeout", "x"},
    {"--sync-frequency", "1m"},
    {"--system-cgroups", "x"},
    {"--system-reserved", "cpu=100m"},
    {"--system-reserved-cgroup", "x"},
    {"--tls-cert-file", "x"},
    {"--tls-cipher-suites", "x"},
    {"--tls-min-version", "x"},
    {"--tls-private-key-file", "x"},
    {"--topology-manager-policy", "x"},
    {"--topology-manager-policy-options", "a=b"},
    {"--topology-manager-scope", "x"},
    {"--v", "x"},
    {"--vmodule", "x"},
    {"--volume-plugin-dir", "x"},
    {"--volume-stats-agg-period", "x"},
};
constexpr std::size_t kWithoutEffect = 55;

std::variant<AgentCommand, std::string> parse_agent(const std::vector<std::string>& flags) {
  std::vector<const char*> words{"spillway", "agent", "--print-config"};
  for (const std::string& each : flags) words.push_back(each.c_str());
  auto line = parse_command_line(static_cast<int>(words.size()), words.data());
  if (auto* early = std::get_if<EarlyExit>(&line)) return early->text;
  return std::get<AgentCommand>(std::get<CommandLine>(line).command);
}

AgentCommand parsed(const std::vector<std::string>& flags) {
  auto made = parse_agent(flags);
  if (const auto* mistake = std::get_if<std::string>(&made)) ADD_FAILURE() << *mistake;
  return std::holds_alternative<AgentCommand>(made) ? std::get<AgentCommand>(std::move(made)) : AgentCommand();
}

TEST(KubeletFlags, EachIsTakenOrWarnsOnce) {
  std::size_t without_effect = 0;
  for (const auto& [name, value] : kKubeletFlags) {
    const auto made = parse_agent({std::string(name) + "=" + value});
    const auto* command = std::get_if<AgentCommand>(&made);
    ASSERT_NE(command, nullptr) << name << ": " << std::get<std::string>(made);
    ASSERT_LE(command->without_effect.size(), 1U) << name;
    if (command->without_effect.empty()) continue;
    ++without_effect;
    EXPECT_FALSE(command->without_effect.front().why.empty()) << name;
  }
  EXPECT_EQ(without_effect, kWithoutEffect);
}

TEST(KubeletFlags, SetMembersOfTheConfiguration) {
  const AgentCommand command = parsed({"--anonymous-auth=false", "--authorization-mode=AlwaysAllow",
                                       "--cluster-dns=10.0.0.10", "--cluster-dns=10.0.0.11", "--feature-gates=A=true",
                                       "--feature-gates=MemoryQoS=false", "--seccomp-default", "--healthz-port=10248"});
  const api::Json& flags = command.node.config.flags;
  EXPECT_EQ(flags.at({"authentication", "anonymous", "enabled"})->if_bool(), false);
  EXPECT_EQ(flags.string_at({"authorization", "mode"}), "AlwaysAllow");
  EXPECT_EQ(api::to_text(*flags.find("clusterDNS")), R"(["10.0.0.10","10.0.0.11"])");
  EXPECT_EQ(api::to_text(*flags.find("featureGates")), R"({"A":true,"MemoryQoS":false})");
  EXPECT_EQ(flags.find("seccompDefault")->if_bool(), true);
  EXPECT_EQ(flags.find("healthzPort")->if_int64(), 10248);
}

TEST(KubeletFlags, NameTheNodeAndItsCloud) {
  const AgentCommand command = parsed({"--hostname-override= Node-1 ", "--cloud-provider=external"});
  EXPECT_EQ(command.node_name, "node-1");
  EXPECT_EQ(command.node.cloud_provider, "external");
  EXPECT_TRUE(std::holds_alternative<std::string>(parse_agent({"--cloud-provider=aws"})));
  EXPECT_TRUE(std::holds_alternative<std::string>(parse_agent({"--anonymous-auth=perhaps"})));
  EXPECT_TRUE(std::holds_alternative<std::string>(parse_agent({"--no-such-flag"})));
}

TEST(KubeletFlags, TheVersionIsWhatKubeadmParses) {
  EXPECT_EQ(std::get<std::string>(parse_agent({"--version"})), "Kubernetes v1.36.0\n");
}

TEST(KubeletFlags, HeadersOfTheAddressOfStaticPodsAddUp) {
  const AgentCommand command =
      parsed({"--manifest-url=http://h/pods", "--manifest-url-header=a:1,b:x:y", "--manifest-url-header=a:2"});
  EXPECT_EQ(command.node.config.flags.string_at({"staticPodURL"}), "http://h/pods");
  EXPECT_EQ(api::to_text(*command.node.config.flags.find("staticPodURLHeader")), R"({"a":["1","2"],"b":["x:y"]})");
  EXPECT_TRUE(std::holds_alternative<std::string>(parse_agent({"--manifest-url-header=a"})));
}

}  // namespace
}  // namespace spillway::cli
