#include "agent/config/kubelet_config.h"

#include "agent/config/config_schema.h"
#include "agent/config/enforcement_config.h"
#include "agent/config/registration_config.h"
#include "agent/config/resource_config.h"
#include "agent/config/resource_managers.h"
#include "api/text/duration.h"
#include "base/edit_distance.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kApiVersion = "kubelet.config.k8s.io/v1beta1";
constexpr std::string_view kKind = "KubeletConfiguration";
constexpr std::int64_t kLogWorkersMax = 8;  // each is a thread

std::string_view type_name(const Json& value) {
  switch (value.type()) {
    case Json::Type::kNull:
      return "nothing";
    case Json::Type::kBool:
      return "a boolean";
    case Json::Type::kInt:
    case Json::Type::kUint:
      return "a whole number";
    case Json::Type::kDouble:
      return "a number";
    case Json::Type::kString:
      return "a string";
    case Json::Type::kArray:
      return "a list";
    case Json::Type::kObject:
      return "a mapping";
  }
  return "";
}

std::string shown(const Json& value) {
  if (value.is_object() || value.is_array() || value.is_null()) return std::string(type_name(value));
  constexpr std::size_t kShownMax = 60;  // bytes: a value of many lines would bury the message
  return fmt::format("{} {}", type_name(value), shortened(api::to_text(value), kShownMax));
}

/// Members of the mappings that the agent reads by member.
constexpr std::string_view kSectionMembers =
    R"({"authentication":{"anonymous":{"enabled":null},"webhook":{"cacheTTL":null,"enabled":null},)"
    R"("x509":{"clientCAFile":null}},"authorization":{"mode":null,)"
    R"("webhook":{"cacheAuthorizedTTL":null,"cacheUnauthorizedTTL":null}},"memorySwap":{"swapBehavior":null}})";

class Checker {
 public:
  explicit Checker(const ConfigDocument& document) : document_(document) {}

  CheckedConfig run() {
    result_.value = Json::object();
    if (!document_.value.is_object()) {
      if (!document_.value.is_null()) wrong("", fmt::format("expected a mapping, got {}", shown(document_.value)));
      return std::move(result_);
    }
    check_header("apiVersion", kApiVersion);
    check_header("kind", kKind);
    for (const RepeatedConfigKey& each : document_.repeated) {
      result_.findings.push_back(
          {.kind = ConfigFinding::Kind::kTolerated,
           .file = document_.file,
           .line = each.line,
           .path = each.key,
           .message = fmt::format("is there twice, first in line {}: the last value counts", each.first_line)});
    }
    for (const auto& [name, value] : *document_.value.if_object()) check_field(name, value);
    return std::move(result_);
  }

 private:
  void add(ConfigFinding::Kind kind, const std::string& path, std::string message) {
    result_.findings.push_back({.kind = kind,
                                .file = document_.file,
                                .line = document_.origin_of(path).line,
                                .path = path,
                                .message = std::move(message)});
  }

  void wrong(const std::string& path, std::string message) {
    add(ConfigFinding::Kind::kError, path, std::move(message));
  }

  void unexpected(const std::string& path, std::string_view expected, const Json& found) {
    wrong(path, fmt::format("expected {}, got {}", expected, shown(found)));
  }

  void check_header(std::string_view name, std::string_view wanted) {
    const Json* found = document_.value.find(name);
    if (document_.file.empty() && found == nullptr) return;
    if (found == nullptr) return wrong(std::string(name), fmt::format("missing; expected \"{}\"", wanted));
    if (*found != Json(wanted)) unexpected(std::string(name), fmt::format("\"{}\"", wanted), *found);
  }

  void check_field(const std::string& name, const Json& value) {
    const ConfigField* field = find_config_field(name);
    if (field == nullptr) {
      std::vector<std::string> known;
      for (const ConfigField& each : config_fields()) known.emplace_back(each.name);
      return unknown(name, name, known);
    }
    if (value.is_null()) return;  // null counts as absent
    const auto read = read_value(name, field->type, value);
    if (!read) return;
    if (field->effect == Effect::kNone) {
      add(ConfigFinding::Kind::kNotImplemented, name, "has no effect here: this agent does not implement it yet");
    }
    result_.value[name] = *read;
    static const Json kSections = api::parse_json(kSectionMembers).value_or(Json::object());
    if (const Json* members = kSections.find(name)) check_section(name, value, *members);
  }

