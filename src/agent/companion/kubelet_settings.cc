#include "agent/companion/kubelet_settings.h"

#include "agent/config/kubelet_config.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::array<std::string_view, 4> kThresholdKeys{"evictionHard", "evictionSoft", "evictionSoftGracePeriod",
                                                         "evictionMinimumReclaim"};
constexpr std::array<std::string_view, 4> kOtherKeys{"evictionPressureTransitionPeriod", "evictionMaxPodGracePeriod",
                                                     "enforceNodeAllocatable", "mergeDefaultEvictionSettings"};
constexpr std::string_view kRuntimeKey = "containerRuntimeEndpoint";
constexpr std::array<std::string_view, 3> kPlainKeys{"kind", "apiVersion", kRuntimeKey};
constexpr std::string_view kScheme = "unix://";
constexpr std::size_t kSocketPathMax = 107;

bool is_companions(std::string_view name, Disks disks) {
  const auto signal = eviction::parse_signal(name);
  if (!signal) return false;
  return disks == Disks::kWatched || eviction::condition_of(*signal) != eviction::Condition::kDiskPressure;
}

void keep_companions(eviction::SignalMap& map, Disks disks) {
  std::erase_if(map, [disks](const auto& entry) { return !is_companions(entry.first, disks); });
}

bool names(const api::Json& config, std::string_view key) {
  const api::Json* value = config.find(key);
  return value != nullptr && !value->is_null();
}

template <std::size_t N>
void copy_keys(const std::array<std::string_view, N>& keys, const api::Json& from, api::Json& to) {
  for (const std::string_view key : keys) {
    if (names(from, key)) to[std::string(key)] = *from.find(key);
  }
}

Outcome check_own(const api::Json& own) {
  const api::Json::Object* members = own.if_object();
  if (members == nullptr) return {};
  for (const auto& [key, value] : *members) {
    const auto is_key = [&key](std::string_view each) { return each == key; };
    if (std::ranges::any_of(kPlainKeys, is_key) || std::ranges::any_of(kOtherKeys, is_key)) continue;
    if (std::ranges::none_of(kThresholdKeys, is_key)) {
      return invalid(key, "means nothing with --companion: the kubelet runs the node, a companion evicts");
    }
    const api::Json::Object* signals = value.if_object();
    if (signals == nullptr) continue;
    for (const auto& [signal, amount] : *signals) {
      if (eviction::parse_signal(signal) && !is_companions(signal, disks_of(own))) {
        return invalid(
            std::string(key) + "[" + std::string(signal) + "]",
            "a companion evicts for disks only with --container-runtime-endpoint, because the runtime knows the disk "
            "usage of pods; without it use memory.available, allocatableMemory.available or pid.available");
      }
    }
  }
  return {};
}

/// A threshold that is reached before the kubelet's `theirs`: twice the amount or share.
std::string earlier_than(const eviction::Threshold& theirs) {
  if (const auto* share = std::get_if<eviction::Fraction>(&theirs.value)) {
    return fmt::format("{:g}%", std::min(static_cast<double>(share->share) * 200, 100.0));
  }
  api::Quantity twice = std::get<api::Quantity>(theirs.value);
  twice += std::get<api::Quantity>(theirs.value);
  return twice.to_string();
}

/// The path of the socket that this member names; empty: it names none.
Result<std::string> socket_at(const api::Json& own, std::string_view key) {
  if (!names(own, key)) return std::string();
  const std::string endpoint(own.string_at({key}));
  const std::string path = endpoint.starts_with(kScheme) ? endpoint.substr(kScheme.size()) : endpoint;
  if (!path.starts_with('/'))
    return invalid(std::string(key), "expected unix:///PATH of a socket, got \"{}\"", endpoint);
  if (path.size() > kSocketPathMax) {
    return invalid(std::string(key), "the path of a socket has at most {} bytes, got \"{}\"", kSocketPathMax, endpoint);
  }
  return path;
}

}  // namespace

