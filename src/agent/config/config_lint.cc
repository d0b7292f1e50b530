#include "agent/config/config_lint.h"

#include "agent/config/config_refusals.h"
#include "agent/config/stock_fields.h"
#include "agent/config/stock_load.h"
#include "agent/contract/blind_zone.h"
#include "agent/node/allocatable.h"
#include "api/text/duration.h"
#include "base/bytes_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kMemory = "memory.available";

std::string text_of(Bytes amount) {
  return bytes_text(static_cast<double>(amount.count()));
}

class Linter {
 public:
  Linter(const ConfigFile& file, const LintMachine& machine, LintTarget target)
      : document_(file.document),
        has_header_(file.has_header),
        machine_(machine),
        target_(target),
        ignored_(target == LintTarget::kKubelet ? "the kubelet starts without it"
                                                : "the agent starts without it, unless --strict-config is given"),
        refusal_(fmt::format("the {} refuses to start", target == LintTarget::kKubelet ? "kubelet" : "agent")) {}

  LintReport run() {
    if (!has_header_) {
      report_.findings.push_back({LintSeverity::kWarning,
                                  0,
                                  "apiVersion",
                                  "missing, and kind too: /configz leaves them out, a file needs them",
                                  {}});
    }
    const CheckedConfig checked = check_config(document_);
    value_ = checked.value;
    for (const ConfigFinding& finding : checked.findings) {
      const bool none = finding.kind == ConfigFinding::Kind::kNotImplemented;
      if (none && target_ == LintTarget::kKubelet) continue;  // a kubelet implements it
      const bool refused = finding.kind == ConfigFinding::Kind::kError;
      report_.findings.push_back({none ? LintSeverity::kWarning : LintSeverity::kInvalid, finding.line, finding.path,
                                  finding.message,
                                  refused ? refusal_
                                  : none  ? std::string()
                                          : ignored_});
    }
    effective_ = effective_config(value_, std::nullopt);
    config_ = threshold_config_of(effective_);
    check_dropped_defaults();
    check_maps();
    check_signals_off();
    check_periods();
    check_images();
    if (const auto thresholds = eviction::parse_thresholds(config_)) {
      thresholds_ = *thresholds;
      list_thresholds();
      check_memory();
      check_softness();
      check_relief();
      check_amounts();
      check_reservations();
      if (target_ == LintTarget::kAgent) check_refusals();
    } else {
      const std::string key = guilty_key(thresholds.error().text());
      add(LintSeverity::kInvalid, key, no_amount(key).value_or(thresholds.error().text()), refusal_);
    }
    if (target_ == LintTarget::kKubelet) check_kubelet_refusals();
    std::ranges::stable_sort(report_.findings, [](const LintFinding& a, const LintFinding& b) {
      return std::tie(a.severity, a.line, a.key, a.what) < std::tie(b.severity, b.line, b.key, b.what);
    });
    return std::move(report_);
  }

 private:
  void add(LintSeverity severity, const std::string& key, std::string what, std::string why) {
    int line = 0;
    for (std::string path = key; line == 0 && !path.empty(); path = path.substr(0, path.rfind('['))) {
      line = document_.origin_of(path).line;
      if (path.find('[') == std::string::npos) break;
    }
    report_.findings.push_back({severity, line, key, std::move(what), std::move(why)});
  }

  /// Adds errors of a kubelet's own validation, for members without any other finding.
  void check_kubelet_refusals() {
    const StockFile file{.path = document_.file, .text = "file", .value = document_.value};
    const StockLoad load = load_as_kubelet({.file = file, .drop_ins = {}, .drop_in_directory = {}, .flags = {}});
    if (load.failed_stage != "validate") return;
    for (const std::string& error : load.errors) {
      const std::string key = member_in(error);
      const auto about_it = [&](const LintFinding& each) {
        return each.severity == LintSeverity::kInvalid && each.key.starts_with(key);
      };
      if (!key.empty() && std::ranges::any_of(report_.findings, about_it)) continue;
      add(LintSeverity::kInvalid, key, error, refusal_);
    }
  }

  /// The member that an error of a kubelet names first; empty: none.
  static std::string member_in(std::string_view error) {
    std::string word;
    for (const char each : error) {
      const bool is_letter = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
      if (is_letter) {
        word += each;
        continue;
      }
      if (find_stock_field(stock_fields(), word) != nullptr) return word;
      word.clear();
    }
    return {};
  }

