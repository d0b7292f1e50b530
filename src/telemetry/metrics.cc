#include "telemetry/metrics.h"

#include "base/check.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <exception>
#include <map>
#include <type_traits>

namespace spillway::telemetry {
namespace {

std::map<std::string, std::string> to_map(Labels labels) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : labels) out.emplace(name, value);
  return out;
}

/// A name that is taken by another kind of instrument, or that Prometheus does not allow, is a mistake in the program.
template <typename Builder, typename... Extra>
auto* instrument(Builder builder, prometheus::Registry& registry, std::string_view name, std::string_view help,
                 Labels labels, Extra&&... extra) {
  try {
    auto& family = builder.Name(std::string(name)).Help(std::string(help)).Register(registry);
    return &family.Add(to_map(labels), std::forward<Extra>(extra)...);
  } catch (const std::exception& problem) {
    check_failed(std::string("metric ") + std::string(name) + ": " + problem.what(), __FILE__, __LINE__);
  }
}

}  // namespace

struct Registry::Impl {
  prometheus::Registry registry;
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}

Registry::~Registry() = default;

Counter Registry::counter(std::string_view name, std::string_view help, Labels labels) {
  Counter out;
  out.handle_ = instrument(prometheus::BuildCounter(), impl_->registry, name, help, labels);
  return out;
}

Gauge Registry::gauge(std::string_view name, std::string_view help, Labels labels) {
  Gauge out;
  out.handle_ = instrument(prometheus::BuildGauge(), impl_->registry, name, help, labels);
  return out;
}

Histogram Registry::histogram(std::string_view name, std::string_view help, std::vector<double> buckets,
                              Labels labels) {
  Histogram out;
  out.handle_ = instrument(prometheus::BuildHistogram(), impl_->registry, name, help, labels,
                           prometheus::Histogram::BucketBoundaries(std::move(buckets)));
  return out;
}

std::string Registry::text() const {
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

void Counter::add(double amount) {
  if (handle_ != nullptr) handle_->Increment(amount);
}

double Counter::value() const {
  return handle_ == nullptr ? 0 : handle_->Value();
}

void Gauge::set(double value) {
  if (handle_ != nullptr) handle_->Set(value);
}

double Gauge::value() const {
  return handle_ == nullptr ? 0 : handle_->Value();
}

void Histogram::observe(double value) {
  if (handle_ != nullptr) handle_->Observe(value);
}

}  // namespace spillway::telemetry
