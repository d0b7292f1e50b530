// The command line of a kubelet, as files of kubeadm and units of distributions have it: flags that set a member of the
// KubeletConfiguration, and those that change nothing here and are taken with a warning. Source: Kubernetes docs,
// "kubelet" (command-line reference, v1.32).
#include "api/json/json.h"
#include "base/followed_version.h"
#include "cli/flags/checks.h"
#include "cli/flags/flags.h"
#include "cli/flags/help_text.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

constexpr const char* kOwnSampling = "the agent samples cgroups by itself, at periods of its own";
constexpr const char* kNoAdvisor = "cAdvisor is not part of this agent";
constexpr const char* kByLogFlags = "--log-level and --log-format of spillway set how it logs";
constexpr const char* kNoPlugin = "no volume plug-in here reads it";
constexpr const char* kOneLock = "one agent per state directory is checked at every start";
constexpr const char* kCleanup = "the garbage collector keeps the last dead container of each, as a kubelet by default";
constexpr const char* kOwnCertificates = "certificates are kept in the state directory, or in the file of --kubeconfig";
constexpr const char* kNotYet = "the agent does not implement this member of the KubeletConfiguration";
constexpr const char* kPacing = "requests to the API server are paced by its answers";
constexpr const char* kPages = "the agent serves its pages of /debug/spillway and no profiles";
constexpr const char* kNoTables = "the agent writes no iptables rules";

/// Flags of kubelet that are accepted and reported as without effect.
constexpr StockFlag kOtherKubeletFlags[] = {
    {"--application-metrics-count-limit", kNoAdvisor},
    {"--boot-id-file", kNoAdvisor},
    {"--cert-dir", kOwnCertificates},
    {"--cgroups-per-qos", "pods are always below cgroups of their class"},
    {"--cloud-config", "no cloud provider reads it"},
    {"--container-hints", kNoAdvisor},
    {"--containerd", "--container-runtime-endpoint names the socket"},
    {"--containerd-namespace", "pods are made over CRI, whose namespace is the runtime's"},
    {"--contention-profiling", kPages},
    {"--cpu-manager-reconcile-period", "cpusets are written when they change"},
    {"--enable-load-reader", kNoAdvisor},
    {"--event-storage-age-limit", kNoAdvisor},
    {"--event-storage-event-limit", kNoAdvisor},
    {"--exit-on-lock-contention", kOneLock},
    {"--experimental-allocatable-ignore-eviction", "hard thresholds are always left out of what pods may use"},
    {"--experimental-mounter-path", kNoPlugin},
    {"--global-housekeeping-interval", kOwnSampling},
    {"--hairpin-mode", "the network of pods is the runtime's, or that of the CNI plug-ins"},
    {"--housekeeping-interval", kOwnSampling},
    {"--kube-api-burst", kPacing},
    {"--kube-api-content-type", "the agent speaks JSON with the API server"},
    {"--kube-api-qps", kPacing},
    {"--kubelet-cgroups", "the agent stays in the cgroup that it is started in"},
    {"--lock-file", kOneLock},
    {"--log-cadvisor-usage", kNoAdvisor},
    {"--log-flush-frequency", kByLogFlags},
    {"--log-text-info-buffer-size", kByLogFlags},
    {"--log-text-split-stream", kByLogFlags},
    {"--logging-format", kByLogFlags},
    {"--machine-id-file", kNoAdvisor},
    {"--make-iptables-util-chains", kNoTables},
    {"--max-housekeeping-interval", kOwnSampling},
    {"--max-open-files", "the limit is that of the unit (LimitNOFILE)"},
    {"--maximum-dead-containers", kCleanup},
    {"--maximum-dead-containers-per-container", kCleanup},
    {"--minimum-container-ttl-duration", kCleanup},
    {"--pod-cidr", "the range of a node is in its object"},
    {"--pod-infra-container-image", "the container runtime says which image its sandboxes have"},
    {"--qos-reserved", "qosReserved of a configuration file sets it"},
    {"--rotate-certificates", "the certificate that --bootstrap-kubeconfig requested is always renewed"},
    {"--rotate-server-certificates", kNotYet},
    {"--runonce", "a kubelet refuses it too"},
    {"--runtime-cgroups", kOwnSampling},
    {"--storage-driver-buffer-duration", kNoAdvisor},
    {"--storage-driver-db", kNoAdvisor},
    {"--storage-driver-host", kNoAdvisor},
    {"--storage-driver-password", kNoAdvisor},
    {"--storage-driver-secure", kNoAdvisor},
    {"--storage-driver-table", kNoAdvisor},
    {"--storage-driver-user", kNoAdvisor},
    {"--system-cgroups", "processes outside of cgroups are left where they are"},
    {"--v", kByLogFlags},
    {"-v", kByLogFlags},
    {"--vmodule", kByLogFlags},
    {"--volume-plugin-dir", kNoPlugin},
    {"--volume-stats-agg-period", kOwnSampling}};