  static std::string key_of(std::string_view map, std::string_view signal) {
    return fmt::format("{}[{}]", map, signal);
  }

  /// The entry an error of the parser is about: the one whose signal or value it names.
  std::string guilty_key(const std::string& error) const {
    for (const std::string_view map :
         {"evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"}) {
      const Json* entries = effective_.find(map);
      if (entries == nullptr || !entries->is_object()) continue;
      for (const auto& [signal, written] : *entries->if_object()) {
        eviction::ThresholdConfig alone;
        if (map == "evictionHard") alone.hard = {{signal, *written.if_string()}};
        if (!alone.hard.empty() && !eviction::parse_thresholds(alone)) return key_of(map, signal);
        if (map != "evictionHard" && error.find(signal) != std::string::npos) return key_of(map, signal);
      }
    }
    return "evictionSoft";
  }

  /// Error text for an entry whose amount does not parse; it names what was expected. nullopt: the amount parses.
  std::optional<std::string> no_amount(const std::string& key) const {
    const std::size_t bracket = key.find('[');
    if (bracket == std::string::npos) return std::nullopt;
    const std::string signal = key.substr(bracket + 1, key.size() - bracket - 2);
    const std::string written(effective_.string_at({key.substr(0, bracket), signal}));
    if (written.ends_with('%') || api::parse_quantity(written)) return std::nullopt;
    std::string what = fmt::format(
        "\"{}\" is not an amount: expected bytes with a unit, such as 100Mi, or a share, such as 10%", written);
    for (const std::string_view ending : {"iB", "B"}) {
      if (!written.ends_with(ending)) continue;
      const std::string near = written.substr(0, written.size() - ending.size()) + (ending == "iB" ? "i" : "");
      if (api::parse_quantity(near)) return what + fmt::format("; did you mean {}?", near);
    }
    return what;
  }

  bool given(std::string_view key) const { return value_.find(key) != nullptr; }

  void check_dropped_defaults() {
    if (!given("evictionHard")) return;
    std::string dropped;
    for (const auto& [signal, written] : eviction::default_hard_thresholds()) {
      if (config_.hard.contains(signal)) continue;
      dropped += fmt::format("{}{} ({})", dropped.empty() ? "" : ", ", signal, written);
    }
    if (dropped.empty()) return;
    add(LintSeverity::kDangerous, "evictionHard", "drops the defaults it does not name: " + dropped,
        "naming one signal replaces the whole map; set mergeDefaultEvictionSettings: true or name them all");
  }

  void check_maps() {
    for (const auto& [signal, grace] : config_.soft_grace_period) {
      if (config_.soft.contains(signal)) continue;
      add(LintSeverity::kWarning, key_of("evictionSoftGracePeriod", signal), "has no soft threshold to belong to",
          "the period has no effect");
    }
    for (const auto& [signal, amount] : config_.minimum_reclaim) {
      if (config_.hard.contains(signal) || config_.soft.contains(signal)) continue;
      add(LintSeverity::kWarning, key_of("evictionMinimumReclaim", signal), "has no threshold to belong to",
          "nothing is ever reclaimed by it");
    }
    if (config_.hard.empty() && config_.soft.empty()) {
      add(LintSeverity::kDangerous, "evictionHard", "there is no threshold at all",
          "under pressure only the kernel's OOM killer acts, and it does not know which pod matters");
    }
  }

  /// "0%" and "100%" turn a signal off: the parser leaves such thresholds out.
  void check_signals_off() {
    for (const auto& [map, entries] :
         {std::pair("evictionHard", &config_.hard), std::pair("evictionSoft", &config_.soft)}) {
      if (!given(map)) continue;
      for (const auto& [signal, written] : *entries) {
        if (written != "0%" && written != "100%") continue;
        add(LintSeverity::kDangerous, key_of(map, signal), fmt::format("is {}, which turns the threshold off", written),
            "nothing is evicted for this signal");
      }
    }
  }

