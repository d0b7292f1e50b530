#include "telemetry/exposition.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>

namespace spillway::telemetry {

struct Exposition::Families {
  prometheus::MetricFamily current;  // the family, without its samples
  std::vector<prometheus::MetricFamily> list;
  bool begun = false;  // `current` is the last of the list
};

Exposition::Exposition() : families_(std::make_unique<Families>()) {}

Exposition::~Exposition() = default;
Exposition::Exposition(Exposition&&) noexcept = default;
Exposition& Exposition::operator=(Exposition&&) noexcept = default;

void Exposition::family(std::string_view name, Type type, std::string_view help) {
  families_->current = {std::string(name),
                        std::string(help),
                        type == Type::kCounter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge,
                        {}};
  families_->begun = false;
}

void Exposition::sample(const Labels& labels, double value, std::optional<WallTime> at) {
  if (!std::exchange(families_->begun, true)) families_->list.push_back(families_->current);
  prometheus::MetricFamily& family = families_->list.back();
  prometheus::ClientMetric metric;
  for (const auto& [name, content] : labels) metric.label.push_back({std::string(name), std::string(content)});
  if (family.type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  if (at) metric.timestamp_ms = std::chrono::floor<std::chrono::milliseconds>(at->time_since_epoch()).count();
  family.metric.push_back(std::move(metric));
}

std::string Exposition::text() const {
  return prometheus::TextSerializer().Serialize(families_->list);
}

}  // namespace spillway::telemetry
