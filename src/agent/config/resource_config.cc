#include "agent/config/resource_config.h"

#include "agent/config/config_schema.h"
#include "api/text/duration.h"
#include "api/text/quantity.h"
#include "base/number.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>

namespace spillway::agent {
namespace {

constexpr Duration kPeriod = milliseconds(100);
constexpr Duration kPeriodMin = milliseconds(1);
constexpr Duration kPeriodMax = seconds(1);
constexpr double kFactor = 0.9;

Duration period_in(const api::Json& effective) {
  return api::parse_duration(effective.string_at({"cpuCFSQuotaPeriod"})).value_or(kPeriod);
}

/// A reservation below zero would add to what the node offers.
Outcome check_reserved(const api::Json& effective, std::string_view key) {
  const api::Json* reserved = effective.find(key);
  if (reserved == nullptr || !reserved->is_object()) return {};
  for (const auto& [resource, amount] : *reserved->if_object()) {
    const auto quantity = api::parse_quantity(amount.string_at({}));
    if (quantity && quantity->sign() < 0)
      return invalid(fmt::format("{}[{}]", key, resource), "resource quantity for \"{}\" cannot be negative: {}",
                     resource, amount.string_at({}));
  }
  return {};
}

/// "50%": a whole number from 0 to 100. Errors as upstream has them.
Result<std::int64_t> parse_percentage(std::string_view text) {
  if (!text.ends_with('%')) return make_error(ErrorCode::kInvalid, "percentage expected, got '{}'", text);
  std::string_view digits = text.substr(0, text.find_last_not_of('%') + 1);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto value = parse_whole<std::int64_t>(digits);
  if (!value) return make_error(ErrorCode::kInvalid, "invalid number in percentage '{}'", text);
  if (*value < 0 || *value > 100) return make_error(ErrorCode::kInvalid, "percentage must be between 0 and 100");
  return *value;
}

Outcome check_qos_reserved(const api::Json& effective) {
  const api::Json* reserved = effective.find("qosReserved");
  if (reserved == nullptr || !reserved->is_object()) return {};
  for (const auto& [resource, share] : *reserved->if_object()) {
    const std::string at = fmt::format("qosReserved[{}]", resource);
    if (resource != "memory")
      return invalid(at, "--qos-reserved value failed to parse: cannot reserve \"{}\" resource", resource);
    const std::string_view text = share.string_at({});
    if (const auto percent = parse_percentage(text); !percent)
      return invalid(at,
                     "--qos-reserved value failed to parse: failed to parse percentage \"{}\" for \"{}\" resource: {}",
                     text, resource, percent.error().message);
  }
  return {};
}

}  // namespace

Outcome check_resources(const api::Json& effective) {
  for (const std::string_view key : {"kubeReserved", "systemReserved"})
    SPILLWAY_TRY_VOID(check_reserved(effective, key));
  SPILLWAY_TRY_VOID(check_qos_reserved(effective));
  const Duration period = period_in(effective);
  const std::string text = api::format_duration(period);
  if (period != kPeriod && period != Duration{} && !is_gate_on(effective, kCpuPeriodGate))
    return invalid("cpuCFSQuotaPeriod",
                   "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{}}} requires feature gate CustomCPUCFSQuotaPeriod",
                   text);
  if (period != Duration{} && (period < kPeriodMin || period > kPeriodMax))
    return invalid("cpuCFSQuotaPeriod",
                   "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{}}} must be between 1ms and 1sec, inclusive", text);
  const double factor = memory_throttling_factor(effective);
  if (factor <= 0 || factor > 1)
    return invalid("memoryThrottlingFactor",
                   "memoryThrottlingFactor {} must be greater than 0 and less than or equal to 1.0", factor);
  const std::string_view swap = effective.string_at({"memorySwap", "swapBehavior"});
  if (!swap.empty() && swap != "NoSwap" && swap != "LimitedSwap")
    return invalid("memorySwap[swapBehavior]",
                   "memorySwap.swapBehavior \"{}\" must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"", swap);
  return {};
}

std::int64_t cpu_period_micros(const api::Json& effective) {
  const Duration period = period_in(effective);
  const bool is_custom = period != Duration{} && is_gate_on(effective, kCpuPeriodGate);
  return std::chrono::duration_cast<std::chrono::microseconds>(is_custom ? period : kPeriod).count();
}

std::optional<std::int64_t> reserved_memory_percent(const api::Json& effective) {
  if (!is_gate_on(effective, kQosReservedGate)) return std::nullopt;
  const auto percent = parse_percentage(effective.string_at({"qosReserved", "memory"}));
  return percent ? std::optional(*percent) : std::nullopt;
}

Result<Duration> restart_delay_max(const api::Json& effective) {
  constexpr Duration kDefault = minutes(5);
  const std::string_view text = effective.string_at({"crashLoopBackOff", "maxContainerRestartPeriod"});
  if (text.empty()) return kDefault;
  const std::string at = "crashLoopBackOff[maxContainerRestartPeriod]";
  if (!is_gate_on(effective, kCrashLoopGate)) {
    return invalid(
        at,
        "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must "
        "not be set");
  }
  const auto given = api::parse_duration(text);
  if (!given) return invalid(at, "expected a duration such as 60s, got \"{}\"", text);
  if (*given < seconds(1) || *given > seconds(300)) {
    return invalid(at, "CrashLoopBackOff.MaxContainerRestartPeriod (got: {} seconds) must be set between 1s and 300s",
                   std::chrono::duration<double>(*given).count());
  }
  return *given;
}

double memory_throttling_factor(const api::Json& effective) {
  const api::Json* factor = effective.find("memoryThrottlingFactor");
  return factor == nullptr ? kFactor : factor->if_double().value_or(kFactor);
}

}  // namespace spillway::agent
