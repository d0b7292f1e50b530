#include "policy/decision_json.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "base/utf8.h"

namespace spillway::policy {
namespace {

using api::Json;

Json list_of(const auto& values, auto convert) {
  Json list = Json::array();
  for (const auto& value : values) list.if_array()->push_back(convert(value));
  return list;
}

const Json::Array* array_at(const Json& document, std::string_view key) {
  const Json* found = document.find(key);
  return found == nullptr ? nullptr : found->if_array();
}

/// Text of a node is untrusted, and is shown on terminals.
std::string text_at(const Json& document, std::string_view key) {
  return printable(document.string_at({key}));
}

Subject subject_from_json(const Json* document) {
  if (document == nullptr) return {};
  return {.kind = text_at(*document, "kind"),
          .ns = text_at(*document, "namespace"),
          .name = text_at(*document, "name"),
          .uid = text_at(*document, "uid")};
}

Result<Candidate> candidate_from_json(const Json& document) {
  const Json* reason_document = document.find("reason");
  if (reason_document == nullptr) return invalid("candidates", "a candidate without reason");
  SPILLWAY_TRY(reason, reason_from_json(*reason_document));
  return Candidate{subject_from_json(document.find("subject")), std::move(reason), text_at(document, "decidedBy")};
}

}  // namespace

Json to_json(const std::vector<Fact>& facts) {
  return list_of(facts, [](const Fact& fact) {
    const Json value = std::visit([](const auto& held) { return Json(held); }, fact.value);
    return Json::object({{"name", fact.name}, {"value", value}});
  });
}

Json to_json(const Reason& reason) {
  return Json::object({{"code", to_string(reason.code)}, {"facts", to_json(reason.facts)}});
}

Json to_json(const Subject& subject) {
  Json document = Json::object({{"kind", subject.kind}, {"name", subject.name}});
  if (!subject.ns.empty()) document["namespace"] = subject.ns;
  if (!subject.uid.empty()) document["uid"] = subject.uid;
  return document;
}

Json to_json(const Decision& decision) {
  return Json::object({{"at", api::format_micro_time(decision.at)},
                       {"atMicros", decision.at.time_since_epoch().count()},
                       {"by", decision.by},
                       {"area", to_string(decision.area)},
                       {"verdict", to_string(decision.verdict)},
                       {"action", decision.action},
                       {"subject", to_json(decision.subject)},
                       {"message", decision.message},
                       {"reasons", list_of(decision.reasons, [](const Reason& reason) { return to_json(reason); })},
                       {"candidates", list_of(decision.candidates,
                                              [](const Candidate& candidate) {
                                                return Json::object({{"subject", to_json(candidate.subject)},
                                                                     {"reason", to_json(candidate.reason)},
                                                                     {"decidedBy", candidate.decided_by}});
                                              })},
                       {"candidatesTotal", decision.candidates_total},
                       {"cost", to_json(decision.cost)}});
}

Result<std::vector<Fact>> facts_from_json(const Json* document) {
  if (document == nullptr || document->if_array() == nullptr) return invalid("facts", "expected a list");
  std::vector<Fact> facts;
  for (const Json& fact : *document->if_array()) {
    Fact& read = facts.emplace_back();
    read.name = text_at(fact, "name");
    const Json* value = fact.find("value");
    if (value == nullptr) return invalid("facts", "a fact without value");
    if (const std::string* text = value->if_string()) {
      read.value = printable(*text);
    } else if (const auto number = value->if_int64()) {
      read.value = *number;
    } else if (const auto fraction = value->if_double()) {
      read.value = *fraction;
    } else {
      return invalid("facts", "a fact is a number or a string");
    }
  }
  return facts;
}

Result<Reason> reason_from_json(const Json& document) {
  const auto code = parse_reason_code(document.string_at({"code"}));
  if (!code) return invalid("code", "unknown reason \"{}\"", document.string_at({"code"}));
  SPILLWAY_TRY(facts, facts_from_json(document.find("facts")));
  return Reason{*code, std::move(facts)};
}

Result<Decision> decision_from_json(const Json& document) {
  Decision decision;
  const Json* at = document.find("atMicros");
  const std::optional<std::int64_t> micros = at == nullptr ? std::nullopt : at->if_int64();
  if (!micros) return invalid("atMicros", "expected a number");
  decision.at = WallTime(microseconds(*micros));
  decision.by = text_at(document, "by");
  const auto area = parse_area(document.string_at({"area"}));
  if (!area) return invalid("area", "unknown area \"{}\"", document.string_at({"area"}));
  decision.area = *area;
  const auto verdict = parse_verdict(document.string_at({"verdict"}));
  if (!verdict) return invalid("verdict", "unknown verdict \"{}\"", document.string_at({"verdict"}));
  decision.verdict = *verdict;
  decision.action = text_at(document, "action");
  decision.subject = subject_from_json(document.find("subject"));
  decision.message = text_at(document, "message");
  if (const Json::Array* reasons = array_at(document, "reasons")) {
    for (const Json& each : *reasons) {
      SPILLWAY_TRY(reason, reason_from_json(each));
      decision.reasons.push_back(std::move(reason));
    }
  }
  if (const Json::Array* candidates = array_at(document, "candidates")) {
    for (const Json& each : *candidates) {
      SPILLWAY_TRY(candidate, candidate_from_json(each));
      decision.candidates.push_back(std::move(candidate));
    }
  }
  if (const Json* total = document.find("candidatesTotal")) decision.candidates_total = total->if_int64().value_or(0);
  if (const Json* cost = document.find("cost")) {
    SPILLWAY_TRY(facts, facts_from_json(cost));
    decision.cost = std::move(facts);
  }
  return decision;
}

}  // namespace spillway::policy
