#include "api/object/taint.h"

#include <algorithm>

namespace spillway::api {
namespace {

/// The key of a taint as it has been called since 1.8.
std::string_view name_today(std::string_view key) {
  if (key == kTaintNodeNotReadyAlpha) return kTaintNodeNotReady;
  return key == kTaintNodeUnreachableAlpha ? kTaintNodeUnreachable : key;
}

bool names(const Toleration& toleration, const Taint& taint) {
  return toleration.key.empty() || toleration.key == taint.key || toleration.key == name_today(taint.key);
}

}  // namespace

bool tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!names(toleration, taint)) return false;
  if (toleration.op == "Exists") return true;
  return (toleration.op.empty() || toleration.op == "Equal") && toleration.value == taint.value;
}

const Taint* find_untolerated(std::span<const Taint> taints, std::span<const Toleration> tolerations,
                              std::span<const std::string_view> effects) {
  for (const Taint& taint : taints) {
    if (std::find(effects.begin(), effects.end(), taint.effect) == effects.end()) continue;
    const bool tolerated = std::any_of(tolerations.begin(), tolerations.end(),
                                       [&taint](const Toleration& t) { return tolerates(t, taint); });
    if (!tolerated) return &taint;
  }
  return nullptr;
}

}  // namespace spillway::api
