// vectors/eviction: observations, notifier.
#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "policy/eviction/notifier.h"
#include "policy/eviction/reading.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::eviction {
namespace {

using api::Json;
using support::add_vector_check;
using support::compare;
using support::Mismatch;

std::optional<Mismatch> observations(const Json& row) {
  const api::Summary summary = api::decode<api::Summary>(*row.at({"in", "summary"})).value();
  const Observations seen = observe(summary);
  Json got = Json::object();
  for (const Signal signal : kSignals) {
    const std::optional<Observation>& observation = seen[signal];
    if (!observation) continue;
    Json entry = Json::object({{"available", observation->available},
                               {"availableString", quantity_of(signal, observation->available).to_string()},
                               {"capacity", observation->capacity},
                               {"capacityString", quantity_of(signal, observation->capacity).to_string()}});
    if (observation->time) entry["time"] = api::format_time(*observation->time);
    got[to_string(signal)] = std::move(entry);
  }
  return compare(*row.at({"out", "observations"}), got);
}

/// The memory of the node, or of all pods together.
std::optional<api::MemoryStats> memory_of(const Threshold& threshold, const api::Summary& summary) {
  if (threshold.signal != Signal::kAllocatableMemoryAvailable) return summary.node.memory;
  const auto& containers = summary.node.system_containers;
  const auto pods = std::ranges::find(containers, "pods", &api::ContainerStats::name);
  return pods == containers.end() ? std::nullopt : pods->memory;
}

std::optional<std::int64_t> trigger(const Threshold& threshold, const std::optional<api::MemoryStats>& memory) {
  if (!memory || !memory->usage_bytes || !memory->working_set_bytes || !memory->available_bytes) return std::nullopt;
  const auto capacity = static_cast<std::int64_t>(*memory->available_bytes + *memory->working_set_bytes);
  const auto inactive = static_cast<std::int64_t>(*memory->usage_bytes - *memory->working_set_bytes);
  const std::optional<api::Quantity> limit = amount_of(threshold.value, capacity);
  if (!limit) return std::nullopt;
  return usage_at_threshold(*limit, capacity, inactive);
}

std::optional<Mismatch> notifier(const Json& row) {
  const Json& in = *row.find("in");
  const Threshold threshold = read_threshold(*in.find("threshold")).value();
  const auto usage = trigger(threshold, memory_of(threshold, api::decode<api::Summary>(*in.find("summary")).value()));
  Json got = Json::object({{"description", describe(threshold)}, {"ok", usage.has_value()}});
  if (usage) {
    got["attribute"] = "memory.usage_in_bytes";
    got["threshold"] = *usage;
  }
  return compare(*row.find("out"), got);
}

const bool kObservations = add_vector_check("eviction/observations", observations);
const bool kNotifier = add_vector_check("eviction/notifier", notifier);

}  // namespace
}  // namespace spillway::eviction