  void check_periods() {
    const auto duration = [this](std::string_view key) {
      return api::parse_duration(effective_.string_at({key})).value_or(Duration{});
    };
    if (duration("evictionPressureTransitionPeriod") < Duration{}) {
      add(LintSeverity::kDangerous, "evictionPressureTransitionPeriod", "is negative",
          "the node's conditions never show pressure, so the scheduler continues to send pods to it");
    }
    if (given("nodeStatusUpdateFrequency") && !given("nodeStatusReportFrequency")) {
      add(LintSeverity::kWarning, "nodeStatusUpdateFrequency", "is set without nodeStatusReportFrequency",
          "the report frequency follows it, so an unchanged status is written at every update");
    }
    const Json* lease = effective_.find("nodeLeaseDurationSeconds");
    const std::int64_t lease_seconds = lease == nullptr ? 40 : lease->if_int64().value_or(40);
    if (lease_seconds <= 0) {
      add(LintSeverity::kInvalid, "nodeLeaseDurationSeconds", "must be positive", refusal_);
    } else if (lease_seconds > 50 * 4) {
      add(LintSeverity::kDangerous, "nodeLeaseDurationSeconds",
          fmt::format("renews the lease every {} s", lease_seconds / 4),
          "the node counts as failed after 50 s of silence (--node-monitor-grace-period)");
    }
    const Json* grace = effective_.find("evictionMaxPodGracePeriod");
    const std::int64_t grace_seconds = grace == nullptr ? 0 : grace->if_int64().value_or(0);
    if (!config_.soft.empty() && grace_seconds <= 0) {
      add(LintSeverity::kWarning, "evictionMaxPodGracePeriod",
          fmt::format("is {} while there are soft thresholds", grace_seconds),
          "a pod evicted softly gets one second to end, as in a hard eviction");
    } else if (grace_seconds < 0) {
      add(LintSeverity::kWarning, "evictionMaxPodGracePeriod", fmt::format("is {}, a negative time", grace_seconds),
          "it has no effect as long as there is no soft threshold; expected 0 or more seconds");
    }
  }

  void check_images() {
    const auto percent = [this](std::string_view key) { return effective_.find(key)->if_int64().value_or(0); };
    const std::int64_t high = percent("imageGCHighThresholdPercent");
    const std::int64_t low = percent("imageGCLowThresholdPercent");
    for (const auto& [key, value] :
         {std::pair("imageGCHighThresholdPercent", high), std::pair("imageGCLowThresholdPercent", low)}) {
      if (value < 0 || value > 100) add(LintSeverity::kInvalid, key, fmt::format("is {}", value), "expected 0 to 100");
    }
    if (low >= high) {
      add(LintSeverity::kInvalid, "imageGCLowThresholdPercent",
          fmt::format("is {}, not below imageGCHighThresholdPercent ({})", low, high), refusal_);
    }
  }

  std::optional<std::int64_t> capacity_of_signal(eviction::Signal signal) const {
    if (signal == eviction::Signal::kMemoryAvailable) return machine_.memory.count();
    if (signal == eviction::Signal::kNodeFsAvailable && machine_.disk) return machine_.disk->count();
    return std::nullopt;
  }

  std::optional<std::int64_t> amount_of_threshold(const eviction::Threshold& threshold) const {
    const bool share = std::holds_alternative<eviction::Fraction>(threshold.value);
    const auto capacity = capacity_of_signal(threshold.signal);
    if (share && !capacity) return std::nullopt;
    const auto amount = eviction::amount_of(threshold.value, capacity.value_or(0));
    return amount ? std::optional(amount->value()) : std::nullopt;
  }

  static bool is_configured(const eviction::Threshold& threshold) {
    return threshold.signal != eviction::Signal::kAllocatableMemoryAvailable;
  }

  void list_thresholds() {
    for (const eviction::Threshold& each : thresholds_) {
      if (!is_configured(each)) continue;
      const std::string signal(to_string(each.signal));
      const eviction::SignalMap& written = each.is_hard() ? config_.hard : config_.soft;
      const auto it = written.find(signal);
      report_.thresholds.push_back(
          {.signal = signal,
           .hard = each.is_hard(),
           .written = it == written.end() ? std::string() : it->second,
           .amount = amount_of_threshold(each),
           .grace = each.is_hard() ? std::string() : api::format_duration(each.grace_period),
           .by_default =
               each.is_hard() && (!given("evictionHard") || value_.find("evictionHard")->find(signal) == nullptr)});
    }
    for (const eviction::Signal signal : eviction::never_met(thresholds_)) {
      add(LintSeverity::kDangerous, key_of("evictionHard", to_string(signal)), "is NaN", "it can never be met");
    }
  }

