// The small files of vectors/lifecycle: one rule, one input, one output.
#include "policy/lifecycle/condition_taints.h"
#include "policy/lifecycle/rate_limited_queue.h"
#include "policy/lifecycle/rate_limiter.h"
#include "policy/lifecycle/taint_eviction.h"
#include "policy/lifecycle/zone.h"
#include "support/vectors.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::lifecycle {
namespace {

using api::Json;
using support::add_vector_check;
using support::compare;
using support::Mismatch;

std::int64_t integer(const Json& in, std::string_view key) {
  const Json* value = in.find(key);
  return value == nullptr ? 0 : value->if_int64().value_or(0);
}

std::optional<float> single(const Json& in, std::string_view key) {
  const Json* value = in.find(key);
  if (value == nullptr) return std::nullopt;
  return static_cast<float>(value->if_double().value_or(0));
}

Instant at_ns(std::int64_t count) {
  return Instant(nanoseconds(count));
}

BucketKind bucket_kind(const Json& in) {
  return in.string_at({"limiter"}) == "juju" ? BucketKind::kTicks : BucketKind::kContinuous;
}

api::StringMap labels_of(const Json& in) {
  api::StringMap labels;
  const Json* all = in.find("labels");
  if (all == nullptr || all->if_object() == nullptr) return labels;
  for (const auto& [key, value] : *all->if_object()) labels.emplace(key, *value.if_string());
  return labels;
}

/// Rates are equal as single-precision numbers.
Json single_text(float rate) {
  return Json(fmt::format("{}", rate));
}

std::optional<Mismatch> token_bucket(const Json& row) {
  const Json& in = *row.find("input");
  TokenBucket bucket(bucket_kind(in), single(in, "qps").value(), static_cast<int>(integer(in, "burst")), at_ns(0));
  Json::Array accepted;
  for (const Json& call : *in.find("calls_ns")->if_array())
    accepted.emplace_back(bucket.try_take(at_ns(*call.if_int64())));
  return compare(*row.find("expected"), Json::object({{"accepted", Json(accepted)}}));
}

Json::Array queued(const RateLimitedQueue& queue) {
  Json::Array names;
  for (const auto* entry : queue.entries()) names.emplace_back(entry->name);
  return names;
}

Json::Array process(RateLimitedQueue& queue, const Json* fail, Instant now) {
  Json::Array processed;
  while (auto entry = queue.take(now)) {
    const Json* wait = fail != nullptr ? fail->find(entry->name) : nullptr;
    processed.push_back(Json::array({Json(entry->name), Json(wait == nullptr)}));
    if (wait != nullptr) queue.put_back(*std::move(entry), nanoseconds(*wait->if_int64()), now);
  }
  return processed;
}

std::optional<Mismatch> rate_limited_queue(const Json& row) {
  const Json& in = *row.find("input");
  RateLimitedQueue queue(RateLimiter(bucket_kind(in), single(in, "qps").value_or(0),
                                     static_cast<int>(integer(in, "burst")), at_ns(0),
                                     RateLimiter::Stopped::kReportsOne));
  Json::Array results;
  for (const Json& op : *in.find("ops")->if_array()) {
    const Instant now = at_ns(integer(op, "at_ns"));
    const std::string_view kind = op.string_at({"op"});
    Json result = Json::object();
    if (kind == "add") {
      result["added"] = queue.add(op.string_at({"value"}), op.string_at({"uid"}), now);
    } else if (kind == "remove") {
      result["removed"] = queue.remove(op.string_at({"value"}));
    } else if (kind == "clear") {
      queue.clear();
    } else if (kind == "swap") {
      queue.limiter().set_rate(single(op, "qps").value_or(0), now);
      result["qps"] = single_text(queue.limiter().effective_rate());
    } else {
      result["processed"] = process(queue, op.find("fail"), now);
    }
    result["queue"] = queued(queue);
    results.push_back(std::move(result));
  }
  Json want = *row.at({"expected", "results"});
  for (Json& result : *want.if_array()) {
    if (Json* qps = result.find("qps")) *qps = single_text(static_cast<float>(*qps->if_double()));
  }
  return compare(want, Json(results));
}

std::optional<Mismatch> zone_key_check(const Json& row) {
  const auto rule = row.string_at({"profile"}) == "v1.7" ? ZoneLabels::kBetaOnly : ZoneLabels::kTopology;
  return compare(*row.find("expected"), Json::object({{"key", zone_key(labels_of(*row.find("input")), rule)}}));
}

std::optional<Mismatch> zone_state_check(const Json& row) {
  const Json& in = *row.find("input");
  const ZoneCounts counts{
      static_cast<std::int32_t>(integer(in, "True")),
      static_cast<std::int32_t>(integer(in, "False") + integer(in, "Unknown") + integer(in, "Nil"))};
  const ZoneState state = zone_state(counts, single(in, "unhealthy_zone_threshold").value());
  return compare(*row.find("expected"), Json::object({{"unhealthy", counts.unready}, {"state", to_string(state)}}));
}

std::optional<ZoneState> parse_state(std::string_view text) {
  for (const ZoneState state :
       {ZoneState::kInitial, ZoneState::kNormal, ZoneState::kPartialDisruption, ZoneState::kFullDisruption}) {
    if (to_string(state) == text) return state;
  }
  return std::nullopt;
}

std::optional<Mismatch> eviction_rate_check(const Json& row) {
  const Json& in = *row.find("input");
  const ZoneConfig config{
      .node_eviction_rate = single(in, "node_eviction_rate").value(),
      .secondary_node_eviction_rate = single(in, "secondary_node_eviction_rate").value(),
      .large_cluster_size_threshold = static_cast<std::int32_t>(integer(in, "large_cluster_size_threshold"))};
  const auto kind = row.string_at({"profile"}) == "v1.7" ? BucketKind::kTicks : BucketKind::kContinuous;
  RateLimiter limiter(kind, single(in, "previous_qps").value_or(config.node_eviction_rate), 1, at_ns(0),
                      RateLimiter::Stopped::kReportsOne);
  const auto state = parse_state(in.string_at({"state"}));
  if (!state) return Mismatch{"a known zone state", std::string(in.string_at({"state"}))};
  if (const auto rate = eviction_rate(*state, static_cast<std::int32_t>(integer(in, "zone_size")), config)) {
    limiter.set_rate(*rate, at_ns(1));
  }
  return compare(single_text(single(*row.find("expected"), "qps").value()), single_text(limiter.effective_rate()));
}

api::Node node_of(const Json& in) {
  api::Node node;
  for (const Json& condition : *in.find("conditions")->if_array()) {
    node.status.conditions.push_back(
        {.type = std::string(condition.string_at({"type"})), .status = std::string(condition.string_at({"status"}))});
  }
  for (const Json& taint : *in.find("taints")->if_array()) {
    node.spec.taints.push_back({std::string(taint.string_at({"key"})),
                                std::string(taint.string_at({"value"})),
                                std::string(taint.string_at({"effect"})),
                                {}});
  }
  node.spec.unschedulable = in.find("unschedulable")->if_bool().value();
  return node;
}

std::optional<Mismatch> condition_taints_check(const Json& row) {
  api::Node node = node_of(*row.find("input"));
  const TaintChange change = condition_taint_change(node);
  for (api::Taint taint : change.add) {
    taint.time_added = WallTime(seconds(1));
    put_taint(node.spec.taints, taint);
  }
  for (const api::Taint& taint : change.remove) erase_taint(node.spec.taints, taint);
  Json::Array taints;
  for (const api::Taint& taint : node.spec.taints) {
    Json one =
        Json::object({{"key", taint.key}, {"effect", taint.effect}, {"time_added", taint.time_added.has_value()}});
    if (!taint.value.empty()) one["value"] = taint.value;
    taints.push_back(std::move(one));
  }
  return compare(*row.find("expected"),
                 Json::object({{"taints", Json(taints)},
                               {"api_patches", int{!change.add.empty()} + int{!change.remove.empty()}},
                               {"error", false}}));
}

std::optional<Mismatch> label_reconcile(const Json& row) {
  api::StringMap labels = labels_of(*row.find("input"));
  const api::StringMap changes = label_changes(labels);
  for (const auto& [key, value] : changes) labels[key] = value;
  Json got = Json::object();
  for (const auto& [key, value] : labels) got[key] = value;
  Json want = *row.find("expected");
  if (want.find("labels")->is_null()) want["labels"] = Json::object();  // no labels and an empty map are the same here
  return compare(want, Json::object({{"labels", got}, {"api_patches", int{!changes.empty()}}, {"error", false}}));
}

const bool kRegistered[] = {
    add_vector_check("lifecycle/token_bucket", token_bucket),
    add_vector_check("lifecycle/rate_limited_queue", rate_limited_queue),
    add_vector_check("lifecycle/zone_key", zone_key_check),
    add_vector_check("lifecycle/zone_state", zone_state_check),
    add_vector_check("lifecycle/eviction_rate", eviction_rate_check),
    add_vector_check("lifecycle/condition_taints", condition_taints_check),
    add_vector_check("lifecycle/label_reconcile", label_reconcile),
};

}  // namespace
}  // namespace spillway::lifecycle
