#include "agent/journal.h"

#include "api/json.h"
#include "api/meta.h"

namespace spillway::agent {
namespace {

using api::Json;

Json fact_to_json(const policy::Fact& fact) {
  const Json value = std::visit([](const auto& held) { return Json(held); }, fact.value);
  return Json::object({{"name", fact.name}, {"value", value}});
}

Json reason_to_json(const policy::Reason& reason) {
  Json facts = Json::array();
  for (const policy::Fact& fact : reason.facts) facts.if_array()->push_back(fact_to_json(fact));
  return Json::object({{"code", to_string(reason.code)}, {"facts", std::move(facts)}});
}

Result<policy::Reason> reason_from_json(const Json& document) {
  const auto code = policy::parse_reason_code(document.string_at({"code"}));
  if (!code) return invalid("code", "unknown reason");
  policy::Reason reason{*code, {}};
  const Json* facts = document.find("facts");
  if (facts == nullptr || facts->if_array() == nullptr) return invalid("facts", "expected a list");
  for (const Json& fact : *facts->if_array()) {
    policy::Fact& read = reason.facts.emplace_back();
    read.name = fact.string_at({"name"});
    const Json* value = fact.find("value");
    if (value == nullptr) return invalid("facts", "a fact without value");
    if (const std::string* text = value->if_string()) {
      read.value = *text;
    } else if (const auto number = value->if_int64()) {
      read.value = *number;
    } else if (const auto fraction = value->if_double()) {
      read.value = *fraction;
    } else {
      return invalid("facts", "a fact is a number or a string");
    }
  }
  return reason;
}

std::int64_t micros(WallTime at) {
  return at.time_since_epoch().count();
}

}  // namespace

std::string to_line(const JournalEntry& entry) {
  Json annotations = Json::object();
  for (const auto& [key, value] : entry.action.annotations) annotations[key] = value;
  Json reasons = Json::array();
  for (const policy::Reason& reason : entry.reasons) reasons.if_array()->push_back(reason_to_json(reason));
  Json candidates = Json::array();
  for (const eviction::Candidate& candidate : entry.candidates) {
    candidates.if_array()->push_back(Json::object(
        {{"namespace", candidate.pod.ns}, {"name", candidate.pod.name}, {"reason", reason_to_json(candidate.reason)}}));
  }
  const eviction::EvictPod& action = entry.action;
  Json document = Json::object({{"action", "evict"},
                                {"at", api::format_micro_time(entry.at)},
                                {"atMicros", micros(entry.at)},
                                {"node", entry.node},
                                {"uid", action.uid},
                                {"namespace", action.pod.ns},
                                {"name", action.pod.name},
                                {"gracePeriodSeconds", action.grace_period_seconds},
                                {"emergency", entry.emergency},
                                {"signal", action.metric_label},
                                {"message", action.message},
                                {"annotations", std::move(annotations)},
                                {"disruptionTarget", action.disruption_target},
                                {"reasons", std::move(reasons)},
                                {"candidates", std::move(candidates)}});
  if (entry.intent) document["intent"] = true;
  return api::to_text(document);
}

Result<JournalEntry> parse_line(std::string_view line) {
  SPILLWAY_TRY(document, api::parse_json(line));
  if (document.string_at({"action"}) != "evict") return invalid("action", "expected \"evict\"");
  JournalEntry entry;
  const Json* at = document.find("atMicros");
  const std::optional<std::int64_t> at_micros = at == nullptr ? std::nullopt : at->if_int64();
  if (!at_micros) return invalid("atMicros", "expected a number");
  entry.at = WallTime(microseconds(*at_micros));
  entry.node = document.string_at({"node"});
  entry.action.uid = document.string_at({"uid"});
  if (entry.action.uid.empty()) return invalid("uid", "must not be empty");
  entry.action.pod = {std::string(document.string_at({"namespace"})), std::string(document.string_at({"name"}))};
  const Json* grace = document.find("gracePeriodSeconds");
  const std::optional<std::int64_t> grace_seconds = grace == nullptr ? std::nullopt : grace->if_int64();
  if (!grace_seconds) return invalid("gracePeriodSeconds", "expected a number");
  entry.action.grace_period_seconds = *grace_seconds;
  entry.action.metric_label = document.string_at({"signal"});
  entry.action.message = document.string_at({"message"});
  const auto flag = [&](std::string_view key) {
    const Json* value = document.find(key);
    return value != nullptr && value->if_bool().value_or(false);
  };
  entry.emergency = flag("emergency");
  entry.intent = flag("intent");
  entry.action.disruption_target = flag("disruptionTarget");
  if (const Json* annotations = document.find("annotations"); annotations != nullptr && annotations->if_object()) {
    for (const auto& [key, value] : *annotations->if_object()) {
      if (const std::string* text = value.if_string()) entry.action.annotations[key] = *text;
    }
  }
  if (const Json* reasons = document.find("reasons"); reasons != nullptr && reasons->if_array()) {
    for (const Json& each : *reasons->if_array()) {
      SPILLWAY_TRY(reason, reason_from_json(each));
      entry.reasons.push_back(std::move(reason));
    }
  }
  if (const Json* candidates = document.find("candidates"); candidates != nullptr && candidates->if_array()) {
    for (const Json& each : *candidates->if_array()) {
      const Json* reason_document = each.find("reason");
      if (reason_document == nullptr) return invalid("candidates", "a candidate without reason");
      SPILLWAY_TRY(reason, reason_from_json(*reason_document));
      entry.candidates.push_back(
          {{std::string(each.string_at({"namespace"})), std::string(each.string_at({"name"}))}, std::move(reason)});
    }
  }
  return entry;
}

}  // namespace spillway::agent