  void unknown(const std::string& path, std::string_view name, const std::vector<std::string>& known) {
    const std::string near = nearest_word(name, known).found();
    add(ConfigFinding::Kind::kTolerated, path,
        near.empty() ? std::string("unknown key") : fmt::format("unknown key; did you mean {}?", near));
  }

  /// Checks the members of a mapping against `members`, the table of known ones; a member that is null in the table has
  /// no members of its own.
  void check_section(const std::string& path, const Json& value, const Json& members) {
    if (!value.is_object() || !members.is_object()) return;
    std::vector<std::string> known;
    for (const auto& [name, below] : *members.if_object()) known.push_back(name);
    for (const auto& [name, each] : *value.if_object()) {
      const std::string at = fmt::format("{}[{}]", path, name);
      const Json* below = members.find(name);
      below == nullptr ? unknown(at, name, known) : check_section(at, each, *below);
    }
  }

  /// A string, or a plain scalar that YAML takes for something else: as it was written.
  std::optional<std::string> text_of(const std::string& path, const Json& value) const {
    if (value.is_string()) return *value.if_string();
    if (!value.is_number() && !value.is_bool()) return std::nullopt;
    std::string text = document_.origin_of(path).text;
    return text.empty() ? std::nullopt : std::optional(std::move(text));
  }

  std::optional<Json> read_text(const std::string& path, FieldType type, const Json& value) {
    const auto text = text_of(path, value);
    if (!text) {
      unexpected(path, describe(type), value);
      return std::nullopt;
    }
    if (type == FieldType::kDuration) {
      const auto duration = api::parse_duration(*text);
      if (!duration) {
        unexpected(path, describe(type), value);
        return std::nullopt;
      }
      return Json(api::format_duration(*duration));
    }
    if (type == FieldType::kQuantity && !api::parse_quantity(*text)) {
      unexpected(path, describe(type), value);
      return std::nullopt;
    }
    return Json(*text);
  }

  std::optional<Json> read_integer(const std::string& path, const Json& value) {
    if (const auto integer = value.if_int64()) {
      if (*integer >= std::numeric_limits<std::int32_t>::min() && *integer <= std::numeric_limits<std::int32_t>::max())
        return Json(*integer);
    } else if (const auto number = value.if_double(); number && std::trunc(*number) == *number &&
                                                      std::abs(*number) <= std::numeric_limits<std::int32_t>::max()) {
      return Json(static_cast<std::int64_t>(*number));
    }
    unexpected(path, describe(FieldType::kInteger), value);
    return std::nullopt;
  }

  std::optional<Json> read_map(const std::string& path, FieldType type, const Json& value) {
    if (!value.is_object()) {
      unexpected(path, describe(type), value);
      return std::nullopt;
    }
    Json map = Json::object();
    const FieldType element = type == FieldType::kQuantityMap ? FieldType::kQuantity : FieldType::kString;
    for (const auto& [key, each] : *value.if_object()) {
      if (const auto read = read_text(fmt::format("{}[{}]", path, key), element, each)) map[key] = *read;
    }
    return map;
  }

  void check_gate(const std::string& path, std::string_view name, bool is_on) {
    const FeatureGate* gate = find_gate(name);
    if (gate == nullptr)
      add(ConfigFinding::Kind::kNotImplemented, path, "has no effect here: this agent does not know the feature");
    else if (gate->locked && gate->by_default != is_on)
      add(ConfigFinding::Kind::kError, path,
          fmt::format("cannot set feature gate {} to {}, feature is locked to {}", name, is_on, gate->by_default));
  }

  std::optional<Json> read_gates(const std::string& path, const Json& value) {
    if (!value.is_object()) {
      unexpected(path, describe(FieldType::kGates), value);
      return std::nullopt;
    }
    for (const auto& [gate, each] : *value.if_object()) {
      const std::string at = fmt::format("{}[{}]", path, gate);
      if (each.is_bool())
        check_gate(at, gate, *each.if_bool());
      else
        unexpected(at, describe(FieldType::kBool), each);
    }
    return value;
  }