Result<KubeletSettings> parse_configz(const api::Json& configz) {
  const api::Json* config = configz.find("kubeletconfig");
  if (config == nullptr || config->if_object() == nullptr) {
    return invalid("/configz", "expected {{\"kubeletconfig\": {{...}}}} of a kubelet");
  }
  KubeletSettings settings;
  settings.config = *config;
  api::Json thresholds = api::Json::object();
  copy_keys(kThresholdKeys, *config, thresholds);
  copy_keys(kOtherKeys, *config, thresholds);
  settings.thresholds = threshold_config_of(effective_config(thresholds, std::nullopt));
  if (const auto parsed = eviction::parse_thresholds(settings.thresholds); !parsed) {
    return invalid("/configz", "{}", parsed.error().text());
  }
  settings.cgroup_root = config->string_at({"cgroupRoot"});
  const std::string driver(config->string_at({"cgroupDriver"}));
  if (!driver.empty()) {
    const auto known = parse_cgroup_driver(driver);
    if (!known) return invalid("/configz", "cgroupDriver: \"{}\" is neither cgroupfs nor systemd", driver);
    settings.driver = *known;
  }
  if (const auto logs = config->string_at({"podLogsDir"}); !logs.empty()) settings.log_directory = logs;
  return settings;
}

Result<std::string> runtime_socket(const api::Json& own) {
  return socket_at(own, kRuntimeKey);
}

Result<std::string> image_socket(const api::Json& own) {
  return socket_at(own, "imageServiceEndpoint");
}

Disks disks_of(const api::Json& own) {
  return names(own, kRuntimeKey) ? Disks::kWatched : Disks::kLeftToKubelet;
}

Result<EvictionOptions> companion_eviction(const api::Json& own, const KubeletSettings* kubelet) {
  SPILLWAY_TRY_VOID(check_own(own));
  if (const auto socket = runtime_socket(own); !socket) return socket.error();
  const bool named = names(own, "evictionHard") || names(own, "evictionSoft");
  api::Json config = api::Json::object();
  if (kubelet != nullptr) {
    copy_keys(kOtherKeys, kubelet->config, config);
    if (!named) copy_keys(kThresholdKeys, kubelet->config, config);
  }
  if (named && !names(own, "evictionHard")) config["evictionHard"] = api::Json::object();
  config = apply_flags(std::move(config), own);
  SPILLWAY_TRY(options, options_of(effective_config(config, std::nullopt)));
  EvictionOptions eviction = std::move(options.eviction);
  eviction.local_storage_limits = eviction::LocalStorageLimits::kIgnored;
  eviction::ThresholdConfig& thresholds = eviction.thresholds;
  for (auto* map : {&thresholds.hard, &thresholds.soft, &thresholds.soft_grace_period, &thresholds.minimum_reclaim}) {
    keep_companions(*map, disks_of(own));
  }
  if (thresholds.hard.empty() && thresholds.soft.empty()) {
    return invalid("--eviction-hard", "no threshold is left for the companion: name one, e.g. memory.available<200Mi");
  }
  return eviction;
}

Outcome check_clearance(const eviction::ThresholdConfig& ours, const KubeletSettings& kubelet,
                        const eviction::Capacities& capacities) {
  SPILLWAY_TRY(mine, eviction::parse_thresholds(ours));
  SPILLWAY_TRY(theirs, eviction::parse_thresholds(kubelet.thresholds));
  const auto overlap = eviction::find_overlap(mine, theirs, capacities);
  if (!overlap) return {};
  // The copies for all pods together follow memory.available.
  const bool copied = overlap->ours.signal == eviction::Signal::kAllocatableMemoryAvailable &&
                      !ours.hard.contains("allocatableMemory.available");
  const auto name_of = [copied](const eviction::Threshold& threshold) {
    return std::string(copied ? "memory.available" : to_string(threshold.signal));
  };
  const bool hard = overlap->theirs.is_hard();
  return Error{ErrorCode::kConflict,
               fmt::format("{} would not come before the kubelet's {}, and both would evict: give an earlier one "
                           "(--eviction-{}='{}<{}'), switch the kubelet's off ({}: {{{}: \"0%\"}}), or only watch "
                           "(--shadow)",
                           eviction::text_of(overlap->ours), eviction::text_of(overlap->theirs), hard ? "hard" : "soft",
                           name_of(overlap->ours), earlier_than(overlap->theirs),
                           hard ? "evictionHard" : "evictionSoft", name_of(overlap->theirs)),
               "--companion"};
}

}  // namespace spillway::agent
