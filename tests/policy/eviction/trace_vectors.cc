// vectors/eviction: synchronize_traces. Each trace is a manager living through a series of passes.
#include "api/codec/codec.h"
#include "policy/eviction/decide.h"
#include "policy/eviction/reading.h"
#include "policy/eviction/threshold_parse.h"
#include "support/vectors.h"

#include <algorithm>
#include <limits>
#include <map>

namespace spillway::eviction {
namespace {

using api::Json;
using support::add_vector_check;
using support::Mismatch;

SignalMap read_map(const Json& config, std::string_view key) {
  SignalMap map;
  const Json* all = config.find(key);
  if (all == nullptr) return map;
  for (const auto& [name, value] : *all->if_object()) map[name] = *value.if_string();
  return map;
}

PassConfig read_config(const Json& config) {
  ThresholdConfig thresholds{.hard = read_map(config, "evictionHard"),
                             .soft = read_map(config, "evictionSoft"),
                             .soft_grace_period = read_map(config, "evictionSoftGracePeriod"),
                             .minimum_reclaim = read_map(config, "evictionMinimumReclaim"),
                             .enforce_pods = EnforcePods::kNo};
  for (const Json& part : array(config, "enforceNodeAllocatable")) {
    if (*part.if_string() == "pods") thresholds.enforce_pods = EnforcePods::kYes;
  }
  return {.thresholds = parse_thresholds(thresholds).value(),
          .pressure_transition_period = seconds(integer(config, "pressureTransitionPeriodSeconds")),
          .max_pod_grace_period_seconds = integer(config, "maxPodGracePeriodSeconds"),
          .local_storage_limits = flag(config, "localStorageCapacityIsolation") ? LocalStorageLimits::kEnforced
                                                                                : LocalStorageLimits::kIgnored};
}

/// Adds the space that a clean-up frees to the free space, up to the capacity.
void free_space(const Json& effect, Json& summary) {
  const std::map<std::string, std::vector<std::string_view>, std::less<>> places{
      {"nodefs", {"node", "fs"}},
      {"imagefs", {"node", "runtime", "imageFs"}},
      {"containerfs", {"node", "runtime", "containerFs"}}};
  for (const Json& name : array(effect, "fs")) {
    Json* fs = &summary;
    for (const std::string_view part : places.find(*name.if_string())->second) {
      fs = fs == nullptr ? nullptr : fs->find(part);
    }
    if (fs == nullptr) continue;
    const auto raise = [&](std::string_view key, std::string_view limit, std::string_view by) {
      Json* value = fs->find(key);
      const Json* most = fs->find(limit);
      if (value == nullptr || most == nullptr) return;
      const std::uint64_t freed = value->if_uint64().value_or(0) + static_cast<std::uint64_t>(integer(effect, by));
      *value = Json(std::min(freed, most->if_uint64().value_or(0)));
    };
    raise("availableBytes", "capacityBytes", "freeBytes");
    raise("inodesFree", "inodes", "freeInodes");
  }
}

/// A manager and the world of one trace.
class Trace {
 public:
  explicit Trace(const Json& row)
      : config_document_(*row.find("config")),
        config_(read_config(config_document_)),
        thresholds_(array(row, "thresholds")) {
    for (const Json& pod : array(row, "pods")) {
      api::Pod decoded = api::decode<api::Pod>(pod).value();
      const std::string uid = decoded.metadata.uid;
      pods_.emplace(uid, std::move(decoded));
    }
  }

  std::optional<Mismatch> tick(const Json& tick) {
    if (tick.find("activePods") != nullptr) active_ = array(tick, "activePods");
    if (flag(tick, "noActivePods")) active_.clear();
    const Json* want = tick.find("outPreApplied");
    if (want == nullptr) want = tick.find("out");
    Json got = run(tick);
    return compare_tick(*want, got);
  }

 private:
  Json run(const Json& tick) {
    Json outcome = Json::object({{"evicted", Json::array()}});
    std::vector<Threshold> past_grace;
    bool failed = false;
    const bool nothing_to_do =
        config_.thresholds.empty() && config_.local_storage_limits == LocalStorageLimits::kIgnored;
    if (!nothing_to_do && !state_.layout) {
      failed = flag(tick, "imageFsProbeFails");
      if (!failed) {
        StorageLayout layout = read_layout(config_document_);
        if (flag(config_document_, "splitProbeFails")) layout.split_container_fs = false;
        adopt_layout(config_, layout, state_);
      }
    }
    // The summary of a tick may leave out its pods: those of the last one count.
    Json summary;
    if (const Json* given = tick.find("summary")) {
      summary = *given;
      if (const Json* pods = summary.find("pods")) last_pods_ = *pods;
      if (!last_pods_.is_null()) summary["pods"] = last_pods_;
    }
    if (!nothing_to_do && !failed && !flag(tick, "summaryError")) {
      past_grace = pass(tick, summary, outcome);
      remembered_ = past_grace;
    } else {
      past_grace = remembered_;
    }
    return Json::object({{"conditions", conditions()},
                         {"thresholdsMet", past_grace_indices(past_grace)},
                         {"firstObservedAt", first_observed()},
                         {"error", failed},
                         {"outcome", outcome}});
  }

