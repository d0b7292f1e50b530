#include "sim/incident.h"

#include "api/text/duration.h"
#include "base/edit_distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace spillway::sim {

namespace {

using api::Json;

constexpr std::size_t kStepsMax = 1000;
constexpr std::int64_t kNodesMax = 5000;
constexpr std::int64_t kRepeatsMax = 1000;
constexpr int kDepthMax = 4;
using Keys = std::initializer_list<std::string_view>;

std::string_view nearest(std::string_view key, Keys known) {
  return *std::ranges::min_element(known, {}, [key](std::string_view each) { return edit_distance(key, each); });
}

/// An object that has no other keys than these.
Outcome check_keys(const Json& object, const std::string& at, Keys known) {
  if (object.if_object() == nullptr) return invalid(at, "must be a mapping");
  for (const auto& [key, value] : *object.if_object()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    return invalid(at, "unknown key \"{}\"; did you mean \"{}\"?", key, nearest(key, known));
  }
  return {};
}

Result<std::int64_t> read_integer(const Json& object, std::string_view key, const std::string& at, std::int64_t low,
                                  std::int64_t high, std::optional<std::int64_t> otherwise) {
  const Json* value = object.find(key);
  if (value == nullptr && otherwise) return *otherwise;
  const auto number = value == nullptr ? std::nullopt : value->if_int64();
  if (!number || *number < low || *number > high) {
    return invalid(fmt::format("{}.{}", at, key), "must be a whole number from {} to {}", low, high);
  }
  return *number;
}

Result<std::string> read_text(const Json& object, std::string_view key, const std::string& at) {
  const Json* value = object.find(key);
  if (value == nullptr || value->if_string() == nullptr || value->if_string()->empty()) {
    return invalid(fmt::format("{}.{}", at, key), "must be a text");
  }
  return *value->if_string();
}

/// "90s", "1h30m"; with a sign if it may be negative.
Result<Duration> read_duration(const Json& value, const std::string& at, bool may_be_negative = false) {
  if (value.if_string() == nullptr) return invalid(at, "must be a duration, e.g. 90s");
  std::string_view text = *value.if_string();
  const bool negative = may_be_negative && text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const Result<Duration> parsed = api::parse_duration(text);
  if (!parsed || *parsed < Duration::zero()) return invalid(at, "must be a duration, e.g. 90s, got \"{}\"", text);
  return negative ? -*parsed : *parsed;
}

Result<Duration> read_duration_of(const Json& object, std::string_view key, const std::string& at) {
  const Json* value = object.find(key);
  if (value == nullptr) return invalid(fmt::format("{}.{}", at, key), "is missing");
  return read_duration(*value, fmt::format("{}.{}", at, key));
}

/// "all", or a mapping that narrows; one of a rolling reboot has its times beside that.
Result<NodeChoice> read_nodes(const Json& value, const std::string& at, bool with_times = false) {
  NodeChoice choice;
  if (value.if_string() != nullptr && *value.if_string() == "all") return choice;
  if (value.if_object() == nullptr) return invalid(at, "must be \"all\" or a mapping of zone, skip, every or only");
  if (with_times) {
    SPILLWAY_TRY_VOID(check_keys(value, at, {"zone", "skip", "every", "only", "away", "interval"}));
  } else {
    SPILLWAY_TRY_VOID(check_keys(value, at, {"zone", "skip", "every", "only"}));
  }
  if (value.find("zone") != nullptr) {
    SPILLWAY_TRY(zone, read_text(value, "zone", at));
    choice.zone = zone;
  }
  SPILLWAY_TRY(skip, read_integer(value, "skip", at, 0, kNodesMax, 0));
  SPILLWAY_TRY(every, read_integer(value, "every", at, 1, kNodesMax, 1));
  choice.skip = static_cast<std::size_t>(skip);
  choice.every = static_cast<std::size_t>(every);
  const Json* only = value.find("only");
  if (only == nullptr) return choice;
  if (only->if_array() == nullptr || only->if_array()->empty())
    return invalid(at + ".only", "must be a list of numbers");
  for (const Json& each : *only->if_array()) {
    const auto number = each.if_int64();
    if (!number || *number < 0 || *number >= kNodesMax)
      return invalid(at + ".only", "must be a list of numbers from 0");
    choice.only.push_back(static_cast<std::size_t>(*number));
  }
  return choice;
}

/// Steps about nodes can be about the controllers instead.
Result<Step> read_crash(const Json& value, const std::string& at, OnNodes::What node, OnControllers::What controllers) {
  if (value.if_string() != nullptr && *value.if_string() == "controllers") return OnControllers{controllers};
  SPILLWAY_TRY(nodes, read_nodes(value, at));
  return OnNodes{node, nodes};
}

Result<Step> read_rolling_reboot(const Json& value, const std::string& at) {
  SPILLWAY_TRY(nodes, read_nodes(value, at, true));
  SPILLWAY_TRY(away, read_duration_of(value, "away", at));
  SPILLWAY_TRY(every, read_duration_of(value, "interval", at));
  return RollingReboot{nodes, away, every};
}

Result<std::vector<Step>> read_steps(const Json& value, const std::string& at, int depth);

Result<Step> read_step(const Json& value, const std::string& at, int depth) {
  SPILLWAY_TRY_VOID(check_keys(value, at,
                               {"wait", "awaitUnknown", "partition", "heal", "crash", "restart", "rollingReboot",
                                "jumpClock", "muteWatch", "unmuteWatch", "repeat"}));
  if (value.if_object()->size() != 1) return invalid(at, "must have one key: what happens");
  const auto& [kind, what] = *value.if_object()->begin();
  const std::string here = at + "." + kind;
  if (kind == "partition" || kind == "heal") {
    SPILLWAY_TRY(nodes, read_nodes(what, here));
    return OnNodes{kind == "heal" ? OnNodes::What::kHeal : OnNodes::What::kPartition, nodes};
  }
  if (kind == "crash") return read_crash(what, here, OnNodes::What::kCrash, OnControllers::What::kCrash);
  if (kind == "restart") return read_crash(what, here, OnNodes::What::kRestart, OnControllers::What::kRestart);
  if (kind == "rollingReboot") return read_rolling_reboot(what, here);
  if (kind == "muteWatch") {
    SPILLWAY_TRY(path, read_text(value, kind, at));
    return MuteWatch{path};
  }
  if (kind == "unmuteWatch") return MuteWatch{};
  if (kind == "repeat") {
    SPILLWAY_TRY_VOID(check_keys(what, here, {"times", "steps"}));
    SPILLWAY_TRY(times, read_integer(what, "times", here, 1, kRepeatsMax, std::nullopt));
    const Json* inner = what.find("steps");
    SPILLWAY_TRY(steps, read_steps(inner == nullptr ? Json() : *inner, here + ".steps", depth + 1));
    return Repeat{times, steps};
  }
  SPILLWAY_TRY(time, read_duration(what, here, kind == "jumpClock"));
  if (kind == "jumpClock") return JumpClock{time};
  if (kind == "awaitUnknown") return AwaitUnknown{time};
  return Wait{time};
}

Result<std::vector<Step>> read_steps(const Json& value, const std::string& at, int depth) {
  const Json::Array* list = value.if_array();
  if (list == nullptr || list->empty() || list->size() > kStepsMax) {
    return invalid(at, "must be a list of 1 to {} steps", kStepsMax);
  }
  if (depth > kDepthMax) return invalid(at, "repeats are nested deeper than {}", kDepthMax);
  std::vector<Step> steps;
  for (std::size_t i = 0; i < list->size(); ++i) {
    SPILLWAY_TRY(step, read_step((*list)[i], fmt::format("{}[{}]", at, i), depth));
    steps.push_back(step);
  }
  return steps;
}

/// Zones are called zone-0, zone-1 and so on, nodes go by their number.
Outcome check_choice(const NodeChoice& choice, const std::string& at, std::int64_t nodes, std::int64_t zones) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < zones; ++i) names.push_back(fmt::format("zone-{}", i));
  if (choice.zone && std::ranges::find(names, *choice.zone) == names.end()) {
    return invalid(at + ".zone", "there is no zone \"{}\"; this cluster has {}", *choice.zone,
                   zones == 1 ? names.front() : fmt::format("{} to {}", names.front(), names.back()));
  }
  for (const std::size_t node : choice.only) {
    if (node < static_cast<std::size_t>(nodes)) continue;
    return invalid(at + ".only", "there is no node {}; this cluster has 0 to {}", node, nodes - 1);
  }
  return {};
}

