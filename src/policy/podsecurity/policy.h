// The Pod Security policy of a namespace: a level and its version, for each of three modes. Thread: any (pure). Source:
// Kubernetes docs, "Pod Security Admission", "Pod Security Standards".
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::podsecurity {

/// Levels from the laxest to the strictest.
enum class Level : std::uint8_t { kPrivileged, kBaseline, kRestricted };

enum class Mode : std::uint8_t { kEnforce, kAudit, kWarn };

inline constexpr std::array kModes{Mode::kEnforce, Mode::kAudit, Mode::kWarn};

/// "privileged", "baseline", "restricted".
std::string_view to_string(Level level);
/// "enforce", "audit", "warn".
std::string_view to_string(Mode mode);
std::optional<Level> parse_level(std::string_view text);

/// Upstream's errors for a text that is no level or no version.
inline constexpr std::string_view kLevelExpected = "must be one of privileged, baseline, restricted";
inline constexpr std::string_view kVersionExpected = "must be \"latest\" or \"v1.x\"";

/// The newest version with checks of its own; later ones use its checks.
inline constexpr std::int32_t kNewestMinor = 36;

struct Version {
  std::optional<std::int32_t> minor;  // minor version of v1; nullopt: the latest

  friend bool operator==(const Version&, const Version&) = default;

  std::string text() const;  // "latest", "v1.25"
};

/// "latest" or "v1.N", N without leading zeros; nullopt for anything else.
std::optional<Version> parse_version(std::string_view text);

struct LevelVersion {
  Level level = Level::kPrivileged;
  Version version;

  friend bool operator==(const LevelVersion&, const LevelVersion&) = default;

  std::string text() const;  // "restricted:latest"
};

struct Policy {
  LevelVersion enforce;
  LevelVersion audit;
  LevelVersion warn;

  friend bool operator==(const Policy&, const Policy&) = default;

  const LevelVersion& of(Mode mode) const;
  LevelVersion& of(Mode mode);

  bool all_privileged() const;
};

/// True if both require the same; "privileged" is the same in every version.
bool equivalent(const Policy& one, const Policy& other);

inline constexpr std::string_view kLabelPrefix = "pod-security.kubernetes.io/";
/// "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version".
std::string level_label(Mode mode);
std::string version_label(Mode mode);

struct NamespacePolicy {
  Policy policy;
  api::FieldErrors errors;  // errors in the labels, at metadata.labels[…]
};

/// The policy in the labels of a namespace; `defaults` for labels that are absent. A wrong label means the strictest
/// level for enforce, and the privileged one for audit and warn. A namespace that sets enforce and not warn warns by
/// the enforced level, if that is stricter than the default.
NamespacePolicy policy_of(const api::Json& labels, const Policy& defaults);

}  // namespace spillway::podsecurity
