// The Kubernetes lines of `--compat`, and the settings of each: the only place that knows them by name.
// Thread: any (pure functions). Source: spec "Node lifecycle", profiles and S18.
#pragma once

#include "base/time.h"
#include "policy/lifecycle/profile.h"

#include <array>
#include <optional>
#include <string_view>

namespace spillway::lifecycle {

enum class Line { kV1_7, kV1_19, kV1_29, kV1_34 };

inline constexpr std::array kLines = {Line::kV1_7, Line::kV1_19, Line::kV1_29, Line::kV1_34};

std::string_view to_string(Line line);
/// "v1.29" is kV1_29; nullopt: an unknown line.
std::optional<Line> parse_line(std::string_view text);

LineFacts facts_of(Line line);
/// The remedies that upstream has itself: its later lines mend some of its defects.
Remedies remedies_of(Line line);
/// All settings of one upstream line.
Profile upstream_profile(Line line, EvictionMode mode);

/// The defaults of one Kubernetes line, for settings that the user leaves out.
struct LineDefaults {
  EvictionMode mode = EvictionMode::kTaint;          // 1.7: taints are behind a gate
  Duration node_monitor_grace_period = seconds(50);  // 40 s up to 1.31
};

/// nullopt: Spillway's own.
LineDefaults defaults_of(std::optional<Line> line);

}  // namespace spillway::lifecycle