Outcome check_choices(const std::vector<Step>& steps, const std::string& at, std::int64_t nodes, std::int64_t zones) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", at, i);
    if (const auto* step = std::get_if<OnNodes>(&steps[i])) {
      SPILLWAY_TRY_VOID(check_choice(step->nodes, here, nodes, zones));
    } else if (const auto* reboot = std::get_if<RollingReboot>(&steps[i])) {
      SPILLWAY_TRY_VOID(check_choice(reboot->nodes, here, nodes, zones));
    } else if (const auto* repeat = std::get_if<Repeat>(&steps[i])) {
      SPILLWAY_TRY_VOID(check_choices(repeat->steps, here + ".repeat.steps", nodes, zones));
    }
  }
  return {};
}

}  // namespace

Result<Incident> parse_incident(const Json& document, const std::string& file) {
  SPILLWAY_TRY_VOID(check_keys(document, file, {"name", "story", "nodes", "zones", "podsPerNode", "steps"}));
  SPILLWAY_TRY(name, read_text(document, "name", file));
  SPILLWAY_TRY(story, read_text(document, "story", file));
  SPILLWAY_TRY(nodes, read_integer(document, "nodes", file, 1, kNodesMax, 30));
  SPILLWAY_TRY(zones, read_integer(document, "zones", file, 1, nodes, std::min<std::int64_t>(3, nodes)));
  SPILLWAY_TRY(pods, read_integer(document, "podsPerNode", file, 0, 20, 2));
  const Json* steps = document.find("steps");
  SPILLWAY_TRY(parsed, read_steps(steps == nullptr ? Json() : *steps, file + ".steps", 0));
  SPILLWAY_TRY_VOID(check_choices(parsed, file + ".steps", nodes, zones));
  return Incident{
      name,  story, static_cast<std::int32_t>(nodes), static_cast<std::int32_t>(zones), static_cast<std::int32_t>(pods),
      parsed};
}

}  // namespace spillway::sim
