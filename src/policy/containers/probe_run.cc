#include "policy/containers/probe_run.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::containers {
namespace {

ProbeResult initial_result(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kLiveness:
      return ProbeResult::kSuccess;
    case ProbeKind::kReadiness:
      return ProbeResult::kFailure;
    case ProbeKind::kStartup:
      return ProbeResult::kUnknown;
  }
  return ProbeResult::kUnknown;
}

std::string_view name_of(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kLiveness:
      return "Liveness";
    case ProbeKind::kReadiness:
      return "Readiness";
    case ProbeKind::kStartup:
      return "Startup";
  }
  return {};
}

}  // namespace

void ProbeRun::resume(std::string container_id, ProbeResult result) {
  if (last_ != ProbeResult::kUnknown) return;
  container_id_ = std::move(container_id);
  result_ = result;
  on_hold_ = kind_ == ProbeKind::kStartup;
}

ProbeRun::Turn ProbeRun::begin(const ProbedContainer& container) {
  if (container.pod_finished) return Turn::kEnd;
  if (container.id.empty()) return Turn::kWait;
  if (container.id != container_id_) {
    container_id_ = container.id;
    result_ = initial_result(kind_);
    on_hold_ = false;
  }
  if (on_hold_) return Turn::kWait;
  if (!container.running) {
    set(ProbeResult::kFailure);
    return container.ended && container.never_restarts ? Turn::kEnd : Turn::kWait;
  }
  if (container.pod_deleted && kind_ != ProbeKind::kReadiness) {
    set(ProbeResult::kSuccess);
    return Turn::kEnd;
  }
  if (container.age < seconds(thresholds_.initial_delay_seconds)) return Turn::kWait;
  const bool is_startup = kind_ == ProbeKind::kStartup;
  return container.started == is_startup ? Turn::kWait : Turn::kProbe;
}

bool ProbeRun::finish(ProbeOutcome outcome) {
  if (outcome == ProbeOutcome::kError) return false;
  const ProbeResult result = outcome == ProbeOutcome::kFailure ? ProbeResult::kFailure : ProbeResult::kSuccess;
  same_in_row_ = result == last_ ? same_in_row_ + 1 : 1;
  last_ = result;
  const std::int64_t needed = result == ProbeResult::kFailure ? thresholds_.failure : thresholds_.success;
  if (same_in_row_ < needed) return false;
  const bool changed = set(result);
  if (kind_ == ProbeKind::kStartup || (kind_ == ProbeKind::kLiveness && result == ProbeResult::kFailure)) {
    on_hold_ = true;
    same_in_row_ = 0;
  }
  return changed;
}

bool ProbeRun::set(ProbeResult result) {
  return std::exchange(result_, result) != result;
}

std::optional<ProbeResult> ProbeRun::result_of(std::string_view container_id) const {
  return container_id == container_id_ ? result_ : std::nullopt;
}

std::optional<ProbeEvent> probe_event(ProbeKind kind, ProbeOutcome outcome, std::string_view output) {
  const auto made = [&](std::string_view reason, std::string_view what) {
    return ProbeEvent{reason, fmt::format("{} probe {}: {}", name_of(kind), what, output)};
  };
  switch (outcome) {
    case ProbeOutcome::kSuccess:
      return std::nullopt;
    case ProbeOutcome::kWarning:
      return made("ProbeWarning", "warning");
    case ProbeOutcome::kFailure:
      return made("Unhealthy", "failed");
    case ProbeOutcome::kError:
      return made("Unhealthy", "errored");
  }
  return std::nullopt;
}

bool is_started(bool running, const ProbeVerdicts& verdicts) {
  if (!running) return false;
  if (verdicts.startup) return verdicts.startup == ProbeResult::kSuccess;
  return !verdicts.has_startup_probe;
}

bool is_ready(bool running, const ProbeVerdicts& verdicts) {
  if (!is_started(running, verdicts)) return false;
  if (verdicts.readiness) return verdicts.readiness == ProbeResult::kSuccess;
  return !verdicts.has_readiness_probe;
}

}  // namespace spillway::containers