  std::optional<Json> read_list(const std::string& path, const Json& value) {
    if (!value.is_array()) {
      unexpected(path, describe(FieldType::kTextList), value);
      return std::nullopt;
    }
    Json list = Json::array();
    for (std::size_t i = 0; i < value.if_array()->size(); ++i) {
      const auto read = read_text(fmt::format("{}[{}]", path, i), FieldType::kString, (*value.if_array())[i]);
      if (read) list.if_array()->push_back(*read);
    }
    return list;
  }

  std::optional<Json> read_value(const std::string& path, FieldType type, const Json& value) {
    switch (type) {
      case FieldType::kBool:
        if (value.is_bool()) return value;
        break;
      case FieldType::kInteger:
        return read_integer(path, value);
      case FieldType::kNumber:
        if (const auto number = value.if_double()) return Json(*number);
        break;
      case FieldType::kString:
      case FieldType::kDuration:
      case FieldType::kQuantity:
        return read_text(path, type, value);
      case FieldType::kTextMap:
      case FieldType::kQuantityMap:
        return read_map(path, type, value);
      case FieldType::kTextList:
        return read_list(path, value);
      case FieldType::kGates:
        return read_gates(path, value);
      case FieldType::kTaints:
      case FieldType::kSequence:
        if (value.is_array()) return value;
        break;
      case FieldType::kMapping:
        if (value.is_object()) return value;
        break;
    }
    unexpected(path, describe(type), value);
    return std::nullopt;
  }

  const ConfigDocument& document_;
  CheckedConfig result_;
};

eviction::SignalMap map_at(const Json& effective, std::string_view key) {
  eviction::SignalMap map;
  const Json* found = effective.find(key);
  if (found == nullptr || !found->is_object()) return map;
  for (const auto& [signal, value] : *found->if_object()) map.emplace(signal, *value.if_string());
  return map;
}

api::ResourceList resources_at(const Json& effective, std::string_view key) {
  api::ResourceList list;
  for (const auto& [resource, amount] : map_at(effective, key)) {
    if (const auto quantity = api::parse_quantity(amount)) list.emplace(resource, *quantity);
  }
  return list;
}

Duration duration_at(const Json& effective, std::string_view key) {
  return api::parse_duration(effective.string_at({key})).value_or(Duration{});
}

std::int64_t integer_at(const Json& effective, std::string_view key) {
  const Json* found = effective.find(key);
  return found == nullptr ? 0 : found->if_int64().value_or(0);
}

bool is_true(const Json& effective, std::string_view key) {
  const Json* found = effective.find(key);
  return found != nullptr && found->if_bool().value_or(false);
}

