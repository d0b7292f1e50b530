#include "policy/eviction/threshold_parse.h"

#include "api/text/duration.h"
#include "base/ascii.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace spillway::eviction {
namespace {

bool is_hex_digit(char c) {
  return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f');
}

bool has_hex_prefix(std::string_view unsigned_text) {
  return unsigned_text.size() > 2 && unsigned_text[0] == '0' && to_lower(unsigned_text[1]) == 'x';
}

/// "_" only between digits, or between a base prefix and a digit.
bool underscores_in_place(std::string_view unsigned_text) {
  const bool prefixed = unsigned_text.size() >= 2 && unsigned_text[0] == '0' &&
                        std::string_view("box").find(to_lower(unsigned_text[1])) != std::string_view::npos;
  const bool hex = prefixed && to_lower(unsigned_text[1]) == 'x';
  char seen = prefixed ? '0' : '^';
  for (const char c : unsigned_text.substr(prefixed ? 2 : 0)) {
    if (is_digit(c) || (hex && is_hex_digit(c))) {
      seen = '0';
    } else if (c == '_') {
      if (seen != '0') return false;
      seen = '_';
    } else {
      if (seen == '_') return false;
      seen = '!';
    }
  }
  return seen != '_';
}

struct FloatText {
  std::string digits;  // without sign, prefix and "_", as std::from_chars reads it
  bool hex = false;
  bool tiny = false;  // written with a negative exponent, or as a fraction below one
};

/// nullopt: not the syntax of a Go floating-point literal.
std::optional<FloatText> scan_float(std::string_view text) {
  FloatText scanned;
  scanned.hex = has_hex_prefix(text);
  std::size_t i = scanned.hex ? 2 : 0;
  bool dot = false;
  bool any_digit = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '_') continue;
    if (c == '.' && !dot) {
      dot = true;
    } else if (is_digit(c) || (scanned.hex && is_hex_digit(c))) {
      any_digit = true;
    } else {
      break;
    }
    scanned.digits += c;
  }
  if (!any_digit) return std::nullopt;
  scanned.tiny = scanned.digits.starts_with("0.") || scanned.digits.starts_with('.');
  if (i < text.size() && to_lower(text[i]) == (scanned.hex ? 'p' : 'e')) {
    scanned.digits += text[i++];
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) {
      scanned.tiny = text[i] == '-';
      if (text[i] == '-') scanned.digits += '-';  // from_chars accepts no "+" in an exponent
      ++i;
    }
    if (i >= text.size() || !is_digit(text[i])) return std::nullopt;
    for (; i < text.size() && (is_digit(text[i]) || text[i] == '_'); ++i) {
      if (text[i] != '_') scanned.digits += text[i];
    }
  } else if (scanned.hex) {
    return std::nullopt;  // a hexadecimal float needs its exponent
  }
  if (i != text.size()) return std::nullopt;
  if (text.find('_') != std::string_view::npos && !underscores_in_place(text)) return std::nullopt;
  return scanned;
}

template <typename Float>
std::from_chars_result read(const FloatText& scanned, Float& value) {
  const auto format = scanned.hex ? std::chars_format::hex : std::chars_format::general;
  return std::from_chars(scanned.digits.data(), scanned.digits.data() + scanned.digits.size(), value, format);
}

Result<float> parse_go_float(std::string_view text) {
  const bool negative = text.starts_with('-');
  const bool has_sign = negative || text.starts_with('+');
  const std::string_view magnitude = text.substr(has_sign ? 1 : 0);
  if (!has_sign && equal_ignoring_case(text, "nan")) return std::numeric_limits<float>::quiet_NaN();
  float value = 0;
  if (equal_ignoring_case(magnitude, "inf") || equal_ignoring_case(magnitude, "infinity")) {
    value = std::numeric_limits<float>::infinity();
  } else {
    const std::optional<FloatText> scanned = scan_float(magnitude);
    if (!scanned) return invalid({}, "strconv.ParseFloat: parsing \"{}\": invalid syntax", text);
    if (const auto outcome = read(*scanned, value); outcome.ec == std::errc::result_out_of_range) {
      double wide = 0;  // too small for float is zero (or denormal), too large is an error
      const auto retried = read(*scanned, wide);
      const bool small = retried.ec == std::errc{} ? std::abs(wide) < 1 : scanned->tiny;
      if (!small) return invalid({}, "strconv.ParseFloat: parsing \"{}\": value out of range", text);
      value = retried.ec == std::errc{} ? static_cast<float>(wide) : 0.0F;
    }
  }
  return negative ? -value : value;
}

Result<Signal> known_signal(std::string_view text) {
  const std::optional<Signal> signal = parse_signal(text);
  if (!signal || !is_configurable(*signal)) return invalid({}, "unsupported eviction signal {}", text);
  return *signal;
}

/// nullopt: the entry is ignored ("0%", "100%").
Result<std::optional<ThresholdValue>> parse_value(Signal signal, std::string_view text) {
  if (text.ends_with('%')) {
    if (text == "0%" || text == "100%") return std::optional<ThresholdValue>();
    SPILLWAY_TRY(percentage, parse_percentage(text));
    if (percentage.share < 0) {
      return invalid({}, "eviction percentage threshold {} must be >= 0%: {}", to_string(signal), text);
    }
    if (percentage.share > 1) {
      return invalid({}, "eviction percentage threshold {} must be <= 100%: {}", to_string(signal), text);
    }
    return std::optional<ThresholdValue>(percentage);
  }
  SPILLWAY_TRY(quantity, api::parse_quantity(text));
  if (quantity.sign() <= 0) {
    return invalid({}, "eviction threshold {} must be positive: {}", to_string(signal), quantity.to_string());
  }
  return std::optional<ThresholdValue>(quantity);
}

