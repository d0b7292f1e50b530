#include "apiserver/security/pod_security_metrics.h"

namespace spillway::apiserver {

namespace {

std::string version_text(const podsecurity::LevelVersion& standard) {
  if (standard.level == podsecurity::Level::kPrivileged) return "latest";
  const bool future = standard.version.minor && *standard.version.minor > podsecurity::kNewestMinor;
  return future ? "future" : standard.version.text();
}

std::string_view resource_text(const Resource& resource) {
  if (resource.is("", "Namespace")) return "namespace";
  return resource.is("", "Pod") ? "pod" : "controller";
}

}  // namespace

PodSecurityMetrics::Request PodSecurityMetrics::request_of(const ValidWrite& write) {
  return {write.old == nullptr ? "create" : "update", resource_text(write.resource),
          write.part == SubresourceId::kEphemeralContainers ? "ephemeralcontainers" : ""};
}

void PodSecurityMetrics::count_evaluation(const ValidWrite& write, podsecurity::Mode mode,
                                          const podsecurity::LevelVersion& standard, bool allowed) {
  const Request request = request_of(write);
  const std::string version = version_text(standard);
  const auto [counter, first] = evaluations_.try_emplace({Evaluation{allowed, standard.level, version, mode}, request});
  if (first) {
    counter->second =
        registry_.counter("pod_security_evaluations_total",
                          "Number of policy evaluations that occurred, not counting ignored or exempt requests.",
                          {{"decision", allowed ? "allow" : "deny"},
                           {"policy_level", to_string(standard.level)},
                           {"policy_version", version},
                           {"mode", to_string(mode)},
                           {"request_operation", std::get<0>(request)},
                           {"resource", std::get<1>(request)},
                           {"subresource", std::get<2>(request)}});
  }
  counter->second.add();
}

void PodSecurityMetrics::count_exemption(const ValidWrite& write) {
  const Request request = request_of(write);
  const auto [counter, first] = exemptions_.try_emplace(request);
  if (first) {
    counter->second = registry_.counter("pod_security_exemptions_total",
                                        "Number of exempt requests, not counting ignored or out of scope requests.",
                                        {{"request_operation", std::get<0>(request)},
                                         {"resource", std::get<1>(request)},
                                         {"subresource", std::get<2>(request)}});
  }
  counter->second.add();
}

void PodSecurityMetrics::count_error(const ValidWrite& write, bool fatal) {
  const Request request = request_of(write);
  const auto [counter, first] = errors_.try_emplace({fatal, request});
  if (first) {
    counter->second = registry_.counter("pod_security_errors_total",
                                        "Number of errors preventing normal evaluation. Non-fatal errors may result in "
                                        "the latest restricted profile being used for evaluation.",
                                        {{"fatal", fatal ? "true" : "false"},
                                         {"request_operation", std::get<0>(request)},
                                         {"resource", std::get<1>(request)},
                                         {"subresource", std::get<2>(request)}});
  }
  counter->second.add();
}

}  // namespace spillway::apiserver
