#include "cli/config/manager_config.h"

#include "api/text/duration.h"
#include "base/edit_distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

using api::Json;

constexpr std::string_view kApiVersion = "kubecontrollermanager.config.k8s.io/v1alpha1";
constexpr std::string_view kKind = "KubeControllerManagerConfiguration";

enum class Type { kText, kDuration, kNumber, kInteger, kBool, kList };

std::string_view describe(Type type) {
  switch (type) {
    case Type::kText:
      return "a string";
    case Type::kDuration:
      return "a duration, for example 5s";
    case Type::kNumber:
      return "a number";
    case Type::kInteger:
      return "a whole number";
    case Type::kBool:
      return "true or false";
    case Type::kList:
      return "a list of strings";
  }
  return {};
}

Json duration(Duration value) {
  return api::format_duration(value);
}

/// Zero is off, and then left out.
Json optional_duration(Duration value) {
  return value > Duration::zero() ? duration(value) : Json();
}

Json text(const std::string& value) {
  return value.empty() ? Json() : Json(value);
}

Json number(double value) {
  return value;
}

Json integer(std::int64_t value) {
  return value;
}

/// Zero is not given, and then left out.
Json given_size(int bits) {
  return bits == 0 ? Json() : Json(std::int64_t{bits});
}

Json list(const std::string& words) {
  Json out = Json::array();
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find(',', begin), words.size());
    out.if_array()->push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

struct Field {
  std::string_view section;  // "generic.leaderElection"
  std::string_view name;
  std::string_view flag;
  Type type;
  Json (*value)(const ControllerCommand&);  // null Json: left out
};

using ManagerCommand = const ControllerCommand&;