enum class MemberType { kBool, kInteger, kText, kList, kGates, kHeaders };

/// A flag that sets one member: "authentication.anonymous.enabled".
struct MemberFlag {
  const char* flag;
  const char* member;
  MemberType type;
};

constexpr MemberFlag kMemberFlags[] = {
    {"--address", "address", MemberType::kText},
    {"--allowed-unsafe-sysctls", "allowedUnsafeSysctls", MemberType::kList},
    {"--anonymous-auth", "authentication.anonymous.enabled", MemberType::kBool},
    {"--authentication-token-webhook", "authentication.webhook.enabled", MemberType::kBool},
    {"--authentication-token-webhook-cache-ttl", "authentication.webhook.cacheTTL", MemberType::kText},
    {"--authorization-mode", "authorization.mode", MemberType::kText},
    {"--authorization-webhook-cache-authorized-ttl", "authorization.webhook.cacheAuthorizedTTL", MemberType::kText},
    {"--authorization-webhook-cache-unauthorized-ttl", "authorization.webhook.cacheUnauthorizedTTL", MemberType::kText},
    {"--cgroup-driver", "cgroupDriver", MemberType::kText},
    {"--cgroup-root", "cgroupRoot", MemberType::kText},
    {"--client-ca-file", "authentication.x509.clientCAFile", MemberType::kText},
    {"--cluster-dns", "clusterDNS", MemberType::kList},
    {"--cluster-domain", "clusterDomain", MemberType::kText},
    {"--container-log-max-files", "containerLogMaxFiles", MemberType::kInteger},
    {"--container-log-max-size", "containerLogMaxSize", MemberType::kText},
    {"--cpu-cfs-quota", "cpuCFSQuota", MemberType::kBool},
    {"--cpu-cfs-quota-period", "cpuCFSQuotaPeriod", MemberType::kText},
    {"--enable-controller-attach-detach", "enableControllerAttachDetach", MemberType::kBool},
    {"--enable-debugging-handlers", "enableDebuggingHandlers", MemberType::kBool},
    {"--enable-server", "enableServer", MemberType::kBool},
    {"--event-burst", "eventBurst", MemberType::kInteger},
    {"--event-qps", "eventRecordQPS", MemberType::kInteger},
    {"--fail-cgroupv1", "failCgroupV1", MemberType::kBool},
    {"--fail-swap-on", "failSwapOn", MemberType::kBool},
    {"--feature-gates", "featureGates", MemberType::kGates},
    {"--healthz-bind-address", "healthzBindAddress", MemberType::kText},
    {"--healthz-port", "healthzPort", MemberType::kInteger},
    {"--http-check-frequency", "httpCheckFrequency", MemberType::kText},
    {"--image-gc-high-threshold", "imageGCHighThresholdPercent", MemberType::kInteger},
    {"--image-gc-low-threshold", "imageGCLowThresholdPercent", MemberType::kInteger},
    {"--image-service-endpoint", "imageServiceEndpoint", MemberType::kText},
    {"--kernel-memcg-notification", "kernelMemcgNotification", MemberType::kBool},
    {"--local-storage-capacity-isolation", "localStorageCapacityIsolation", MemberType::kBool},
    {"--manifest-url", "staticPodURL", MemberType::kText},
    {"--manifest-url-header", "staticPodURLHeader", MemberType::kHeaders},
    {"--minimum-image-ttl-duration", "imageMinimumGCAge", MemberType::kText},
    {"--oom-score-adj", "oomScoreAdj", MemberType::kInteger},
    {"--pod-max-pids", "podPidsLimit", MemberType::kInteger},
    {"--protect-kernel-defaults", "protectKernelDefaults", MemberType::kBool},
    {"--provider-id", "providerID", MemberType::kText},
    {"--read-only-port", "readOnlyPort", MemberType::kInteger},
    {"--registry-burst", "registryBurst", MemberType::kInteger},
    {"--registry-qps", "registryPullQPS", MemberType::kInteger},
    {"--resolv-conf", "resolvConf", MemberType::kText},
    {"--runtime-request-timeout", "runtimeRequestTimeout", MemberType::kText},
    {"--seccomp-default", "seccompDefault", MemberType::kBool},
    {"--serialize-image-pulls", "serializeImagePulls", MemberType::kBool},
    {"--streaming-connection-idle-timeout", "streamingConnectionIdleTimeout", MemberType::kText},
    {"--tls-cert-file", "tlsCertFile", MemberType::kText},
    {"--tls-cipher-suites", "tlsCipherSuites", MemberType::kList},
    {"--tls-min-version", "tlsMinVersion", MemberType::kText},
    {"--tls-private-key-file", "tlsPrivateKeyFile", MemberType::kText}};

Result<api::Json> flag_boolean(std::string_view text) {
  for (const std::string_view yes : {"true", "1", "t", "T", "TRUE", "True"})
    if (text == yes) return api::Json(true);
  for (const std::string_view no : {"false", "0", "f", "F", "FALSE", "False"})
    if (text == no) return api::Json(false);
  return invalid({}, "expected true or false, got \"{}\"", text);
}

