// vectors/eviction: observations, notifier.
#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "policy/eviction/notifier.h"
#include "policy/eviction/reading.h"
#include "support/vectors.h"

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

std::optional<Mismatch> notifier(const Json& row) {
  const Json& in = *row.find("in");
  const Threshold threshold = read_threshold(*in.find("threshold")).value();
  const Result<MemcgTrigger> trigger = memcg_trigger(threshold, api::decode<api::Summary>(*in.find("summary")).value());
  Json got = Json::object({{"description", describe(threshold)}, {"ok", trigger.has_value()}});
  if (trigger) {
    got["attribute"] = MemcgTrigger::kAttribute;
    got["threshold"] = trigger->usage_bytes;
  }
  return compare(*row.find("out"), got);
}

const bool kObservations = add_vector_check("eviction/observations", observations);
const bool kNotifier = add_vector_check("eviction/notifier", notifier);

}  // namespace
}  // namespace spillway::eviction
