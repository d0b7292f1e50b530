// Metrics of Pod Security evaluations, under upstream's names. Labels are bounded: a version beyond the newest is
// "future". Thread: loop. Source: Kubernetes docs, "Kubernetes Metrics Reference", pod_security_*.
#pragma once

#include "apiserver/resource/admission_check.h"
#include "policy/podsecurity/policy.h"
#include "telemetry/metrics.h"

#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace spillway::apiserver {

class PodSecurityMetrics {
 public:
  explicit PodSecurityMetrics(telemetry::Registry& registry) : registry_(registry) {}

  void count_evaluation(const ValidWrite& write, podsecurity::Mode mode, const podsecurity::LevelVersion& standard,
                        bool allowed);
  void count_exemption(const ValidWrite& write);
  /// `fatal`: nothing could be decided; else the labels of the namespace were wrong.
  void count_error(const ValidWrite& write, bool fatal);

 private:
  /// Operation, resource, subresource.
  using Request = std::tuple<std::string_view, std::string_view, std::string_view>;
  /// Decision, level, version, mode.
  using Evaluation = std::tuple<bool, podsecurity::Level, std::string, podsecurity::Mode>;

  static Request request_of(const ValidWrite& write);

  telemetry::Registry& registry_;
  std::map<std::pair<Evaluation, Request>, telemetry::Counter> evaluations_;
  std::map<Request, telemetry::Counter> exemptions_;
  std::map<std::pair<bool, Request>, telemetry::Counter> errors_;
};

}  // namespace spillway::apiserver
