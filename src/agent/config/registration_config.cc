#include "agent/config/registration_config.h"

#include "api/text/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kTaintsKey = "registerWithTaints";
constexpr std::array<std::string_view, 2> kOwnDomains{"kubelet.kubernetes.io", "node.kubernetes.io"};
constexpr std::array<std::string_view, 11> kOwnLabels{"beta.kubernetes.io/arch",
                                                      "beta.kubernetes.io/instance-type",
                                                      "beta.kubernetes.io/os",
                                                      "failure-domain.beta.kubernetes.io/region",
                                                      "failure-domain.beta.kubernetes.io/zone",
                                                      "kubernetes.io/arch",
                                                      "kubernetes.io/hostname",
                                                      "kubernetes.io/os",
                                                      "node.kubernetes.io/instance-type",
                                                      "topology.kubernetes.io/region",
                                                      "topology.kubernetes.io/zone"};

bool is_in(std::string_view domain, std::string_view above) {
  if (!domain.ends_with(above)) return false;
  return domain.size() == above.size() || domain[domain.size() - above.size() - 1] == '.';
}

/// True for a label in Kubernetes' own domains that a node may not set on itself.
bool is_reserved(std::string_view label) {
  const std::size_t slash = label.find('/');
  const std::string_view domain = slash == std::string_view::npos ? std::string_view() : label.substr(0, slash);
  if (!is_in(domain, "kubernetes.io") && !is_in(domain, "k8s.io")) return false;
  if (std::ranges::any_of(kOwnDomains, [&](std::string_view own) { return is_in(domain, own); })) return false;
  return std::ranges::find(kOwnLabels, label) == kOwnLabels.end();
}

Result<api::Taint> taint_of(const Json& entry) {
  api::Taint taint{.key = std::string(entry.string_at({"key"})),
                   .value = std::string(entry.string_at({"value"})),
                   .effect = std::string(entry.string_at({"effect"})),
                   .time_added = {}};
  if (const auto problems = api::qualified_name_errors(taint.key); !problems.empty()) {
    return invalid(kTaintsKey, "invalid taint: {}: key: {}", api::to_text(entry), api::join_problems(problems));
  }
  if (const auto problems = api::label_value_errors(taint.value); !problems.empty()) {
    return invalid(kTaintsKey, "invalid taint: {}: value: {}", api::to_text(entry), api::join_problems(problems));
  }
  if (taint.effect != api::kNoSchedule && taint.effect != api::kPreferNoSchedule && taint.effect != api::kNoExecute) {
    return invalid(kTaintsKey, "invalid taint: {}: effect: expected NoSchedule, PreferNoSchedule or NoExecute",
                   api::to_text(entry));
  }
  if (entry.find("timeAdded") != nullptr) return invalid(kTaintsKey, "taint.TimeAdded is not nil");
  return taint;
}

}  // namespace

Result<std::vector<api::Taint>> taints_of(const Json& effective) {
  std::vector<api::Taint> taints;
  const Json* list = effective.find(kTaintsKey);
  if (list == nullptr) return taints;
  for (const Json& each : *list->if_array()) {
    SPILLWAY_TRY(taint, taint_of(each));
    taints.push_back(std::move(taint));
  }
  return taints;
}

Outcome check_node_labels(const api::StringMap& labels) {
  std::vector<std::string> reserved;
  std::vector<std::string> wrong;
  for (const auto& [key, value] : labels) {
    if (is_reserved(key)) reserved.push_back(key);
    std::vector<std::string> problems = api::qualified_name_errors(key);
    const std::vector<std::string> of_value = api::label_value_errors(value);
    problems.insert(problems.end(), of_value.begin(), of_value.end());
    if (!problems.empty()) wrong.push_back(fmt::format("'{}' - {}", key, fmt::join(problems, ", ")));
  }
  if (!reserved.empty()) {
    return invalid(
        "--node-labels",
        "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{}]; --node-labels in the "
        "'kubernetes.io' namespace must begin with an allowed prefix ({}) or be in the specifically allowed "
        "set ({})",
        fmt::join(reserved, " "), fmt::join(kOwnDomains, ", "), fmt::join(kOwnLabels, ", "));
  }
  if (!wrong.empty()) return invalid("--node-labels", "invalid node labels: {}", fmt::join(wrong, "; "));
  return {};
}

}  // namespace spillway::agent