/// Errors are in upstream's words.
Outcome check_logs_directory(std::string_view path) {
  if (!path.starts_with('/')) return invalid("podLogsDir", "pod logs path \"{}\" must be absolute path", path);
  if (std::filesystem::path(path).lexically_normal() != path || (path.size() > 1 && path.ends_with('/')))
    return invalid("podLogsDir", "pod logs path \"{}\" must be normalized", path);
  const bool ascii = std::ranges::all_of(path, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return ascii ? Outcome() : invalid("podLogsDir", "pod logs path \"{}\" must have ASCII characters only", path);
}

/// Numbers that bound something, with the words upstream refuses them in.
Outcome read_bounds(const Json& effective, AgentOptions& options) {
  options.status_images_max = integer_at(effective, "nodeStatusMaxImages");
  if (options.status_images_max < -1) {
    return invalid("nodeStatusMaxImages", "nodeStatusMaxImages (--node-status-max-images) {} must be -1 or greater",
                   options.status_images_max);
  }
  options.pods_max = integer_at(effective, "maxPods");
  if (options.pods_max < 0) {
    return invalid("maxPods", "maxPods (--max-pods) {} must not be a negative number", options.pods_max);
  }
  options.pods_per_core = integer_at(effective, "podsPerCore");
  if (options.pods_per_core < 0) {
    return invalid("podsPerCore", "podsPerCore (--pods-per-core) {} must not be a negative number",
                   options.pods_per_core);
  }
  if (const std::int64_t pids = integer_at(effective, "podPidsLimit"); pids > 0) options.pod_pids_max = pids;
  const std::int64_t port = integer_at(effective, "port");
  if (port < 0 || port > 65535) {
    return invalid("port", "port (--port) {} must be between 1 and 65535, inclusive (0: any free one)", port);
  }
  const std::int64_t healthz_port = integer_at(effective, "healthzPort");
  if (healthz_port < 0 || healthz_port > 65535) {
    return invalid("healthzPort", "healthzPort (--healthz-port) {} must be between 1 and 65535, inclusive",
                   healthz_port);
  }
  const std::int64_t read_only_port = integer_at(effective, "readOnlyPort");
  if (read_only_port < 0 || read_only_port > 65535) {
    return invalid("readOnlyPort", "readOnlyPort (--read-only-port) {} must be between 0 and 65535, inclusive",
                   read_only_port);
  }
  const std::int64_t oom_score_adj = integer_at(effective, "oomScoreAdj");
  if (oom_score_adj < -1000 || oom_score_adj > 1000) {
    return invalid("oomScoreAdj", "oomScoreAdj (--oom-score-adj) {} must be between -1000 and 1000, inclusive",
                   oom_score_adj);
  }
  if (duration_at(effective, "containerLogMonitorInterval") < seconds(3)) {
    return invalid("containerLogMonitorInterval",
                   "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s");
  }
  SPILLWAY_TRY_VOID(check_logs_directory(effective.string_at({"podLogsDir"})));
  options.container_log_files_max = integer_at(effective, "containerLogMaxFiles");
  if (options.container_log_files_max <= 1) {
    return invalid("containerLogMaxFiles", "containerLogMaxFiles must be greater than 1");
  }
  options.container_log_workers = integer_at(effective, "containerLogMaxWorkers");
  if (options.container_log_workers < 1) {
    return invalid("containerLogMaxWorkers", "containerLogMaxWorkers must be greater than or equal to 1");
  }
  options.container_log_workers = std::min(options.container_log_workers, kLogWorkersMax);
  const auto log_max = api::parse_quantity(effective.string_at({"containerLogMaxSize"}));
  options.container_log_max = log_max ? log_max->bytes() : Bytes{0};
  if (options.container_log_max <= Bytes{0}) return invalid("containerLogMaxSize", "must be positive");
  return {};
}

/// The pace of events. Without a rate it is that of a client of upstream's, without a burst upstream's default.
Outcome read_event_pace(const Json& effective, AgentOptions& options) {
  constexpr std::int64_t kClientRate = 5;
  constexpr std::int64_t kBurst = 100;
  const std::int64_t rate = integer_at(effective, "eventRecordQPS");
  const std::int64_t burst = integer_at(effective, "eventBurst");
  if (burst < 0) return invalid("eventBurst", "eventBurst (--event-burst) {} must not be a negative number", burst);
  if (rate < 0) return invalid("eventRecordQPS", "eventRecordQPS (--event-qps) {} must not be a negative number", rate);
  options.events_per_second = static_cast<float>(rate == 0 ? kClientRate : rate);
  options.events_burst = static_cast<int>(burst == 0 ? kBurst : burst);
  return {};
}

/// Durations of zero mean their default, as in a kubelet: files that kubeadm writes have many. Those of a pointer there
/// are kept.
Json without_zero_durations(const Json& value) {
  constexpr std::array kKept = {std::string_view("containerLogMonitorInterval"), std::string_view("cpuCFSQuotaPeriod")};
  constexpr std::array kNested = {std::string_view("cacheTTL"), std::string_view("cacheAuthorizedTTL"),
                                  std::string_view("cacheUnauthorizedTTL")};
  Json made = value;
  if (!made.is_object()) return made;
  for (const ConfigField& field : config_fields()) {
    const bool zero = field.type == FieldType::kDuration && made.string_at({field.name}) == "0s";
    if (zero && std::ranges::find(kKept, field.name) == kKept.end()) made.if_object()->erase(std::string(field.name));
  }
  for (const std::string_view section : {"authentication", "authorization"}) {
    Json* found = made.find(section);
    Json* webhook = found == nullptr ? nullptr : found->find("webhook");
    if (webhook == nullptr || !webhook->is_object()) continue;
    for (const std::string_view name : kNested)
      if (webhook->string_at({name}) == "0s") webhook->if_object()->erase(std::string(name));
  }
  return made;
}

Json to_json(const eviction::SignalMap& map) {
  Json object = Json::object();
  for (const auto& [signal, value] : map) object[signal] = value;
  return object;
}

}  // namespace