// clang-format off
constexpr auto kFields = std::to_array<Field>({
    {"generic", "address", "--bind-address", Type::kText, [](ManagerCommand c) { return text(c.serving.bind_address); }},
    {"generic", "port", "--secure-port", Type::kInteger, [](ManagerCommand c) { return integer(c.serving.secure_port); }},
    {"generic", "controllers", "--controllers", Type::kList, [](ManagerCommand c) { return list(c.controllers); }},
    {"generic.clientConnection", "kubeconfig", "--kubeconfig", Type::kText, [](ManagerCommand c) { return text(c.api.kubeconfig); }},
    {"generic.clientConnection", "qps", "--kube-api-qps", Type::kNumber, [](ManagerCommand c) { return number(c.kube_api_qps); }},
    {"generic.clientConnection", "burst", "--kube-api-burst", Type::kInteger, [](ManagerCommand c) { return integer(c.kube_api_burst); }},
    {"generic.leaderElection", "leaderElect", "--leader-elect", Type::kBool, [](ManagerCommand c) { return Json(c.leader_election.enabled); }},
    {"generic.leaderElection", "leaseDuration", "--leader-elect-lease-duration", Type::kDuration, [](ManagerCommand c) { return duration(c.leader_election.lease_duration); }},
    {"generic.leaderElection", "renewDeadline", "--leader-elect-renew-deadline", Type::kDuration, [](ManagerCommand c) { return duration(c.leader_election.renew_deadline); }},
    {"generic.leaderElection", "resourceLock", "--leader-elect-resource-lock", Type::kText, [](ManagerCommand) { return Json("leases"); }},
    {"generic.leaderElection", "resourceName", "--leader-elect-resource-name", Type::kText, [](ManagerCommand c) { return text(c.leader_election.resource_name); }},
    {"generic.leaderElection", "resourceNamespace", "--leader-elect-resource-namespace", Type::kText, [](ManagerCommand c) { return text(c.leader_election.resource_namespace); }},
    {"generic.leaderElection", "retryPeriod", "--leader-elect-retry-period", Type::kDuration, [](ManagerCommand c) { return duration(c.leader_election.retry_period); }},
    {"hpaController", "horizontalPodAutoscalerCPUInitializationPeriod", "--horizontal-pod-autoscaler-cpu-initialization-period", Type::kDuration, [](ManagerCommand c) { return duration(c.controller.autoscaling.start_periods.cpu_initialization); }},
    {"hpaController", "horizontalPodAutoscalerDownscaleStabilizationWindow", "--horizontal-pod-autoscaler-downscale-stabilization", Type::kDuration, [](ManagerCommand c) { return duration(c.controller.autoscaling.down_stabilization); }},
    {"hpaController", "horizontalPodAutoscalerInitialReadinessDelay", "--horizontal-pod-autoscaler-initial-readiness-delay", Type::kDuration, [](ManagerCommand c) { return duration(c.controller.autoscaling.start_periods.initial_readiness); }},
    {"hpaController", "horizontalPodAutoscalerSyncPeriod", "--horizontal-pod-autoscaler-sync-period", Type::kDuration, [](ManagerCommand c) { return duration(c.controller.autoscaling.period); }},
    {"hpaController", "horizontalPodAutoscalerTolerance", "--horizontal-pod-autoscaler-tolerance", Type::kNumber, [](ManagerCommand c) { return number(c.controller.autoscaling.tolerance); }},
    {"kubeCloudShared", "allocateNodeCIDRs", "--allocate-node-cidrs", Type::kBool, [](ManagerCommand c) { return Json(c.controller.allocate_node_cidrs); }},
    {"kubeCloudShared", "clusterCIDR", "--cluster-cidr", Type::kText, [](ManagerCommand c) { return text(c.controller.node_ranges.cluster_cidr); }},
    {"kubeCloudShared", "nodeMonitorPeriod", "--node-monitor-period", Type::kDuration, [](ManagerCommand c) { return duration(c.controller.node_monitor_period); }},
    {"nodeIPAMController", "nodeCIDRMaskSize", "--node-cidr-mask-size", Type::kInteger, [](ManagerCommand c) { return given_size(c.controller.node_ranges.node_cidr_mask_size); }},
    {"nodeIPAMController", "nodeCIDRMaskSizeIPv4", "--node-cidr-mask-size-ipv4", Type::kInteger, [](ManagerCommand c) { return given_size(c.controller.node_ranges.node_cidr_mask_size_ipv4); }},
    {"nodeIPAMController", "nodeCIDRMaskSizeIPv6", "--node-cidr-mask-size-ipv6", Type::kInteger, [](ManagerCommand c) { return given_size(c.controller.node_ranges.node_cidr_mask_size_ipv6); }},
    {"nodeIPAMController", "serviceCIDR", "--service-cluster-ip-range", Type::kText, [](ManagerCommand c) { return text(c.controller.node_ranges.service_cluster_ip_range); }},
    {"nodeLifecycleController", "enableTaintManager", "--enable-taint-manager", Type::kBool, [](ManagerCommand c) { return Json(c.controller.taint_manager); }},
    {"nodeLifecycleController", "largeClusterSizeThreshold", "--large-cluster-size-threshold", Type::kInteger, [](ManagerCommand c) { return integer(c.controller.large_cluster_size_threshold); }},
    {"nodeLifecycleController", "nodeEvictionRate", "--node-eviction-rate", Type::kNumber, [](ManagerCommand c) { return number(c.controller.node_eviction_rate); }},
    {"nodeLifecycleController", "nodeMonitorGracePeriod", "--node-monitor-grace-period", Type::kDuration, [](ManagerCommand c) { return duration(grace_period_of(c.controller)); }},
    {"nodeLifecycleController", "nodeStartupGracePeriod", "--node-startup-grace-period", Type::kDuration, [](ManagerCommand c) { return duration(c.controller.node_startup_grace_period); }},
    {"nodeLifecycleController", "podEvictionTimeout", "--pod-eviction-timeout", Type::kDuration, [](ManagerCommand c) { return c.controller.pod_eviction_timeout ? duration(*c.controller.pod_eviction_timeout) : Json(); }},
    {"nodeLifecycleController", "secondaryNodeEvictionRate", "--secondary-node-eviction-rate", Type::kNumber, [](ManagerCommand c) { return number(c.controller.secondary_node_eviction_rate); }},
    {"nodeLifecycleController", "unhealthyZoneThreshold", "--unhealthy-zone-threshold", Type::kNumber, [](ManagerCommand c) { return number(c.controller.unhealthy_zone_threshold); }},
    {"podGCController", "terminatedPodGCThreshold", "--terminated-pod-gc-threshold", Type::kInteger, [](ManagerCommand c) { return integer(c.controller.terminated_pod_gc_threshold); }},
    {"spillway", "clockJumpMax", "--clock-jump-max", Type::kDuration, [](ManagerCommand c) { return optional_duration(c.controller.brakes.clock_jump_max); }},
    {"spillway", "cloudInstanceCheckCommand", "--cloud-instance-check-command", Type::kText, [](ManagerCommand c) { return text(c.controller.cloud_instance_check_command); }},
    {"spillway", "cloudInstanceCheckTimeout", "--cloud-instance-check-timeout", Type::kDuration, [](ManagerCommand c) { return duration(c.controller.cloud_instance_check_timeout); }},
    {"spillway", "compat", "--compat", Type::kText, [](ManagerCommand c) { return text(c.controller.compat); }},
    {"spillway", "evictionBackoff", "--eviction-backoff", Type::kBool, [](ManagerCommand c) { return Json(c.controller.brakes.eviction_backoff); }},
    {"spillway", "evictionMode", "--eviction-mode", Type::kText, [](ManagerCommand c) { return text(eviction_mode_of(c.controller)); }},
    {"spillway", "heartbeatStallFraction", "--heartbeat-stall-fraction", Type::kNumber, [](ManagerCommand c) { return number(c.controller.brakes.stall_share); }},
    {"spillway", "heartbeatStallMax", "--heartbeat-stall-max", Type::kDuration, [](ManagerCommand c) { return duration(c.controller.brakes.stall_max); }},
    {"spillway", "holdConfigMap", "--hold-config-map", Type::kText, [](ManagerCommand c) { return Json(c.controller.brakes.hold_config_map); }},
    {"spillway", "limitDeletions", "--limit-deletions", Type::kText, [](ManagerCommand c) { return text(c.controller.brakes.limit_deletions); }},
    {"spillway", "limitNodeDeletions", "--limit-node-deletions", Type::kText, [](ManagerCommand c) { return text(c.controller.brakes.limit_node_deletions); }},
    {"spillway", "limitNotReady", "--limit-not-ready", Type::kText, [](ManagerCommand c) { return text(c.controller.brakes.limit_not_ready); }},
    {"spillway", "limitTaints", "--limit-taints", Type::kText, [](ManagerCommand c) { return text(c.controller.brakes.limit_taints); }},
    {"spillway", "replaceBeforeDeletion", "--replace-before-deletion", Type::kBool, [](ManagerCommand c) { return Json(c.controller.brakes.replace_before_deletion); }},
    {"spillway", "respectDisruptionBudgets", "--respect-disruption-budgets", Type::kBool, [](ManagerCommand c) { return Json(c.controller.brakes.respect_budgets); }},
    {"spillway", "stormCoolDown", "--storm-cool-down", Type::kDuration, [](ManagerCommand c) { return optional_duration(c.controller.brakes.storm_cool_down); }},
    {"spillway", "terminatedPodGCFair", "--terminated-pod-gc-fair", Type::kBool, [](ManagerCommand c) { return Json(c.controller.terminated_pod_gc_fair); }},
    {"spillway", "waitForReplacement", "--wait-for-replacement", Type::kBool, [](ManagerCommand c) { return Json(c.controller.brakes.wait_for_replacement); }},
    {"spillway", "watchAgeMax", "--watch-age-max", Type::kDuration, [](ManagerCommand c) { return optional_duration(c.controller.brakes.watch_age_max); }},
    {"spillway", "zoneFullDisruption", "--zone-full-disruption", Type::kText, [](ManagerCommand c) { return text(c.controller.brakes.full_disruption); }},
});