  void check_memory() {
    const Bytes blind = oom_blind_zone(machine_.memory);
    // Twice the zone, in whole mebibytes.
    const Bytes enough = mebibytes((2 * blind.count() + mebibytes(1).count() - 1) / mebibytes(1).count());
    for (const eviction::Threshold& each : thresholds_) {
      if (each.signal != eviction::Signal::kMemoryAvailable || !each.is_hard()) continue;
      const auto amount = amount_of_threshold(each);
      const std::string key = given("evictionHard") ? key_of("evictionHard", kMemory) : std::string();
      if (!amount || *amount >= machine_.memory.count()) continue;
      const std::string_view what = key.empty() ? "memory.available is" : "is";
      if (Bytes{*amount} <= blind) {
        add(LintSeverity::kDangerous, key,
            fmt::format("{} {}, within the kernel's blind zone of about {}", what, text_of(Bytes{*amount}),
                        text_of(blind)),
            fmt::format("the OOM killer acts while memory.available still shows that much; use {} or more",
                        text_of(enough)));
      } else if (*amount < blind.count() * 5 / 4) {
        add(LintSeverity::kWarning, key,
            fmt::format("{} {}, only {} above the kernel's blind zone of about {}", what, text_of(Bytes{*amount}),
                        text_of(Bytes{*amount - blind.count()}), text_of(blind)),
            fmt::format("a pod that fills memory quickly is ended by the OOM killer first; use {} or more",
                        text_of(enough)));
      }
    }
  }

  /// A soft threshold has to be met before the hard one of its signal.
  void check_softness() {
    for (const eviction::Threshold& soft : thresholds_) {
      if (soft.is_hard() || !is_configured(soft)) continue;
      for (const eviction::Threshold& hard : thresholds_) {
        if (!hard.is_hard() || hard.signal != soft.signal) continue;
        const auto [low, high] = comparable(hard, soft);
        if (!low || !high || *high > *low) continue;
        add(LintSeverity::kDangerous, key_of("evictionSoft", to_string(soft.signal)),
            "is not above the hard threshold of the same signal",
            "the hard one is met first, so the grace of the soft one is never given");
      }
    }
  }

  void check_relief() {
    const Json* relief = value_.find("memoryRelief");
    if (relief == nullptr || !relief->if_bool().value_or(false)) return;
    const auto is_memory = [](const eviction::Threshold& each) {
      return each.signal == eviction::Signal::kMemoryAvailable;
    };
    if (target_ == LintTarget::kKubelet) {
      add(LintSeverity::kWarning, "memoryRelief", "is known to spillway agent only",
          "the kubelet starts and ignores it; no page cache is reclaimed before an eviction");
    } else if (std::ranges::none_of(thresholds_, is_memory)) {
      add(LintSeverity::kWarning, "memoryRelief", "has no effect without a threshold of memory.available",
          "page cache is reclaimed only near such a threshold");
    }
  }

  std::pair<std::optional<double>, std::optional<double>> comparable(const eviction::Threshold& hard,
                                                                     const eviction::Threshold& soft) const {
    const auto* hard_share = std::get_if<eviction::Fraction>(&hard.value);
    const auto* soft_share = std::get_if<eviction::Fraction>(&soft.value);
    if (hard_share != nullptr && soft_share != nullptr) return {hard_share->share, soft_share->share};
    return {amount_of_threshold(hard), amount_of_threshold(soft)};
  }

  void check_amounts() {
    for (const eviction::Threshold& each : thresholds_) {
      if (!is_configured(each)) continue;
      const std::string_view signal = to_string(each.signal);
      const std::string key = key_of(each.is_hard() ? "evictionHard" : "evictionSoft", signal);
      const auto* share = std::get_if<eviction::Fraction>(&each.value);
      const auto amount = amount_of_threshold(each);
      const auto capacity = capacity_of_signal(each.signal);
      const bool everything = (share != nullptr && share->share >= 1) || (amount && capacity && *amount >= *capacity);
      if (everything) {
        add(LintSeverity::kDangerous, key, "is everything there is, or more",
            "the node is under pressure for ever and evicts every pod it may");
      }
      if (amount && *amount == 0) add(LintSeverity::kWarning, key, "is 0", "it is never met");
      if (!each.min_reclaim || everything || !capacity || !amount) continue;
      const auto reclaim = eviction::amount_of(*each.min_reclaim, *capacity);
      if (reclaim && *amount + reclaim->value() >= *capacity) {
        add(LintSeverity::kDangerous, key_of("evictionMinimumReclaim", signal),
            "together with the threshold is everything there is",
            "once met, the threshold stays met, and pods are evicted until none is left");
      }
    }
  }

