// Metrics in Prometheus' text format, behind handles that are created once. Labels come from enums or other bounded
// sets. Thread: any. Only metrics.cc uses prometheus-cpp.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace spillway::telemetry {

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class Counter {
 public:
  Counter() = default;  // counts nowhere
  void add(double amount = 1);
  double value() const;

 private:
  friend class Registry;
  prometheus::Counter* handle_ = nullptr;
};

class Gauge {
 public:
  Gauge() = default;
  void set(double value);
  double value() const;

 private:
  friend class Registry;
  prometheus::Gauge* handle_ = nullptr;
};

class Histogram {
 public:
  Histogram() = default;
  void observe(double value);

 private:
  friend class Registry;
  prometheus::Histogram* handle_ = nullptr;
};

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// The same name and labels give the same instrument. Handles must not outlive the registry.
  Counter counter(std::string_view name, std::string_view help, Labels labels = {});
  Gauge gauge(std::string_view name, std::string_view help, Labels labels = {});
  Histogram histogram(std::string_view name, std::string_view help, std::vector<double> buckets, Labels labels = {});

  /// Text exposition format 0.0.4.
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::telemetry