Result<std::vector<Threshold>> parse_values(const SignalMap& entries) {
  std::vector<Threshold> thresholds;
  for (const auto& [name, text] : entries) {
    SPILLWAY_TRY(signal, known_signal(name));
    SPILLWAY_TRY(value, parse_value(signal, text));
    if (value) thresholds.push_back({.signal = signal, .value = *value, .grace_period = {}, .min_reclaim = {}});
  }
  return thresholds;
}

Result<std::map<Signal, Duration>> parse_grace_periods(const SignalMap& entries) {
  std::map<Signal, Duration> periods;
  for (const auto& [name, text] : entries) {
    SPILLWAY_TRY(signal, known_signal(name));
    SPILLWAY_TRY(period, api::parse_duration(text));
    if (period < Duration{}) {
      return invalid({}, "invalid eviction grace period specified: {}, must be a positive value", text);
    }
    periods[signal] = period;
  }
  return periods;
}

Result<std::map<Signal, ThresholdValue>> parse_minimum_reclaims(const SignalMap& entries) {
  std::map<Signal, ThresholdValue> reclaims;
  for (const auto& [name, text] : entries) {
    SPILLWAY_TRY(signal, known_signal(name));
    if (text.ends_with('%')) {
      SPILLWAY_TRY(percentage, parse_percentage(text));
      if (percentage.share <= 0) {
        return invalid({}, "eviction percentage minimum reclaim {} must be positive: {}", name, text);
      }
      reclaims[signal] = percentage;
    } else {
      SPILLWAY_TRY(quantity, api::parse_quantity(text));
      if (quantity.sign() < 0) return invalid({}, "negative eviction minimum reclaim specified for {}", name);
      reclaims[signal] = quantity;
    }
  }
  return reclaims;
}

}  // namespace

const SignalMap& default_hard_thresholds() {
  static const SignalMap defaults{{"memory.available", "100Mi"},
                                  {"nodefs.available", "10%"},
                                  {"nodefs.inodesFree", "5%"},
                                  {"imagefs.available", "15%"},
                                  {"imagefs.inodesFree", "5%"}};
  return defaults;
}

Result<Fraction> parse_percentage(std::string_view text) {
  const std::string_view number = text.substr(0, text.find_last_not_of('%') + 1);
  SPILLWAY_TRY(percent, parse_go_float(number));
  return Fraction{percent / 100.0F};
}

Result<std::vector<Threshold>> parse_thresholds(const ThresholdConfig& config) {
  SPILLWAY_TRY(thresholds, parse_values(config.hard));
  SPILLWAY_TRY(soft, parse_values(config.soft));
  SPILLWAY_TRY(grace_periods, parse_grace_periods(config.soft_grace_period));
  SPILLWAY_TRY(reclaims, parse_minimum_reclaims(config.minimum_reclaim));
  for (Threshold& threshold : soft) {
    const auto period = grace_periods.find(threshold.signal);
    if (period == grace_periods.end()) {
      return invalid({}, "grace period must be specified for the soft eviction threshold {}",
                     to_string(threshold.signal));
    }
    threshold.grace_period = period->second;
    thresholds.push_back(std::move(threshold));
  }
  for (Threshold& threshold : thresholds) {
    const auto reclaim = reclaims.find(threshold.signal);
    if (reclaim != reclaims.end()) threshold.min_reclaim = reclaim->second;
  }
  if (config.enforce_pods == EnforcePods::kNo) return thresholds;
  const std::size_t configured = thresholds.size();
  for (std::size_t i = 0; i < configured; ++i) {
    if (thresholds[i].signal != Signal::kMemoryAvailable || !thresholds[i].is_hard()) continue;
    Threshold copy = thresholds[i];
    copy.signal = Signal::kAllocatableMemoryAvailable;
    thresholds.push_back(std::move(copy));
  }
  return thresholds;
}

std::vector<Signal> never_met(const std::vector<Threshold>& thresholds) {
  std::vector<Signal> signals;
  for (const Threshold& threshold : thresholds) {
    const auto* share = std::get_if<Fraction>(&threshold.value);
    if (share != nullptr && std::isnan(share->share)) signals.push_back(threshold.signal);
  }
  return signals;
}

Outcome SignalFlag::add(std::string_view text) {
  const char separator = syntax_ == PairSyntax::kLessThan ? '<' : '=';
  SignalMap entries;
  if (given_) entries = entries_;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    if (piece.empty()) continue;
    const auto at = piece.find(separator);
    if (at == std::string_view::npos) {
      return invalid({}, "malformed pair, expect string{}string", separator);
    }
    entries.insert_or_assign(std::string(trimmed(piece.substr(0, at), kWhiteSpace)),
                             std::string(trimmed(piece.substr(at + 1), kWhiteSpace)));
  }
  entries_ = std::move(entries);
  given_ = true;
  return {};
}

}  // namespace spillway::eviction
