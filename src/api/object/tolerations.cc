#include "api/object/tolerations.h"

#include "api/text/names.h"
#include "base/split.h"

#include <algorithm>
#include <array>

namespace spillway::api {
namespace {

Toleration exists(std::string_view key, std::string_view effect, std::optional<std::int64_t> seconds = std::nullopt) {
  return {.key = std::string(key),
          .op = "Exists",
          .value = {},
          .effect = std::string(effect),
          .toleration_seconds = seconds};
}

void add_or_replace(std::vector<Toleration>& tolerations, Toleration toleration) {
  const auto same = std::find_if(tolerations.begin(), tolerations.end(), [&](const Toleration& t) {
    return t.key == toleration.key && t.effect == toleration.effect && t.op == toleration.op &&
           t.value == toleration.value;
  });
  if (same != tolerations.end()) {
    *same = std::move(toleration);
  } else {
    tolerations.push_back(std::move(toleration));
  }
}

/// The taint without its demand for an effect.
Result<Taint> parse_taint(std::string_view text) {
  const std::vector<std::string_view> parts = split_at(text, ':');
  if (parts.size() > 2) return invalid("", "invalid taint spec: {}", text);
  Taint taint;
  taint.key = std::string(parts.front());
  if (parts.size() == 2) {
    if (parts[1] != kNoSchedule && parts[1] != kPreferNoSchedule && parts[1] != kNoExecute) {
      return invalid("", "invalid taint effect: {}, unsupported taint effect", parts[1]);
    }
    taint.effect = std::string(parts[1]);
    const std::vector<std::string_view> pair = split_at(parts.front(), '=');
    if (pair.size() > 2) return invalid("", "invalid taint spec: {}", text);
    taint.key = std::string(pair.front());
    if (pair.size() == 2) taint.value = std::string(pair[1]);
    if (const auto problems = label_value_errors(taint.value); !problems.empty()) {
      return invalid("", "invalid taint spec: {}, {}", text, join_problems(problems));
    }
  }
  if (const auto problems = qualified_name_errors(taint.key); !problems.empty()) {
    return invalid("", "invalid taint spec: {}, {}", text, join_problems(problems));
  }
  return taint;
}

}  // namespace

bool add_default_tolerations(std::vector<Toleration>& tolerations, std::int64_t seconds) {
  bool added = false;
  const std::size_t own = tolerations.size();
  for (const std::string_view key : {kTaintNodeNotReady, kTaintNodeUnreachable}) {
    const auto end = tolerations.begin() + static_cast<std::ptrdiff_t>(own);
    const bool covered = std::any_of(tolerations.begin(), end, [key](const Toleration& t) {
      return (t.key.empty() || t.key == key) && (t.effect.empty() || t.effect == kNoExecute);
    });
    if (covered) continue;
    tolerations.push_back(exists(key, kNoExecute, seconds));
    added = true;
  }
  return added;
}

void add_daemon_set_tolerations(std::vector<Toleration>& tolerations, HostNetwork host_network) {
  add_or_replace(tolerations, exists(kTaintNodeNotReady, kNoExecute));
  add_or_replace(tolerations, exists(kTaintNodeUnreachable, kNoExecute));
  add_or_replace(tolerations, exists(kTaintNodeDiskPressure, kNoSchedule));
  add_or_replace(tolerations, exists(kTaintNodeMemoryPressure, kNoSchedule));
  add_or_replace(tolerations, exists(kTaintNodePidPressure, kNoSchedule));
  add_or_replace(tolerations, exists(kTaintNodeUnschedulable, kNoSchedule));
  if (host_network == HostNetwork::kYes) {
    add_or_replace(tolerations, exists(kTaintNodeNetworkUnavailable, kNoSchedule));
  }
}

std::optional<std::vector<Toleration>> matching_tolerations(std::span<const Taint> taints,
                                                            std::span<const Toleration> tolerations) {
  std::vector<Toleration> used;
  for (const Taint& taint : taints) {
    const auto match = std::find_if(tolerations.begin(), tolerations.end(),
                                    [&taint](const Toleration& t) { return tolerates(t, taint); });
    if (match == tolerations.end()) return std::nullopt;
    used.push_back(*match);
  }
  return used;
}

bool is_same_taint(const Taint& a, const Taint& b) {
  return a.key == b.key && a.effect == b.effect;
}

std::string to_string(const Taint& taint) {
  std::string text = taint.key;
  if (!taint.value.empty()) text += '=' + taint.value;
  if (!taint.effect.empty() || !taint.value.empty()) text += ':' + taint.effect;
  return text;
}

Result<TaintChange> parse_taint_change(std::string_view text) {
  if (text.ends_with('-')) {
    SPILLWAY_TRY(removed, parse_taint(text.substr(0, text.size() - 1)));
    removed.value.clear();
    return TaintChange{.kind = TaintChange::Kind::kRemove, .taint = std::move(removed)};
  }
  SPILLWAY_TRY(added, parse_taint(text));
  if (added.effect.empty()) return invalid("", "invalid taint spec: {}", text);
  return TaintChange{.kind = TaintChange::Kind::kAdd, .taint = std::move(added)};
}

}  // namespace spillway::api
