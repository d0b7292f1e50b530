// vectors/eviction: threshold_parse, containerfs_thresholds, thresholds_met, threshold_state, wait_cleanup.
#include "policy/eviction/cleanup_wait.h"
#include "policy/eviction/conditions.h"
#include "policy/eviction/containerfs.h"
#include "policy/eviction/grace.h"
#include "policy/eviction/reading.h"
#include "policy/eviction/threshold_parse.h"
#include "support/vectors.h"

#include <algorithm>
#include <bit>

namespace spillway::eviction {
namespace {

using api::Json;
using support::add_vector_check;
using support::compare;
using support::Mismatch;

SignalMap read_map(const Json& in, std::string_view key) {
  SignalMap map;
  const Json* all = in.find(key);
  if (all == nullptr || all->if_object() == nullptr) return map;
  for (const auto& [name, value] : *all->if_object()) map[name] = *value.if_string();
  return map;
}

/// The kind of an error, found in its text.
std::string_view kind_of(std::string_view text, std::string_view step) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (has("unsupported eviction signal")) return "unsupported-signal";
  if (has("must be >= 0%")) return "percentage-negative";
  if (has("must be <= 100%")) return "percentage-over-100";
  if (has("eviction percentage minimum reclaim")) return "min-reclaim-percentage-not-positive";
  if (has("negative eviction minimum reclaim")) return "min-reclaim-negative";
  if (has("must be a positive value")) return "grace-period-negative";
  if (has("grace period must be specified")) return "grace-period-missing";
  if (has("must be positive")) return "quantity-not-positive";
  if (has("strconv.ParseFloat")) return "bad-percentage";
  if (has("duration")) return "bad-duration";
  return step;
}

bool is_library_text(std::string_view text) {
  return text.starts_with("strconv.") || text.starts_with("time:") || text.starts_with("quantities must") ||
         text.starts_with("unable to parse");
}

bool lists(const Json& out, std::string_view key, std::string_view wanted) {
  const Json::Array& all = array(out, key);
  return std::ranges::any_of(all, [&](const Json& each) { return *each.if_string() == wanted; });
}

std::vector<std::string> sorted_signatures(const std::vector<Threshold>& thresholds) {
  std::vector<std::string> all;
  for (const Threshold& threshold : thresholds) all.push_back(signature(threshold));
  std::ranges::sort(all);
  return all;
}

std::optional<Mismatch> compare_lists(const std::vector<std::string>& want, const std::vector<std::string>& got) {
  if (want == got) return std::nullopt;
  return Mismatch{fmt::format("{}", fmt::join(want, "; ")), fmt::format("{}", fmt::join(got, "; "))};
}

std::optional<Mismatch> parse_config(const Json& in, const Json& out) {
  ThresholdConfig config{.hard = read_map(in, "evictionHard"),
                         .soft = read_map(in, "evictionSoft"),
                         .soft_grace_period = read_map(in, "evictionSoftGracePeriod"),
                         .minimum_reclaim = read_map(in, "evictionMinimumReclaim"),
                         .enforce_pods = EnforcePods::kNo};
  if (lists(in, "enforceNodeAllocatable", "pods")) config.enforce_pods = EnforcePods::kYes;
  const auto parsed = parse_thresholds(config);
  if (!parsed) {
    const std::string& text = parsed.error().message;
    if (flag(out, "ok")) return Mismatch{"ok", text};
    if (!lists(out, "errorKinds", kind_of(text, "bad-quantity"))) return Mismatch{api::to_text(out), text};
    const bool exact =
        std::ranges::none_of(array(out, "errors"), [](const Json& each) { return is_library_text(*each.if_string()); });
    if (exact && !lists(out, "errors", text)) return Mismatch{api::to_text(out), text};
    return std::nullopt;
  }
  if (!flag(out, "ok")) return Mismatch{api::to_text(out), "ok"};
  return compare_lists(sorted_signatures(read_thresholds(out, "thresholds")), sorted_signatures(*parsed));
}

std::optional<Mismatch> parse_flag(const Json& in, const Json& out, PairSyntax syntax) {
  SignalFlag flag_value(syntax, {{"default.entry", "1"}});
  for (const Json& argument : array(in, "args")) {
    const Outcome added = flag_value.add(*argument.if_string());
    if (added) continue;
    if (lists(out, "errors", added.error().message)) return std::nullopt;
    return Mismatch{api::to_text(out), added.error().message};
  }
  Json map = Json::object();
  for (const auto& [key, value] : flag_value.entries()) map[key] = value;
  return compare(out, Json::object({{"ok", true}, {"map", map}}));
}

std::optional<Mismatch> threshold_parse(const Json& row) {
  const Json& in = *row.find("in");
  const Json& out = *row.find("out");
  const std::string_view fn = row.string_at({"fn"});
  if (fn == "parseConfig") return parse_config(in, out);
  return parse_flag(in, out, fn == "langleFlag" ? PairSyntax::kLessThan : PairSyntax::kEquals);
}

std::optional<Mismatch> containerfs(const Json& row) {
  const Json& in = *row.find("in");
  const Json& out = *row.find("out");
  const DerivedThresholds derived = derive_containerfs(read_thresholds(in, "thresholds"), read_layout(in));
  if (derived.warning != out.string_at({"warning"})) {
    return Mismatch{std::string(out.string_at({"warning"})), derived.warning};
  }
  return compare_lists(sorted_signatures(read_thresholds(out, "effective")), sorted_signatures(derived.thresholds));
}

std::optional<Mismatch> check_crossed(const Json& row) {
  const Json& in = *row.find("in");
  const Json& out = *row.find("out");
  if (row.string_at({"fn"}) == "thresholdQuantity") {
    const Fraction share = parse_percentage(in.string_at({"percentageText"})).value();
    const api::Quantity amount = amount_of(share, integer(in, "capacity")).value();
    return compare(out, Json::object({{"percentageBits", std::int64_t{std::bit_cast<std::uint32_t>(share.share)}},
                                      {"quantity", amount.value()},
                                      {"string", amount.to_string()}}));
  }
  const std::vector<Threshold> all = read_thresholds(in, "thresholds");
  const Observations seen = read_observations(in, "observations");
  return compare(
      out,
      Json::object({{"met", indices_of(all, thresholds_met(all, seen, Reclaim::kWithout))},
                    {"metEnforcingMinReclaim", indices_of(all, thresholds_met(all, seen, Reclaim::kWithMinimum))}}));
}

std::optional<Mismatch> updated_stats(const Json& in, const Json& out) {
  const std::vector<Threshold> all = read_thresholds(in, "thresholds");
  const Observations seen = read_observations(in, "observations");
  const Observations last = read_observations(in, "lastObservations");
  std::vector<Threshold> updated;
  std::ranges::copy_if(all, std::back_inserter(updated),
                       [&](const Threshold& threshold) { return is_fresh(threshold.signal, seen, last); });
  return compare(out, Json::object({{"updated", indices_of(all, updated)}}));
}

std::optional<Mismatch> merged(const Json& in, const Json& out) {
  const std::vector<Threshold> all = read_thresholds(in, "thresholds");
  const std::vector<Threshold> together =
      merge_thresholds(pick(all, read_indices(in, "a")), pick(all, read_indices(in, "b")));
  return compare(out, Json::object({{"merged", indices_of(all, together)}}));
}

std::optional<Mismatch> first_observed(const Json& in, const Json& out) {
  const std::vector<Threshold> all = read_thresholds(in, "thresholds");
  const Instant now = at_seconds(integer(in, "now"));
  GraceTracker tracker;
  const Json* previous = in.find("previousFirstObservedAt");
  if (previous != nullptr) {
    for (const auto& [index, at] : *previous->if_object()) {
      tracker.restore(all.at(std::stoul(index)), at_seconds(*at.if_int64()));
    }
  }
  const std::vector<Threshold> crossed_now = pick(all, read_indices(in, "met"));
  tracker.update(crossed_now, now);
  Json observed = Json::object();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto since = tracker.first_observed(all[i]);
    if (since) observed[std::to_string(i)] = std::chrono::floor<seconds>(since->time_since_epoch()).count();
  }
  return compare(out, Json::object({{"firstObservedAt", observed},
                                    {"graceMet", indices_of(all, tracker.past_grace(crossed_now, now))}}));
}