/// Members for controllers and settings that do not exist here.
constexpr auto kWithoutEffect = std::to_array<std::string_view>({
    "attachDetachController", "cronJobController", "csrSigningController", "daemonSetController", "deploymentController",
    "deprecatedController", "endpointController", "endpointSliceController", "endpointSliceMirroringController",
    "ephemeralVolumeController", "garbageCollectorController", "generic.clientConnection.acceptContentTypes",
    "generic.clientConnection.contentType", "generic.controllerStartInterval", "generic.debugging",
    "generic.leaderMigration", "generic.leaderMigrationEnabled", "generic.minResyncPeriod",
    "hpaController.concurrentHorizontalPodAutoscalerSyncs",
    "hpaController.horizontalPodAutoscalerDownscaleForbiddenWindow",
    "hpaController.horizontalPodAutoscalerUpscaleForbiddenWindow",
    "hpaController.horizontalPodAutoscalerUseRESTClients",
    "jobController", "kubeCloudShared.allowUntaggedCloud",
    "kubeCloudShared.cidrAllocatorType", "kubeCloudShared.cloudProvider",
    "kubeCloudShared.clusterName", "kubeCloudShared.configureCloudRoutes", "kubeCloudShared.externalCloudVolumePlugin",
    "kubeCloudShared.nodeSyncPeriod", "kubeCloudShared.routeReconciliationPeriod",
    "kubeCloudShared.useServiceAccountCredentials", "legacySATokenCleaner", "namespaceController",
    "nodeIPAMController.secondaryServiceCIDR", "persistentVolumeBinderController", "replicaSetController",
    "replicationController",
    "resourceQuotaController", "saController", "serviceController", "statefulSetController",
    "ttlAfterFinishedController", "validatingAdmissionPolicyStatusController"});
// clang-format on

bool same_word(std::string_view one, std::string_view other) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(one, other, {}, lower, lower);
}

std::string path_of(const Field& field) {
  return fmt::format("{}.{}", field.section, field.name);
}

/// A section has members of its own: "generic" and "generic.leaderElection".
bool is_section(std::string_view path) {
  return std::ranges::any_of(kFields, [&](const Field& field) {
    return same_word(field.section, path) || (field.section.size() > path.size() && field.section[path.size()] == '.' &&
                                              same_word(field.section.substr(0, path.size()), path));
  });
}