std::string ConfigFinding::text() const {
  std::string where = file.empty() ? std::string() : file + ":";
  if (line > 0) where += fmt::format("{}:", line);
  if (!where.empty()) where += " ";
  return path.empty() ? where + message : fmt::format("{}{}: {}", where, path, message);
}

CheckedConfig check_config(const ConfigDocument& document) {
  return Checker(document).run();
}

ConfigFile as_config_file(ConfigDocument document) {
  constexpr std::string_view kAround = "kubeletconfig";
  if (!document.value.is_object()) return {.document = std::move(document)};
  const Json* inner = document.value.find(kAround);
  if (inner != nullptr && inner->is_object() && document.value.if_object()->size() == 1) {
    Json value = *inner;
    document.value = std::move(value);
    if (document.origins) {
      document.origins = [around = std::move(document.origins), kAround](std::string_view path) {
        const std::size_t end = std::min(path.find('['), path.size());
        return around(fmt::format("{}[{}]{}", kAround, path.substr(0, end), path.substr(end)));
      };
    }
  }
  if (document.value.find("apiVersion") != nullptr || document.value.find("kind") != nullptr)
    return {.document = std::move(document)};
  document.value["apiVersion"] = kApiVersion;
  document.value["kind"] = kKind;
  return {.document = std::move(document), .has_header = false};
}

Json merge_config(Json base, const Json& over) {
  if (!base.is_object() || !over.is_object()) return over;
  for (const auto& [key, value] : *over.if_object()) {
    Json& target = base[key];
    target = target.is_object() && value.is_object() ? merge_config(std::move(target), value) : value;
  }
  return base;
}

Json apply_flags(Json base, const Json& flags) {
  if (!base.is_object()) base = Json::object();
  if (!flags.is_object()) return base;
  for (const auto& [key, value] : *flags.if_object()) {
    const ConfigField* field = find_config_field(key);
    const bool by_member = field != nullptr && (field->type == FieldType::kMapping || field->type == FieldType::kGates);
    Json& target = base[key];
    target = by_member ? merge_config(std::move(target), value) : value;
  }
  return base;
}

Json effective_config(const Json& given, std::optional<Bytes> node_memory) {
  const Json value = without_zero_durations(given);
  Json effective = Json::object({{"apiVersion", kApiVersion}, {"kind", kKind}});
  for (const ConfigField& field : config_fields()) {
    if (!field.fallback.empty()) effective[field.name] = api::parse_json(field.fallback).value_or(Json());
  }
  if (value.find("nodeStatusUpdateFrequency") != nullptr) {
    effective["nodeStatusReportFrequency"] = *value.find("nodeStatusUpdateFrequency");
  }
  const Json defaults_of_mappings = effective;
  effective = apply_flags(std::move(effective), value);
  for (const ConfigField& field : config_fields()) {
    if (field.type != FieldType::kMapping || field.fallback.empty()) continue;
    effective[field.name] = merge_config(*defaults_of_mappings.find(field.name), *effective.find(field.name));
  }
  const eviction::SignalMap defaults =
      node_memory ? hard_thresholds_for(*node_memory) : eviction::default_hard_thresholds();
  if (value.find("evictionHard") == nullptr) {
    effective["evictionHard"] = to_json(defaults);
  } else if (is_true(value, "mergeDefaultEvictionSettings")) {
    effective["evictionHard"] = merge_config(to_json(defaults), *value.find("evictionHard"));
  }
  return effective;
}

eviction::ThresholdConfig threshold_config_of(const Json& effective) {
  eviction::ThresholdConfig config{.hard = map_at(effective, "evictionHard"),
                                   .soft = map_at(effective, "evictionSoft"),
                                   .soft_grace_period = map_at(effective, "evictionSoftGracePeriod"),
                                   .minimum_reclaim = map_at(effective, "evictionMinimumReclaim"),
                                   .enforce_pods = eviction::EnforcePods::kNo};
  if (const Json* enforced = effective.find("enforceNodeAllocatable")) {
    if (std::ranges::find(*enforced->if_array(), Json("pods")) != enforced->if_array()->end())
      config.enforce_pods = eviction::EnforcePods::kYes;
  }
  return config;
}