  void check_reservations() {
    api::ResourceList capacity{{"memory", api::Quantity::of_bytes(machine_.memory)}};
    if (machine_.disk) capacity.emplace("ephemeral-storage", api::Quantity::of_bytes(*machine_.disk));
    const auto resources = [this](std::string_view key) {
      api::ResourceList list;
      const Json* found = effective_.find(key);
      if (found == nullptr || !found->is_object()) return list;
      for (const auto& [resource, amount] : *found->if_object()) {
        if (const auto quantity = api::parse_quantity(*amount.if_string())) list.emplace(resource, *quantity);
      }
      return list;
    };
    const Reserved reserved{.system = resources("systemReserved"), .kube = resources("kubeReserved")};
    const api::ResourceList reservation =
        reservation_of(capacity, reserved, hard_eviction_reservation(thresholds_, capacity));
    const std::vector<std::string> over = over_reserved(capacity, reservation);
    const std::string key = given("kubeReserved")     ? "kubeReserved"
                            : given("systemReserved") ? "systemReserved"
                                                      : "evictionHard";
    for (const auto& [resource, amount] : reservation) {
      const api::Quantity& total = capacity.at(resource);
      if (std::ranges::find(over, resource) != over.end()) {
        add(LintSeverity::kInvalid, key,
            fmt::format("{} of {} reserved (system, kube and hard threshold), of {} there are", amount.to_string(),
                        resource, total.to_string()),
            refusal_);
      } else if (amount.value() > total.value() / 2) {
        add(LintSeverity::kWarning, key,
            fmt::format("{} of {} {} reserved", amount.to_string(), total.to_string(), resource),
            "pods get less than half of the machine");
      }
    }
    if (config_.enforce_pods == eviction::EnforcePods::kNo && given("enforceNodeAllocatable")) {
      add(LintSeverity::kWarning, "enforceNodeAllocatable", "does not name pods",
          "nothing keeps pods out of what is reserved");
    }
    if (over.empty()) check_room_above_soft(reservation);
  }

  /// Only hard thresholds are subtracted from allocatable: the requests of pods can reach a soft one.
  void check_room_above_soft(const api::ResourceList& reservation) {
    for (const eviction::Threshold& each : thresholds_) {
      if (each.is_hard() || each.signal != eviction::Signal::kMemoryAvailable) continue;
      const auto amount = amount_of_threshold(each);
      const auto kept = reservation.find("memory");
      const std::int64_t kept_bytes = kept == reservation.end() ? 0 : kept->second.value();
      if (!amount || *amount <= kept_bytes || *amount >= machine_.memory.count()) continue;
      add(LintSeverity::kWarning, key_of("evictionSoft", kMemory),
          fmt::format("is {}, of which only {} is kept from pods (system, kube and hard threshold)",
                      text_of(Bytes{*amount}), text_of(Bytes{kept_bytes})),
          fmt::format("pods that use what they request can meet it, and are evicted and replaced without end; reserve "
                      "{} more (systemReserved)",
                      text_of(Bytes{*amount - kept_bytes})));
    }
  }

  /// Adds the errors with which an agent would refuse to start, unless an earlier check has reported them.
  void check_refusals() {
    for (const Error& refusal : refusals_of(effective_)) {
      const bool said = std::ranges::any_of(report_.findings, [&refusal](const LintFinding& each) {
        return each.severity == LintSeverity::kInvalid && each.key == refusal.at;
      });
      if (!said) add(LintSeverity::kInvalid, refusal.at, refusal.message, refusal_);
    }
  }

  const ConfigDocument& document_;
  bool has_header_;
  const LintMachine& machine_;
  LintTarget target_;
  std::string ignored_;
  std::string refusal_;  // the consequence of an invalid value
  Json value_;
  Json effective_;
  eviction::ThresholdConfig config_;
  std::vector<eviction::Threshold> thresholds_;
  LintReport report_;
};

}  // namespace

std::string_view to_string(LintSeverity severity) {
  switch (severity) {
    case LintSeverity::kInvalid:
      return "invalid";
    case LintSeverity::kDangerous:
      return "dangerous";
    case LintSeverity::kWarning:
      return "warning";
  }
  return "";
}

LintReport lint_config(const ConfigDocument& document, const LintMachine& machine, LintTarget target) {
  const ConfigFile file = as_config_file(document);
  return Linter(file, machine, target).run();
}

}  // namespace spillway::agent
