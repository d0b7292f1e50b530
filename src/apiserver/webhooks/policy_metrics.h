// Metrics of admission policies, under Kubernetes' names. Thread: loop. Bounds: kNamesMax policies and bindings by
// name; the others are "other". Source: Kubernetes docs, "Kubernetes Metrics Reference".
#pragma once

#include "policy/admission_policies/evaluator.h"
#include "policy/webhooks/match.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <functional>
#include <set>
#include <string>

namespace spillway::apiserver {

class PolicyMetrics {
 public:
  static constexpr std::size_t kNamesMax = 100;  // policies with labels of their own, and as many bindings

  explicit PolicyMetrics(telemetry::Registry& registry) : registry_(registry) {}

  void record(const admission_policies::PolicyResult& result, webhooks::Operation operation);

 private:
  using Names = std::set<std::string, std::less<>>;

  static std::string shown(Names& names, const std::string& name);

  telemetry::Registry& registry_;
  Names policies_;
  Names bindings_;
};

}  // namespace spillway::apiserver
