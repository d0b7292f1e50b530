#include "policy/podsecurity/pod_change.h"

#include "policy/podsecurity/container_findings.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::podsecurity {

namespace {

using api::Json;

const Json& seccomp_annotation(const Json& pod, std::string_view container) {
  const std::string key = fmt::format("container.seccomp.security.alpha.kubernetes.io/{}", container);
  return member(member(member(pod, "metadata"), "annotations"), key);
}

bool differs(const Json& pod, const Json& old, const Json& container, const Json& before) {
  const std::string_view name = container.string_at({"name"});
  return container.string_at({"image"}) != before.string_at({"image"}) ||
         seccomp_annotation(pod, name).string_at({}) != seccomp_annotation(old, name).string_at({});
}

bool list_differs(const Json& pod, const Json& old, std::string_view list) {
  const auto now = elements(member(pod, "spec"), list);
  const auto before = elements(member(old, "spec"), list);
  if (now.size() != before.size()) return true;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (differs(pod, old, now[i], before[i])) return true;
  }
  return false;
}

}  // namespace

bool is_significant_change(const Json& pod, const Json& old) {
  if (list_differs(pod, old, "containers") || list_differs(pod, old, "initContainers")) return true;
  const auto before = elements(member(old, "spec"), "ephemeralContainers");
  return std::ranges::any_of(elements(member(pod, "spec"), "ephemeralContainers"), [&](const Json& container) {
    const auto same = std::ranges::find(before, container.string_at({"name"}),
                                        [](const Json& each) { return each.string_at({"name"}); });
    return same == before.end() || differs(pod, old, container, *same);
  });
}

}  // namespace spillway::podsecurity