  std::vector<Threshold> pass(const Json& tick, Json& summary_document, Json& outcome) {
    const Now now{at_seconds(integer(tick, "now")), WallTime(seconds(integer(tick, "now")))};
    std::vector<const api::Pod*> active;
    for (const Json& uid : active_) active.push_back(&pods_.at(*uid.if_string()));
    const api::Summary summary = api::decode<api::Summary>(summary_document).value();
    PassResult result = observe_pressure(config_, std::move(state_), summary, active, now);
    if (result.pending) {
      const bool reclaims = !result.pending->reclaim.empty();
      for (const ReclaimAction action : result.pending->reclaim) {
        const bool images = action == ReclaimAction::kImages;
        Json& calls = outcome[images ? "imageGCCalls" : "containerGCCalls"];
        calls = Json(calls.if_int64().value_or(0) + 1);
        const Json* effect = tick.at({"gc", images ? "image" : "container"});
        if (effect != nullptr && !flag(*effect, "error")) free_space(*effect, summary_document);
      }
      const api::Summary after = api::decode<api::Summary>(summary_document).value();
      const bool readable = reclaims && !flag(tick, "summaryErrorAfterGC");
      choose_victim(config_, result, summary, active, readable ? &after : nullptr, now);
    }
    state_ = std::move(result.state);
    describe(result, outcome);
    return result.past_grace;
  }

  static void count(Json& outcome, std::string_view metric, std::string_view label) {
    Json& value = outcome[metric][label];
    value = Json(value.if_int64().value_or(0) + 1);
  }

  static void describe(const PassResult& result, Json& outcome) {
    for (const EvictPod& action : result.actions) {
      Json evicted = Json::object({{"uid", action.uid},
                                   {"gracePeriodOverride", action.grace_period_seconds},
                                   {"phase", "Failed"},
                                   {"reason", "Evicted"},
                                   {"message", action.message}});
      if (!action.annotations.empty()) {
        for (const auto& [key, value] : action.annotations) evicted.make({"annotations", key}) = value;
      }
      if (action.disruption_target) {
        evicted["condition"] =
            Json::object({{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "TerminationByKubelet"}});
      }
      outcome["evicted"].if_array()->push_back(std::move(evicted));
      count(outcome, "evictionsMetric", action.metric_label);
    }
    if (!result.node_event.empty()) outcome["nodeEvent"] = result.node_event;
    for (const auto& [signal, age] : result.stats_ages) count(outcome, "statsAgeMetric", to_string(signal));
  }

  Json conditions() const {
    Json names = Json::array();
    for (const Condition condition : state_.conditions.list()) names.if_array()->push_back(to_string(condition));
    return names;
  }

  Json past_grace_indices(const std::vector<Threshold>& past_grace) const {
    Json indices = Json::array();
    for_each_threshold([&](std::int64_t index, const Threshold& threshold) {
      if (contains(past_grace, threshold)) indices.if_array()->push_back(index);
    });
    return indices;
  }

  Json first_observed() const {
    Json observed = Json::object();
    for_each_threshold([&](std::int64_t index, const Threshold& threshold) {
      if (const auto since = state_.grace.first_observed(threshold)) {
        observed[std::to_string(index)] = std::chrono::floor<seconds>(since->time_since_epoch()).count();
      }
    });
    return observed;
  }

  template <typename Visit>
  void for_each_threshold(Visit visit) const {
    for (std::size_t i = 0; i < thresholds_.size(); ++i) {
      if (flag(thresholds_[i], "overridden")) continue;
      if (const auto threshold = read_threshold(thresholds_[i])) visit(static_cast<std::int64_t>(i), *threshold);
    }
  }

  static Json sorted(Json list, bool by_uid) {
    std::ranges::sort(*list.if_array(), {}, [&](const Json& each) {
      return by_uid ? std::string(each.string_at({"uid"})) : api::to_text(each);
    });
    return list;
  }

  static std::optional<Mismatch> compare_tick(const Json& want, const Json& got) {
    const Json* conditions = want.find("conditions");
    const Json* crossed = want.find("thresholdsMet");
    const Json* since = want.find("firstObservedAt");
    const bool same_state =
        (conditions == nullptr ? Json::array() : *conditions) == *got.find("conditions") &&
        sorted(crossed == nullptr ? Json::array() : *crossed, false) == sorted(*got.find("thresholdsMet"), false) &&
        (since == nullptr ? Json::object() : *since) == *got.find("firstObservedAt") &&
        flag(want, "error") == flag(got, "error");
    Json outcome = *got.find("outcome");
    outcome["evicted"] = sorted(outcome["evicted"], true);
    const bool allowed = std::ranges::any_of(array(want, "outcomes"), [&](const Json& each) {
      Json one = each;
      one["evicted"] = sorted(one["evicted"].is_null() ? Json::array() : one["evicted"], true);
      return one == outcome;
    });
    if (same_state && allowed) return std::nullopt;
    return Mismatch{api::to_text(want), api::to_text(got)};
  }

  Json config_document_;
  PassConfig config_;
  Json::Array thresholds_;
  std::map<std::string, api::Pod> pods_;
  Json::Array active_;
  Json last_pods_;
  PassState state_;
  std::vector<Threshold> remembered_;
};

std::optional<Mismatch> synchronize(const Json& row) {
  Trace trace(row);
  std::size_t number = 0;
  for (const Json& tick : array(row, "ticks")) {
    if (auto mismatch = trace.tick(tick)) {
      mismatch->want = fmt::format("tick {}: {}", number, mismatch->want);
      return mismatch;
    }
    ++number;
  }
  return std::nullopt;
}

const bool kTraces = add_vector_check("eviction/synchronize_traces", synchronize);

}  // namespace
}  // namespace spillway::eviction