std::optional<Mismatch> grace_boundary(const Json& in, const Json& out) {
  Threshold threshold{.signal = Signal::kMemoryAvailable,
                      .value = api::Quantity::of_units(1),
                      .grace_period = nanoseconds(integer(in, "gracePeriodNanos")),
                      .min_reclaim = {}};
  const std::vector<Threshold> all{threshold};
  Json got = Json::object();
  for (const auto& [elapsed, want] : *out.find("metAfterElapsedNanos")->if_object()) {
    GraceTracker tracker;
    tracker.update(all, Instant{});
    const Instant later = Instant{} + nanoseconds(std::stoll(elapsed));
    tracker.update(all, later);
    got[elapsed] = !tracker.past_grace(all, later).empty();
  }
  return compare(*out.find("metAfterElapsedNanos"), got);
}

Json names_of(const ConditionSet& conditions, bool alphabetical) {
  std::vector<std::string> names;
  for (const Condition condition : conditions.list()) names.emplace_back(to_string(condition));
  if (alphabetical) std::ranges::sort(names);
  Json list = Json::array();
  for (std::string& name : names) list.if_array()->push_back(Json(std::move(name)));
  return list;
}

Condition condition_named(std::string_view name) {
  return *std::ranges::find(kConditions, name, [](Condition condition) { return to_string(condition); });
}

