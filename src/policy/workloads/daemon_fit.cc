#include "policy/workloads/daemon_fit.h"

#include "api/object/taint.h"
#include "api/object/tolerations.h"

#include <array>
#include <span>

namespace spillway::workloads {

namespace {

constexpr std::array<std::string_view, 2> kKeepingAway{api::kNoSchedule, api::kNoExecute};
constexpr std::array<std::string_view, 1> kDrivingOut{api::kNoExecute};

}  // namespace

DaemonFit daemon_fit(const api::Pod& pod, const api::RequiredNodeAffinity& affinity, const api::Node& node) {
  if (!pod.spec.node_name.empty() && pod.spec.node_name != node.metadata.name) return {};
  const Result<bool> matches = affinity.matches(node.metadata);
  if (!matches || !*matches) return {};
  const auto untolerated = [&](std::span<const std::string_view> effects) {
    return api::find_untolerated(node.spec.taints, pod.spec.tolerations, effects) != nullptr;
  };
  return {.should_run = !untolerated(kKeepingAway), .should_continue = !untolerated(kDrivingOut)};
}

}  // namespace spillway::workloads