Result<AgentOptions> options_of(const Json& effective) {
  AgentOptions options;
  options.eviction.thresholds = threshold_config_of(effective);
  if (const auto parsed = eviction::parse_thresholds(options.eviction.thresholds); !parsed) return parsed.error();
  options.eviction.pressure_transition_period = duration_at(effective, "evictionPressureTransitionPeriod");
  options.eviction.max_pod_grace_period_seconds = integer_at(effective, "evictionMaxPodGracePeriod");
  options.local_storage =
      is_true(effective, "localStorageCapacityIsolation") ? LocalStorageIsolation::kOn : LocalStorageIsolation::kOff;
  options.eviction.local_storage_limits = options.local_storage == LocalStorageIsolation::kOn
                                              ? eviction::LocalStorageLimits::kEnforced
                                              : eviction::LocalStorageLimits::kIgnored;
  if (is_true(effective, "memoryRelief")) options.eviction.relief = eviction::Relief::kOn;
  options.kube_reserved = resources_at(effective, "kubeReserved");
  options.system_reserved = resources_at(effective, "systemReserved");
  SPILLWAY_TRY(enforcement, enforcement_of(effective));
  options.enforcement = std::move(enforcement);
  options.lease_duration = seconds(integer_at(effective, "nodeLeaseDurationSeconds"));
  options.status_update_frequency = duration_at(effective, "nodeStatusUpdateFrequency");
  options.status_report_frequency = duration_at(effective, "nodeStatusReportFrequency");
  options.seccomp_default = is_true(effective, "seccompDefault");
  options.static_pod_path = effective.string_at({"staticPodPath"});
  options.static_pod_url = effective.string_at({"staticPodURL"});
  options.file_check_frequency = duration_at(effective, "fileCheckFrequency");
  options.sync_frequency = duration_at(effective, "syncFrequency");
  options.cluster_domain = effective.string_at({"clusterDomain"});
  for (const auto& [key, duration] : {std::pair("nodeLeaseDurationSeconds", options.lease_duration),
                                      std::pair("nodeStatusUpdateFrequency", options.status_update_frequency),
                                      std::pair("nodeStatusReportFrequency", options.status_report_frequency),
                                      std::pair("fileCheckFrequency", options.file_check_frequency),
                                      std::pair("syncFrequency", options.sync_frequency)}) {
    if (duration <= Duration{}) return invalid(key, "must be positive, got {}", api::format_duration(duration));
  }
  SPILLWAY_TRY_VOID(read_bounds(effective, options));
  SPILLWAY_TRY_VOID(read_event_pace(effective, options));
  if (const Json* allowed = effective.find("allowedUnsafeSysctls");
      allowed != nullptr && allowed->if_array() != nullptr) {
    for (const Json& each : *allowed->if_array()) options.allowed_unsafe_sysctls.push_back(*each.if_string());
  }
  SPILLWAY_TRY_VOID(check_resources(effective));
  SPILLWAY_TRY(restart_delay, restart_delay_max(effective));
  options.restart_delay_max = restart_delay;
  SPILLWAY_TRY(managers, managers_of(effective));
  options.managers = std::move(managers);
  if (const int reserved = options.managers.cpus.reserved.size(); reserved > 0) {
    options.kube_reserved.erase("cpu");
    options.system_reserved.insert_or_assign("cpu", api::Quantity::of_units(reserved));
  }
  SPILLWAY_TRY(shutdown, shutdown_of(effective));
  options.shutdown = std::move(shutdown);
  if (is_gate_on(effective, kPressureGate)) options.pressure_stats = PressureStats::kReported;
  if (is_gate_on(effective, kGroupsGate)) options.group_policies = SupplementalGroupPolicies::kOn;
  options.provider_id = effective.string_at({"providerID"});
  if (!is_true(effective, "registerNode")) options.registration = Registration::kNone;
  options.attach_detach =
      is_true(effective, "enableControllerAttachDetach") ? AttachDetach::kByController : AttachDetach::kByAgent;
  if (const api::Json* notifies = effective.find("kernelMemcgNotification")) {
    options.eviction.memory_watch.kernel_notifications = notifies->if_bool().value_or(true);
  }
  SPILLWAY_TRY(taints, taints_of(effective));
  options.taints = std::move(taints);
  return options;
}

}  // namespace spillway::agent
