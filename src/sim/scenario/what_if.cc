#include "sim/scenario/what_if.h"

#include "api/text/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

using api::Json;

constexpr std::int64_t kMinutesMax = 60;
constexpr std::int64_t kMinutesAfter = 15;  // time to watch after the last event
constexpr std::size_t kNodesMax = 1000;
constexpr std::size_t kNameBytesMax = 253;
constexpr std::size_t kAmountBytesMax = 32;

bool is_made_of(std::string_view text, std::string_view besides) {
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || besides.contains(c);
  });
}

Outcome check_members(const Json& question, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : *question.if_object()) {
    if (std::ranges::find(known, name) == known.end()) {
      return invalid(std::string(name), "is not asked; expected {}", fmt::join(known, ", "));
    }
  }
  return {};
}

Result<std::string> text_in(const Json* value, const std::string& at, std::string_view besides, std::size_t bytes_max) {
  const std::string* text = value == nullptr ? nullptr : value->if_string();
  if (text == nullptr || text->empty() || text->size() > bytes_max || !is_made_of(*text, besides)) {
    return invalid(at, "expected letters, digits and {}, {} at most", besides, bytes_max);
  }
  return *text;
}

Result<std::int64_t> minutes_of(const Json& question) {
  const Json* value = question.find("minutes");
  const auto minutes = value == nullptr ? std::nullopt : value->if_int64();
  if (!minutes || *minutes < 1 || *minutes > kMinutesMax) return invalid("minutes", "expected 1 to {}", kMinutesMax);
  return *minutes;
}

Result<Json> silent_nodes(const Json& question) {
  if (question.find("zone") != nullptr) {
    SPILLWAY_TRY(zone, text_in(question.find("zone"), "zone", "-_.", kNameBytesMax));
    return Json::object({{"zone", zone}});
  }
  const Json* nodes = question.find("nodes");
  const auto* list = nodes == nullptr ? nullptr : nodes->if_array();
  if (list == nullptr || list->empty() || list->size() > kNodesMax) {
    return invalid("nodes", "expected 1 to {} names", kNodesMax);
  }
  Json names = Json::array();
  for (const Json& each : *list) {
    SPILLWAY_TRY(name, text_in(&each, "nodes", "-.", kNameBytesMax));
    names.if_array()->emplace_back(name);
  }
  return Json::object({{"names", std::move(names)}});
}

Result<std::string> threshold_config(const Json& amount) {
  SPILLWAY_TRY(text, text_in(&amount, "memoryAvailable", ".%", kAmountBytesMax));
  if (!text.ends_with('%')) {
    const auto quantity = api::parse_quantity(text);
    if (!quantity) return invalid("memoryAvailable", "expected an amount like 100Mi or 5%, got \"{}\"", text);
  }
  return api::to_text(
      Json::object({{"agents", Json::object({{"evictionHard", Json::object({{"memory.available", text}})}})}}));
}

std::string scenario_text(const std::string& story, Json event, std::int64_t minutes) {
  event["at"] = "0s";
  Json timeline = Json::array();
  timeline.if_array()->push_back(std::move(event));
  return api::to_text(Json::object({{"name", "what-if"},
                                    {"story", story},
                                    {"timeline", std::move(timeline)},
                                    {"duration", fmt::format("{}m", minutes + kMinutesAfter)}}));
}

Result<WhatIf> parse_growth(const Json& question) {
  SPILLWAY_TRY_VOID(check_members(question, {"pods", "to", "minutes", "memoryAvailable"}));
  SPILLWAY_TRY(minutes, minutes_of(question));
  SPILLWAY_TRY(pods, text_in(question.find("pods"), "pods", "-./*", kNameBytesMax));
  SPILLWAY_TRY(to, text_in(question.find("to"), "to", ".", kAmountBytesMax));
  const auto amount = api::parse_quantity(to);
  if (!amount) return invalid("to", "expected an amount of memory like 2Gi, got \"{}\"", to);
  const Json* thresholds = question.find("memoryAvailable");
  const auto* both = thresholds == nullptr ? nullptr : thresholds->if_array();
  if (both == nullptr || both->size() != 2) return invalid("memoryAvailable", "expected two thresholds");
  WhatIf what_if;
  SPILLWAY_TRY(config_a, threshold_config((*both)[0]));
  SPILLWAY_TRY(config_b, threshold_config((*both)[1]));
  what_if.config_a = std::move(config_a);
  what_if.config_b = std::move(config_b);
  what_if.scenario = scenario_text(
      fmt::format("{} use {} each within {} minutes", pods, to, minutes),
      Json::object({{"memory", Json::object({{"pods", pods}, {"to", to}, {"over", fmt::format("{}m", minutes)}})}}),
      minutes);
  return what_if;
}

}  // namespace

Result<WhatIf> parse_what_if(const Json& question) {
  if (question.if_object() == nullptr) return invalid("question", "expected an object");
  if (question.find("pods") != nullptr) return parse_growth(question);
  SPILLWAY_TRY_VOID(check_members(question, {"zone", "nodes", "minutes"}));
  if (question.find("zone") != nullptr && question.find("nodes") != nullptr)
    return invalid("zone", "is asked beside nodes");
  SPILLWAY_TRY(minutes, minutes_of(question));
  SPILLWAY_TRY(nodes, silent_nodes(question));
  return WhatIf{.scenario = scenario_text(
                    fmt::format("nodes are silent for {} minutes", minutes),
                    Json::object({{"partition", std::move(nodes)}, {"for", fmt::format("{}m", minutes)}}), minutes),
                .config_a = "brakes: off",
                .config_b = "brakes: on"};
}

}  // namespace spillway::sim