class Reader {
 public:
  Reader(const std::string& file, const yaml::Document& document) : file_(file), document_(document) {}

  ManagerFlags run() {
    if (document_.value.is_null()) return {};
    if (document_.value.is_object()) {
      check_header("apiVersion", kApiVersion);
      check_header("kind", kKind);
      read_section("", document_.value);
    } else {
      wrong("", "expected a mapping");
    }
    return std::move(result_);
  }

 private:
  std::string at(const std::string& path) const {
    std::string place;  // origin of a value: "generic[leaderElection][leaderElect]"
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      place += begin == 0 ? path.substr(0, end) : "[" + path.substr(begin, end - begin) + "]";
      begin = end + 1;
    }
    const yaml::Origin* origin = document_.origins.find(place);
    return origin == nullptr ? file_ : fmt::format("{}:{}", file_, origin->line);
  }

  void wrong(const std::string& path, std::string_view what) {
    result_.errors.push_back(path.empty() ? fmt::format("{}: {}", file_, what)
                                          : fmt::format("{}: {}: {}", at(path), path, what));
  }

  void check_header(const std::string& name, std::string_view expected) {
    const Json* found = document_.value.find(name);
    if (found == nullptr) return wrong("", fmt::format("{} is missing; expected {}", name, expected));
    if (found->string_at({}) != expected) wrong(name, fmt::format("expected {}", expected));
  }

  void read_section(const std::string& section, const Json& value) {
    for (const auto& [name, member] : *value.if_object()) {
      const std::string path = section.empty() ? name : section + "." + name;
      if (section.empty() && (name == "apiVersion" || name == "kind")) continue;
      const auto field =
          std::ranges::find_if(kFields, [&](const Field& each) { return same_word(path_of(each), path); });
      if (is_section(path)) {
        if (member.is_object()) {
          read_section(path, member);
        } else if (!member.is_null()) {
          wrong(path, "expected a mapping");
        }
      } else if (field != kFields.end()) {
        if (!member.is_null()) read_field(*field, path, member);
      } else if (std::ranges::any_of(kWithoutEffect, [&](std::string_view each) { return same_word(each, path); })) {
        result_.warnings.push_back(fmt::format("{}: {}: has no effect here", at(path), path));
      } else {
        wrong(path, "unknown" + suggestion_for(path));
      }
    }
  }

  void read_field(const Field& field, const std::string& path, const Json& value) {
    const auto expected = [&] { return wrong(path, fmt::format("expected {}", describe(field.type))); };
    std::string word;
    switch (field.type) {
      case Type::kText:
      case Type::kDuration:
        if (value.if_string() == nullptr) return expected();
        word = *value.if_string();
        if (field.type == Type::kDuration && !api::parse_duration(word)) return expected();
        break;
      case Type::kNumber:
        if (!value.if_double() && !value.if_int64()) return expected();
        word = api::to_text(value);
        break;
      case Type::kInteger:
        if (!value.if_int64()) return expected();
        word = api::to_text(value);
        break;
      case Type::kBool:
        if (!value.if_bool()) return expected();
        word = *value.if_bool() ? "true" : "false";
        break;
      case Type::kList:
        if (value.if_array() == nullptr) return expected();
        for (const Json& each : *value.if_array()) {
          if (each.if_string() == nullptr) return expected();
          word += (word.empty() ? "" : ",") + *each.if_string();
        }
        break;
    }
    result_.flags.push_back(fmt::format("{}={}", field.flag, word));
  }

  static std::string suggestion_for(const std::string& path) {
    NearestWord nearest(path);
    for (const Field& field : kFields) {
      nearest.offer(field.section);
      nearest.offer(path_of(field));
    }
    for (const std::string_view member : kWithoutEffect) nearest.offer(member);
    return nearest.suggestion();
  }

  const std::string& file_;
  const yaml::Document& document_;
  ManagerFlags result_;
};

}  // namespace

ManagerFlags manager_flags(const std::string& file, const yaml::Document& document) {
  return Reader(file, document).run();
}

api::Json manager_configuration(const ControllerCommand& command) {
  Json document = Json::object({{"apiVersion", kApiVersion}, {"kind", kKind}});
  for (const Field& field : kFields) {
    Json value = field.value(command);
    if (value.is_null()) continue;
    const std::size_t dot = field.section.find('.');
    Json& section = document[std::string(field.section.substr(0, dot))];
    if (section.is_null()) section = Json::object();
    Json* into = &section;
    if (dot != std::string_view::npos) {
      into = &section[std::string(field.section.substr(dot + 1))];
      if (into->is_null()) *into = Json::object();
    }
    (*into)[std::string(field.name)] = std::move(value);
  }
  return document;
}

}  // namespace spillway::cli
