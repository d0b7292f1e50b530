#include "policy/eviction/reading.h"

#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "base/check.h"

#include <bit>

namespace spillway::eviction {

using api::Json;

std::int64_t integer(const Json& in, std::string_view key) {
  const Json* value = in.find(key);
  if (value == nullptr) return 0;
  if (const auto exact = value->if_int64()) return *exact;
  return static_cast<std::int64_t>(value->if_uint64().value_or(0));
}

bool flag(const Json& in, std::string_view key) {
  const Json* value = in.find(key);
  return value != nullptr && value->if_bool().value_or(false);
}

const Json::Array& array(const Json& in, std::string_view key) {
  static const Json::Array kNone;
  const Json* value = in.find(key);
  return value == nullptr || value->if_array() == nullptr ? kNone : *value->if_array();
}

namespace {

ThresholdValue read_value(const Json& in) {
  if (in.find("percentageBits") != nullptr) {
    return Fraction{std::bit_cast<float>(static_cast<std::uint32_t>(integer(in, "percentageBits")))};
  }
  return api::parse_quantity(in.string_at({"quantity"})).value();
}

std::string value_signature(const ThresholdValue& value) {
  if (const auto* quantity = std::get_if<api::Quantity>(&value)) return quantity->to_string();
  return fmt::format("share {}", std::bit_cast<std::uint32_t>(std::get<Fraction>(value).share));
}

}  // namespace

std::optional<Threshold> read_threshold(const Json& in) {
  if (in.string_at({"operator"}).empty()) return std::nullopt;
  Threshold threshold;
  threshold.signal = parse_signal(in.string_at({"signal"})).value();
  threshold.value = read_value(*in.find("value"));
  threshold.grace_period = nanoseconds(integer(in, "gracePeriodNanos"));
  if (const Json* reclaim = in.find("minReclaim")) threshold.min_reclaim = read_value(*reclaim);
  return threshold;
}

std::vector<Threshold> read_thresholds(const Json& in, std::string_view key) {
  std::vector<Threshold> thresholds;
  for (const Json& each : array(in, key)) {
    if (auto threshold = read_threshold(each)) thresholds.push_back(std::move(*threshold));
  }
  return thresholds;
}

std::string signature(const Threshold& threshold) {
  return fmt::format("{} < {}, grace {} ns, reclaim {}", to_string(threshold.signal), value_signature(threshold.value),
                     threshold.grace_period.count(),
                     threshold.min_reclaim ? value_signature(*threshold.min_reclaim) : "none");
}

Observations read_observations(const Json& in, std::string_view key) {
  Observations seen;
  const Json* all = in.find(key);
  if (all == nullptr || all->if_object() == nullptr) return seen;
  for (const auto& [name, value] : *all->if_object()) {
    Observation observation{integer(value, "available"), integer(value, "capacity"), {}};
    const std::string_view time = value.string_at({"time"});
    if (!time.empty()) observation.time = api::parse_time(time).value();
    seen[parse_signal(name).value()] = observation;
  }
  return seen;
}

std::vector<std::size_t> read_indices(const Json& in, std::string_view key) {
  std::vector<std::size_t> indices;
  for (const Json& each : array(in, key)) indices.push_back(static_cast<std::size_t>(*each.if_int64()));
  return indices;
}

std::vector<Threshold> pick(const std::vector<Threshold>& all, const std::vector<std::size_t>& indices) {
  std::vector<Threshold> picked;
  for (const std::size_t index : indices) picked.push_back(all.at(index));
  return picked;
}

Json indices_of(const std::vector<Threshold>& all, const std::vector<Threshold>& some) {
  Json indices = Json::array();
  std::vector<bool> taken(all.size());
  for (const Threshold& each : some) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (taken[i] || signature(all[i]) != signature(each)) continue;
      taken[i] = true;
      indices.if_array()->push_back(Json(static_cast<std::int64_t>(i)));
      break;
    }
  }
  return indices;
}

Scene read_scene(const Json& in) {
  Scene scene;
  for (const Json& pod : array(in, "pods")) scene.pods.push_back(api::decode<api::Pod>(pod).value());
  Json summary = Json::object();
  summary["pods"] = Json(array(in, "podStats"));
  scene.summary = api::decode<api::Summary>(summary).value();
  for (const api::Pod& pod : scene.pods) scene.active.push_back(&pod);
  scene.measured = join_stats(scene.active, scene.summary.pods);
  return scene;
}

StorageLayout read_layout(const Json& in) {
  return {.dedicated_image_fs = flag(in, "dedicatedImageFs"), .split_container_fs = flag(in, "splitContainerFs")};
}

}  // namespace spillway::eviction