Result<api::Json> flag_integer(const std::string& text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return api::Json(std::int64_t{value});
  return invalid({}, "expected a whole number, got \"{}\"", text);
}

/// "NAME=true,NAME=false".
Result<api::Json> flag_gates(const std::string& text) {
  api::Json gates = api::Json::object();
  for (const std::string& each : CLI::detail::split(text, ',')) {
    const std::size_t equals = each.find('=');
    if (equals == 0 || equals == std::string::npos)
      return invalid({}, "expected NAME=true or NAME=false, got \"{}\"", each);
    SPILLWAY_TRY(on, flag_boolean(std::string_view(each).substr(equals + 1)));
    gates[each.substr(0, equals)] = std::move(on);
  }
  return gates;
}

/// "NAME:VALUE,NAME:VALUE": a repeated name has all its values.
Result<api::Json> flag_headers(const std::string& text) {
  api::Json headers = api::Json::object();
  for (const std::string& each : CLI::detail::split(text, ',')) {
    const std::size_t colon = each.find(':');
    if (colon == 0 || colon == std::string::npos) return invalid({}, "expected NAME:VALUE, got \"{}\"", each);
    api::Json& values = headers[each.substr(0, colon)];
    if (!values.is_array()) values = api::Json::array();
    values.if_array()->emplace_back(each.substr(colon + 1));
  }
  return headers;
}

Result<api::Json> flag_value(MemberType type, const std::string& text) {
  switch (type) {
    case MemberType::kBool:
      return flag_boolean(text.empty() ? std::string_view("true") : std::string_view(text));
    case MemberType::kInteger:
      return flag_integer(text);
    case MemberType::kText:
      return api::Json(text);
    case MemberType::kGates:
      return flag_gates(text);
    case MemberType::kHeaders:
      return flag_headers(text);
    case MemberType::kList:
      break;
  }
  api::Json list = api::Json::array();
  for (std::string& each : CLI::detail::split(text, ',')) list.if_array()->emplace_back(std::move(each));
  return list;
}

/// The place of a member in the settings that flags have named.
api::Json& member_at(api::Json& settings, std::string_view path) {
  api::Json* found = &settings;
  for (;;) {
    const std::size_t dot = path.find('.');
    api::Json& below = (*found)[std::string(path.substr(0, dot))];
    if (dot == std::string_view::npos) return below;
    if (!below.is_object()) below = api::Json::object();
    found = &below;
    path.remove_prefix(dot + 1);
  }
}

/// Maps and lists add up over the uses of a flag; of other values the last one counts.
void set_member(api::Json& settings, const MemberFlag& flag, api::Json value) {
  api::Json& member = member_at(settings, flag.member);
  if (flag.type == MemberType::kGates && member.is_object()) {
    for (auto& [name, on] : *value.if_object()) member[name] = std::move(on);
  } else if (flag.type == MemberType::kHeaders && member.is_object()) {
    for (auto& [name, values] : *value.if_object()) {
      api::Json& list = member[name];
      if (!list.is_array()) list = api::Json::array();
      for (api::Json& each : *values.if_array()) list.if_array()->push_back(std::move(each));
    }
  } else if (flag.type == MemberType::kList && member.is_array()) {
    for (api::Json& each : *value.if_array()) member.if_array()->push_back(std::move(each));
  } else {
    member = std::move(value);
  }
}

void add_member_flag(CLI::App& app, NodeConfigArgs& config, const MemberFlag& flag) {
  app.add_option_function<std::string>(flag.flag,
                                       [&config, &flag](const std::string& text) {
                                         auto value = flag_value(flag.type, text);
                                         if (!value) throw CLI::ValidationError(flag.flag, value.error().text());
                                         set_member(config.flags, flag, *std::move(value));
                                       })
      ->trigger_on_parse()
      ->expected(flag.type == MemberType::kBool ? 0 : 1, 1)
      ->group("");
}

std::string lower_case(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  std::string made(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
  std::ranges::transform(made, made.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return made;
}

}  // namespace

void add_kubelet_flags(CLI::App& app, AgentCommand& command) {
  for (const MemberFlag& each : kMemberFlags) add_member_flag(app, command.node.config, each);
  add_without_effect(app, kOtherKubeletFlags, command.without_effect);
  app.add_option_function<std::string>("--hostname-override",
                                       [&command](const std::string& text) { command.node_name = lower_case(text); })
      ->trigger_on_parse()
      ->group("");
  begin_group(app, "Node");
  app.add_option(
         "--cloud-provider", command.node.cloud_provider,
         "external: the node registers with the taint uninitialized, and leaves addresses, zone and provider to "
         "a cloud controller manager")
      ->check(one_of({"", "external"}));
  app.set_version_flag("--version", fmt::format("Kubernetes {}", kFollowedVersion))->group("");
}

}  // namespace spillway::cli
