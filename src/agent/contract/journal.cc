#include "agent/contract/journal.h"

#include "api/json/json.h"
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "policy/decision_json.h"

#include <functional>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

Json eviction_to_json(const eviction::EvictPod& action) {
  Json annotations = Json::object();
  for (const auto& [key, value] : action.annotations) annotations[key] = value;
  return Json::object({{"uid", action.uid},
                       {"namespace", action.pod.ns},
                       {"name", action.pod.name},
                       {"gracePeriodSeconds", action.grace_period_seconds},
                       {"signal", action.metric_label},
                       {"message", action.message},
                       {"annotations", std::move(annotations)},
                       {"disruptionTarget", action.disruption_target}});
}

Result<eviction::EvictPod> eviction_from_json(const Json& document) {
  eviction::EvictPod action;
  action.uid = document.string_at({"uid"});
  if (action.uid.empty()) return invalid("evict.uid", "must not be empty");
  action.pod = {std::string(document.string_at({"namespace"})), std::string(document.string_at({"name"}))};
  const Json* grace = document.find("gracePeriodSeconds");
  const std::optional<std::int64_t> grace_seconds = grace == nullptr ? std::nullopt : grace->if_int64();
  if (!grace_seconds) return invalid("evict.gracePeriodSeconds", "expected a number");
  action.grace_period_seconds = *grace_seconds;
  action.metric_label = document.string_at({"signal"});
  action.message = document.string_at({"message"});
  const Json* disruption = document.find("disruptionTarget");
  action.disruption_target = disruption != nullptr && disruption->if_bool().value_or(false);
  if (const Json* annotations = document.find("annotations"); annotations != nullptr && annotations->if_object()) {
    for (const auto& [key, value] : *annotations->if_object()) {
      if (const std::string* text = value.if_string()) action.annotations[key] = *text;
    }
  }
  return action;
}

Result<JournalLine> parse_aftermath(const Json& document) {
  Aftermath aftermath;
  aftermath.uid = document.string_at({"uid"});
  if (aftermath.uid.empty()) return invalid("aftermath.uid", "must not be empty");
  if (const Json* at = document.find("atMicros")) {
    aftermath.at = WallTime(microseconds(at->if_int64().value_or(0)));
  }
  SPILLWAY_TRY(facts, policy::facts_from_json(document.find("facts")));
  aftermath.facts = std::move(facts);
  return JournalLine(std::move(aftermath));
}

}  // namespace

std::string to_line(const JournalEntry& entry) {
  Json document = Json::object({{"decision", policy::to_json(entry.decision)}, {"emergency", entry.emergency}});
  if (entry.intent) document["intent"] = true;
  if (entry.eviction) document["evict"] = eviction_to_json(*entry.eviction);
  return api::to_text(document);
}

std::string to_line(const Aftermath& aftermath) {
  return api::to_text(Json::object({{"aftermath", Json::object({{"uid", aftermath.uid},
                                                                {"at", api::format_micro_time(aftermath.at)},
                                                                {"atMicros", aftermath.at.time_since_epoch().count()},
                                                                {"facts", policy::to_json(aftermath.facts)}})}}));
}

Result<JournalLine> parse_line(std::string_view line) {
  SPILLWAY_TRY(document, api::parse_json(line));
  if (const Json* aftermath = document.find("aftermath")) return parse_aftermath(*aftermath);
  const Json* decision_document = document.find("decision");
  if (decision_document == nullptr) return invalid("decision", "missing");
  JournalEntry entry;
  SPILLWAY_TRY(decision, policy::decision_from_json(*decision_document));
  entry.decision = std::move(decision);
  const auto flag = [&](std::string_view key) {
    const Json* value = document.find(key);
    return value != nullptr && value->if_bool().value_or(false);
  };
  entry.emergency = flag("emergency");
  entry.intent = flag("intent");
  if (const Json* evict = document.find("evict")) {
    SPILLWAY_TRY(action, eviction_from_json(*evict));
    entry.eviction = std::move(action);
  }
  return JournalLine(std::move(entry));
}

std::vector<JournalEntry> read_journal(std::string_view text) {
  std::vector<JournalEntry> entries;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    auto line = parse_line(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (!line) continue;
    if (auto* entry = std::get_if<JournalEntry>(&*line)) {
      entries.push_back(std::move(*entry));
      continue;
    }
    const auto& aftermath = std::get<Aftermath>(*line);
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      if (entry->decision.subject.uid != aftermath.uid) continue;
      auto& cost = entry->decision.cost;
      cost.insert(cost.end(), aftermath.facts.begin(), aftermath.facts.end());
      break;
    }
  }
  std::set<std::string, std::less<>> carried_out;
  for (const JournalEntry& entry : entries) {
    if (!entry.intent) carried_out.insert(entry.decision.subject.uid);
  }
  std::erase_if(entries,
                [&](const auto& entry) { return entry.intent && carried_out.contains(entry.decision.subject.uid); });
  return entries;
}

}  // namespace spillway::agent
