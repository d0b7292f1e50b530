#include "policy/fit.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>

namespace spillway::policy {

namespace {

constexpr std::string_view kPods = "pods";

/// The rest of `capacity`; negative on a node over its limits. Saturates instead of overflowing.
std::int64_t left_of(std::int64_t capacity, std::int64_t used) {
  std::int64_t left = 0;
  if (!__builtin_sub_overflow(capacity, used, &left)) return left;
  return used > 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

std::vector<Shortage> find_shortages(const Amounts& wanted, const NodeLoad& node) {
  std::vector<Shortage> shortages;
  if (node.pod_count + 1 > node.pods_max) {
    shortages.push_back({std::string(kPods), 1, node.pod_count, node.pods_max});
  }
  const auto check = [&](std::string_view resource, std::int64_t asked, std::int64_t used, std::int64_t capacity) {
    if (asked <= 0 || asked <= left_of(capacity, used)) return;
    shortages.push_back({std::string(resource), asked, used, capacity});
  };
  check("cpu", wanted.milli_cpu, node.requested.milli_cpu, node.allocatable.milli_cpu);
  check("memory", wanted.memory_bytes, node.requested.memory_bytes, node.allocatable.memory_bytes);
  check("ephemeral-storage", wanted.ephemeral_storage_bytes, node.requested.ephemeral_storage_bytes,
        node.allocatable.ephemeral_storage_bytes);
  for (const auto& [resource, asked] : wanted.scalars) {
    const auto used = node.requested.scalars.find(resource);
    const auto capacity = node.allocatable.scalars.find(resource);
    check(resource, asked, used == node.requested.scalars.end() ? 0 : used->second,
          capacity == node.allocatable.scalars.end() ? 0 : capacity->second);
  }
  return shortages;
}

std::string shortage_text(const Shortage& shortage) {
  return shortage.resource == kPods ? "Too many pods" : fmt::format("Insufficient {}", shortage.resource);
}

Reason reason_of(const Shortage& shortage) {
  if (shortage.resource == kPods) {
    return {ReasonCode::kTooManyPods, {{"pods", shortage.used}, {"pods_max", shortage.capacity}}};
  }
  return {ReasonCode::kInsufficientResource,
          {{"resource", shortage.resource},
           {"requested", shortage.requested},
           {"used", shortage.used},
           {"allocatable", shortage.capacity}}};
}

}  // namespace spillway::policy