std::optional<Mismatch> node_conditions(const Json& in, const Json& out) {
  ConditionClock clock;
  if (const Json* previous = in.find("previousLastObservedAt")) {
    for (const auto& [name, at] : *previous->if_object()) {
      clock.restore(condition_named(name), at_seconds(*at.if_int64()));
    }
  }
  const Instant now = at_seconds(integer(in, "now"));
  const ConditionSet observed = conditions_of(read_thresholds(in, "thresholds"));
  clock.observe(observed, now);
  Json last = Json::object();
  for (const Condition condition : kConditions) {
    const auto seen = clock.last_seen(condition);
    if (seen) last[to_string(condition)] = std::chrono::floor<seconds>(seen->time_since_epoch()).count();
  }
  Json want_observed = *out.find("observedNow");  // in order of appearance; ours is fixed
  std::ranges::sort(*want_observed.if_array(), {}, [](const Json& each) { return *each.if_string(); });
  Json want = out;
  want["observedNow"] = want_observed;
  const Duration period = seconds(integer(in, "pressureTransitionPeriodSeconds"));
  return compare(want, Json::object({{"observedNow", names_of(observed, true)},
                                     {"lastObservedAt", last},
                                     {"reported", names_of(clock.reported(now, period), true)}}));
}

std::optional<Mismatch> priority(const Json& in, const Json& out) {
  const std::vector<Threshold> all = read_thresholds(in, "thresholds");
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return urgency(all[a], all[b], Observations{}) < 0; });
  const std::vector<std::size_t> allowed = read_indices(out, "firstAnyOf");
  const bool right = std::ranges::find(allowed, order.front()) != allowed.end() &&
                     lists(out, "resourceAnyOf", resource_of(all[order.front()].signal));
  if (right) return std::nullopt;
  return Mismatch{api::to_text(out), fmt::format("{}", order.front())};
}

std::optional<Mismatch> threshold_state(const Json& row) {
  const Json& in = *row.find("in");
  const Json& out = *row.find("out");
  const std::string_view fn = row.string_at({"fn"});
  if (fn == "thresholdsUpdatedStats") return updated_stats(in, out);
  if (fn == "mergeThresholds") return merged(in, out);
  if (fn == "firstObservedAndGrace") return first_observed(in, out);
  if (fn == "graceBoundary") return grace_boundary(in, out);
  if (fn == "nodeConditions") return node_conditions(in, out);
  if (fn == "evictionPriority") return priority(in, out);
  return Mismatch{"a known fn", std::string(fn)};
}

/// The wait as upstream polls it: once a second, first after one second.
std::optional<Mismatch> wait_cleanup(const Json& row) {
  const CleanupWait wait{.since = Instant{}};
  for (std::int64_t second = 1;; ++second) {
    const bool gone = std::ranges::all_of(array(*row.find("in"), "cleanedUpAfterSeconds"),
                                          [&](const Json& each) { return *each.if_int64() <= second; });
    const WaitState state = wait.evaluate(gone ? Cleanup::kFinished : Cleanup::kUnfinished, at_seconds(second));
    if (state == WaitState::kWaiting) continue;
    return compare(*row.find("out"),
                   Json::object({{"returnsAfterSeconds", second}, {"timedOut", state == WaitState::kTimedOut}}));
  }
}

const bool kParse = add_vector_check("eviction/threshold_parse", threshold_parse);
const bool kContainerfs = add_vector_check("eviction/containerfs_thresholds", containerfs);
const bool kCrossed = add_vector_check("eviction/thresholds_met", check_crossed);
const bool kState = add_vector_check("eviction/threshold_state", threshold_state);
const bool kWait = add_vector_check("eviction/wait_cleanup", wait_cleanup);

}  // namespace
}  // namespace spillway::eviction
