#include "policy/podsecurity/existing_pods.h"

#include "policy/podsecurity/container_findings.h"
#include "policy/podsecurity/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace spillway::podsecurity {

namespace {

using api::Json;

/// Indices of the pods; the second and later ones of each controller at the end.
std::vector<std::size_t> in_order(std::span<const ExistingPod> pods) {
  std::vector<std::size_t> first;
  std::vector<std::size_t> later;
  Words seen;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const std::string_view controller = pods[i].controller;
    const bool again = !controller.empty() && !seen.emplace(controller).second;
    (again ? later : first).push_back(i);
  }
  first.insert(first.end(), later.begin(), later.end());
  return first;
}

/// The pods that have the same violations.
struct Alike {
  std::string name;  // the first of them
  std::size_t count = 0;

  void add(std::string_view pod) {
    if (count == 0 || pod < name) name = pod;
    ++count;
  }

  std::string text(std::string_view reasons) const {
    if (count == 1) return fmt::format("{}: {}", name, reasons);
    return fmt::format("{} (and {} other {}): {}", name, count - 1, plural(count - 1, "pod", "pods"), reasons);
  }
};

}  // namespace

bool may_violate(const LevelVersion& wanted, const LevelVersion& before) {
  if (wanted == before || wanted.level == Level::kPrivileged) return false;
  return wanted.version != before.version || wanted.level > before.level;
}

bool is_exempt_runtime(const Configuration& configuration, const Json& spec) {
  const std::string_view name = spec.string_at({"runtimeClassName"});
  const std::vector<std::string>& exempt = configuration.exempt_runtime_classes;
  return !name.empty() && std::ranges::find(exempt, name) != exempt.end();
}

std::vector<std::string> warnings_about(std::span<const ExistingPod> pods,
                                        const std::function<Json(std::size_t)>& document_of, std::string_view ns,
                                        const LevelVersion& enforce, const Configuration& configuration,
                                        const CheckBounds& bounds) {
  std::map<std::string, Alike> by_reasons;
  std::size_t total = pods.size();
  std::size_t checked = 0;
  std::size_t bytes = 0;
  for (const std::size_t index : in_order(pods)) {
    if (checked >= bounds.pods || bytes >= bounds.bytes) break;
    bytes += pods[index].bytes;
    const Json pod = document_of(index);
    const Json& spec = member(pod, "spec");
    if (is_exempt_runtime(configuration, spec)) {
      --total;
      continue;
    }
    ++checked;
    const std::vector<Violation> violations = evaluate(enforce, member(pod, "metadata"), spec);
    if (!violations.empty()) by_reasons[reasons_text(violations)].add(pods[index].name);
  }
  std::vector<std::string> warnings;
  if (checked < total) {
    warnings.push_back(fmt::format(
        "new PodSecurity enforce level only checked against the first {} of {} existing pods", checked, total));
  }
  if (by_reasons.empty()) return warnings;
  warnings.push_back(fmt::format("existing pods in namespace \"{}\" violate the new PodSecurity enforce level \"{}\"",
                                 ns, enforce.text()));
  std::vector<std::string> lines;
  for (const auto& [reasons, alike] : by_reasons) lines.push_back(alike.text(reasons));
  std::ranges::sort(lines);
  warnings.insert(warnings.end(), lines.begin(), lines.end());
  return warnings;
}

std::string exempt_namespace_warning(std::string_view ns, const Policy& policy, const Json& labels,
                                     const Policy& defaults) {
  if (policy.all_privileged() || equivalent(policy, defaults)) return {};
  std::vector<std::string> asked;
  for (const Mode mode : kModes) {
    const bool named = labels.find(level_label(mode)) != nullptr || labels.find(version_label(mode)) != nullptr;
    if (!named || policy.of(mode).level == Level::kPrivileged) continue;
    asked.push_back(fmt::format("{}={}", to_string(mode), policy.of(mode).text()));
  }
  return fmt::format("namespace \"{}\" is exempt from Pod Security, and the policy ({}) will be ignored", ns,
                     joined(asked, ", "));
}

}  // namespace spillway::podsecurity
