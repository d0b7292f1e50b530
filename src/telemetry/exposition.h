// Prometheus' text format, written sample by sample: for figures that are read off at the scrape and carry the time at
// which they were measured. Instruments that live with the process are in metrics.h.
// Thread: any; one at a time. Only exposition.cc uses prometheus-cpp. Source: Prometheus docs, "Exposition formats",
// 0.0.4.
#pragma once

#include "base/time.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::telemetry {

class Exposition {
 public:
  Exposition();
  ~Exposition();
  Exposition(Exposition&&) noexcept;
  Exposition& operator=(Exposition&&) noexcept;

  enum class Type { kCounter, kGauge };

  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  /// Samples that follow belong to this family. One without samples is left out.
  void family(std::string_view name, Type type, std::string_view help);
  /// `at`: time of the measurement; nullopt: the time of the scrape.
  void sample(const Labels& labels, double value, std::optional<WallTime> at = std::nullopt);

  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace spillway::telemetry
