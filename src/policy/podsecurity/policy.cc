#include "policy/podsecurity/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace spillway::podsecurity {

namespace {

constexpr std::array kLevels{Level::kPrivileged, Level::kBaseline, Level::kRestricted};

const std::string* label(const api::Json& labels, std::string_view key) {
  const api::Json* found = labels.find(key);
  return found == nullptr ? nullptr : found->if_string();
}

bool same(const LevelVersion& one, const LevelVersion& other) {
  return one == other || (one.level == Level::kPrivileged && other.level == Level::kPrivileged);
}

void report(const std::string& key, const std::string& value, std::string_view expected, api::FieldErrors& errors) {
  errors.invalid(api::key_path("metadata.labels", key), value, expected);
}

/// Reads the labels of one mode into `found`, with errors for wrong values. True if they name a valid level.
bool take_labels(const api::Json& labels, Mode mode, NamespacePolicy& found) {
  LevelVersion& wanted = found.policy.of(mode);
  bool named = false;
  if (const std::string* value = label(labels, level_label(mode)); value != nullptr) {
    const std::optional<Level> level = parse_level(*value);
    if (!level) report(level_label(mode), *value, kLevelExpected, found.errors);
    wanted.level = level.value_or(mode == Mode::kEnforce ? Level::kRestricted : Level::kPrivileged);
    named = level.has_value();
  }
  if (const std::string* value = label(labels, version_label(mode)); value != nullptr) {
    const std::optional<Version> version = parse_version(*value);
    if (!version) report(version_label(mode), *value, kVersionExpected, found.errors);
    wanted.version = version.value_or(Version{});
  }
  return named;
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::kPrivileged:
      return "privileged";
    case Level::kBaseline:
      return "baseline";
    case Level::kRestricted:
      return "restricted";
  }
  return {};
}

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::kEnforce:
      return "enforce";
    case Mode::kAudit:
      return "audit";
    case Mode::kWarn:
      return "warn";
  }
  return {};
}

std::optional<Level> parse_level(std::string_view text) {
  const auto* found = std::ranges::find(kLevels, text, [](Level level) { return to_string(level); });
  return found == kLevels.end() ? std::nullopt : std::optional(*found);
}

std::string Version::text() const {
  return minor ? fmt::format("v1.{}", *minor) : std::string("latest");
}

std::optional<Version> parse_version(std::string_view text) {
  if (text == "latest") return Version{};
  if (!text.starts_with("v1.")) return std::nullopt;
  text.remove_prefix(3);
  const bool digits = !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  std::int32_t minor = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), minor);
  return failed == std::errc() ? std::optional(Version{minor}) : std::nullopt;
}

std::string LevelVersion::text() const {
  return fmt::format("{}:{}", to_string(level), version.text());
}

const LevelVersion& Policy::of(Mode mode) const {
  return mode == Mode::kEnforce ? enforce : mode == Mode::kAudit ? audit : warn;
}

LevelVersion& Policy::of(Mode mode) {
  return mode == Mode::kEnforce ? enforce : mode == Mode::kAudit ? audit : warn;
}

bool Policy::all_privileged() const {
  return std::ranges::all_of(kModes, [this](Mode mode) { return of(mode).level == Level::kPrivileged; });
}

bool equivalent(const Policy& one, const Policy& other) {
  return std::ranges::all_of(kModes, [&](Mode mode) { return same(one.of(mode), other.of(mode)); });
}

std::string level_label(Mode mode) {
  return fmt::format("{}{}", kLabelPrefix, to_string(mode));
}

std::string version_label(Mode mode) {
  return level_label(mode) + "-version";
}

NamespacePolicy policy_of(const api::Json& labels, const Policy& defaults) {
  NamespacePolicy found{.policy = defaults, .errors = {}};
  if (labels.if_object() == nullptr || labels.if_object()->empty()) return found;
  const bool enforces = take_labels(labels, Mode::kEnforce, found);
  take_labels(labels, Mode::kAudit, found);
  take_labels(labels, Mode::kWarn, found);
  Policy& policy = found.policy;
  const bool warns = label(labels, level_label(Mode::kWarn)) != nullptr;
  if (!enforces || warns || policy.enforce.level <= policy.warn.level) return found;
  policy.warn.level = policy.enforce.level;
  if (label(labels, version_label(Mode::kWarn)) == nullptr) policy.warn.version = policy.enforce.version;
  return found;
}

}  // namespace spillway::podsecurity
