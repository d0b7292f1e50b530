#include "cli/text/explanation.h"

#include "api/text/time_text.h"
#include "base/utf8.h"
#include "cli/text/reason_sentence.h"
#include "cli/text/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

using policy::Candidate;
using policy::Decision;
using policy::Fact;
using policy::Reason;
using policy::ReasonCode;
using policy::Verdict;

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kReset = "\x1b[0m";

std::string text_of(const Fact* fact) {
  return fact == nullptr ? std::string() : value_text(*fact);
}

bool may_lead(const Reason& reason) {
  return role_of(reason.code) == ReasonRole::kCause;
}

std::string time_text(WallTime at) {
  const std::string text = api::format_micro_time(at);  // 2026-11-21T05:10:11.123456Z
  return text.substr(0, 10) + " " + text.substr(11, 12) + "Z";
}

bool is_pod(const policy::Subject& subject, const api::PodKey& pod) {
  return subject.kind == "Pod" && subject.ns == pod.ns && subject.name == pod.name;
}

/// The index of the pod among the candidates; -1: it is none.
std::ptrdiff_t place_of(const Decision& decision, const api::PodKey& pod) {
  const auto found = std::ranges::find_if(decision.candidates,
                                          [&](const Candidate& candidate) { return is_pod(candidate.subject, pod); });
  return found == decision.candidates.end() ? -1 : found - decision.candidates.begin();
}

std::string headline_for_other(const Decision& decision, const api::PodKey& pod) {
  const std::ptrdiff_t place = place_of(decision, pod);
  const std::string cause = cause_of(decision);
  const std::string why = cause.empty() ? "" : ": " + cause;
  std::string text = fmt::format("pod {} was not {}", pod.text(), action_done(decision.action));
  text += decision.verdict == Verdict::kActs
              ? fmt::format(" at {}: {} went instead", time_text(decision.at), decision.subject.text())
              : why;
  if (place < 0) return text;
  if (decision.candidates[static_cast<std::size_t>(place)].reason.code == ReasonCode::kCriticalPodSpared) {
    return text + "; it is critical and never is";
  }
  return text + fmt::format("; it is {} of {} in the order of eviction", place + 1,
                            std::max(decision.candidates_total, static_cast<std::int64_t>(decision.candidates.size())));
}

Table thresholds_of(const Decision& decision, Paint paint) {
  const bool graces = std::ranges::any_of(
      decision.reasons, [](const Reason& reason) { return find_fact(reason.facts, "grace_seconds") != nullptr; });
  const bool forecasts = std::ranges::any_of(
      decision.reasons, [](const Reason& reason) { return find_fact(reason.facts, "forecast_seconds") != nullptr; });
  std::vector<std::string> headings{"SIGNAL", "AVAILABLE", "THRESHOLD", "CAPACITY"};
  if (graces) headings.emplace_back("GRACE");
  if (forecasts) headings.emplace_back("REACHED IN");
  headings.emplace_back("STATE");
  Table table(std::move(headings));
  for (const Reason& reason : decision.reasons) {
    const Fact* signal = find_fact(reason.facts, "signal");
    const Fact* available = find_measured(reason.facts, "available");
    if (signal == nullptr || (available == nullptr && reason.code != ReasonCode::kObservationMissing)) continue;
    std::vector<std::string> cells{value_text(*signal), text_of(available),
                                   text_of(find_measured(reason.facts, "threshold")),
                                   text_of(find_measured(reason.facts, "capacity"))};
    if (graces) cells.push_back(text_of(find_fact(reason.facts, "grace_seconds")));
    if (forecasts) cells.push_back(text_of(find_fact(reason.facts, "forecast_seconds")));
    cells.push_back(words_of(reason.code));
    const bool met = reason.code != ReasonCode::kThresholdNotMet && reason.code != ReasonCode::kObservationMissing;
    table.add(std::move(cells), paint == Paint::kTerminal && met ? kYellow : "");
  }
  return table;
}

/// One row per node and thing in the pod's way.
Table subjects_of(const Decision& decision, std::string_view subject, std::string_view what) {
  std::vector<std::string> names;
  for (const Candidate& candidate : decision.candidates) {
    for (const Fact& fact : candidate.reason.facts) {
      if (std::ranges::find(names, fact.name) == names.end()) names.push_back(fact.name);
    }
  }
  std::vector<std::string> headings{std::string(subject), std::string(what)};
  for (const std::string& name : names) headings.push_back(heading_of(name));
  Table table(std::move(headings));
  for (const Candidate& candidate : decision.candidates) {
    std::vector<std::string> cells{candidate.subject.name, words_of(candidate.reason.code)};
    for (const std::string& name : names) cells.push_back(text_of(find_fact(candidate.reason.facts, name)));
    table.add(std::move(cells));
  }
  return table;
}

Table ranking_of(const Decision& decision, const std::optional<api::PodKey>& pod, Paint paint) {
  std::vector<std::string> names;
  for (const Candidate& candidate : decision.candidates) {
    for (const Fact& fact : candidate.reason.facts) {
      if (std::ranges::find(names, fact.name) == names.end()) names.push_back(fact.name);
    }
  }
  std::vector<std::string> headings{"#", "NAME"};
  for (const std::string& name : names) headings.push_back(heading_of(name));
  headings.emplace_back("RANKED BY");
  headings.emplace_back("");
  Table table(std::move(headings));
  std::size_t place = 0;
  for (const Candidate& candidate : decision.candidates) {
    std::vector<std::string> cells{
        fmt::format("{}", ++place),
        candidate.subject.ns.empty() ? candidate.subject.name : candidate.subject.ns + "/" + candidate.subject.name};
    for (const std::string& name : names) cells.push_back(text_of(find_fact(candidate.reason.facts, name)));
    std::string by = candidate.decided_by;
    std::ranges::replace(by, '-', ' ');
    cells.push_back(std::move(by));
    const bool chosen =
        (decision.verdict == Verdict::kActs || is_shadow(decision)) && candidate.subject == decision.subject;
    const bool spared = candidate.reason.code == ReasonCode::kCriticalPodSpared;
    const bool asked = pod && is_pod(candidate.subject, *pod);
    std::string note = chosen ? action_done(decision.action) : spared ? "critical: spared" : " ";
    if (chosen && is_shadow(decision)) note = "would have been " + note;
    if (asked && !chosen) note = spared ? note + " <-" : "<-";
    cells.push_back(std::move(note));
    const std::string_view colour = chosen ? kRed : spared ? kDim : asked ? kBold : "";
    table.add(std::move(cells), paint == Paint::kTerminal ? colour : "");
  }
  return table;
}

Table reclaimed_of(const Decision& decision) {
  Table table({"WHAT", "DELETED", "FREED", "PROBLEM"});
  for (const Reason& reason : decision.reasons) {
    if (reason.code != ReasonCode::kReclaimed) continue;
    table.add({text_of(find_fact(reason.facts, "what")), text_of(find_fact(reason.facts, "deleted")),
               text_of(find_fact(reason.facts, "freed_bytes")), text_of(find_fact(reason.facts, "problem"))});
  }
  return table;
}

/// Reasons that no table shows.
std::vector<std::string> remarks_of(const Decision& decision) {
  std::vector<std::string> remarks;
  const auto lead = std::ranges::find_if(decision.reasons, may_lead);
  for (const Reason& reason : decision.reasons) {
    const bool in_table =
        find_measured(reason.facts, "available") != nullptr || role_of(reason.code) == ReasonRole::kTableRow;
    const bool in_headline =
        (lead != decision.reasons.end() && &reason == &*lead) || reason.code == ReasonCode::kEmergency;
    if (!in_table && !in_headline) remarks.push_back(sentence_of(reason));
  }
  return remarks;
}

}  // namespace

std::string action_done(std::string_view action) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kDone{{{"admit", "admitted"},
                                                                                        {"bind", "bound"},
                                                                                        {"delete", "deleted"},
                                                                                        {"evict", "evicted"},
                                                                                        {"preempt", "preempted"},
                                                                                        {"reject", "rejected"},
                                                                                        {"replace", "replaced"},
                                                                                        {"taint", "tainted"},
                                                                                        {"reclaim", "cleaned up"},
                                                                                        {"start", "started"},
                                                                                        {"roll out", "rolled out"}}};
  for (const auto& [known, done] : kDone) {
    if (known == action) return std::string(done);
  }
  return fmt::format("chosen for \"{}\"", action);
}

bool is_shadow(const Decision& decision) {
  return std::ranges::any_of(decision.reasons, [](const Reason& reason) { return reason.code == ReasonCode::kShadow; });
}

std::string cause_of(const Decision& decision) {
  const auto lead = std::ranges::find_if(decision.reasons, may_lead);
  std::string cause = lead == decision.reasons.end() ? std::string() : sentence_of(*lead);
  const bool emergency =
      std::ranges::any_of(decision.reasons, [](const Reason& reason) { return reason.code == ReasonCode::kEmergency; });
  if (emergency && !is_shadow(decision) && lead->code != ReasonCode::kEmergency)
    cause += "; " + sentence_of({ReasonCode::kEmergency, {}});
  if (cause.empty()) cause = decision.message.substr(0, decision.message.find_last_not_of(" .\n") + 1);
  return cause;
}

std::string headline(const Decision& decision, const std::optional<api::PodKey>& pod) {
  if (pod && !is_pod(decision.subject, *pod)) return headline_for_other(decision, *pod);
  const std::string cause = cause_of(decision);
  const std::string why = cause.empty() ? "" : ": " + cause;
  const std::string who = decision.subject.text();
  const std::string by = decision.by == decision.subject.name ? "" : " by " + decision.by;
  if (is_shadow(decision) && decision.subject.kind == "Pod") {
    return fmt::format("{} would have been {}{} at {}{}", who, action_done(decision.action), by, time_text(decision.at),
                       why);
  }
  if (decision.area == policy::Area::kWorkloads && decision.action == "replace") return who + why;
  const bool makes_room = decision.area == policy::Area::kAdmission && decision.action == "preempt";
  switch (decision.verdict) {
    case Verdict::kActs:
      if (decision.area == policy::Area::kLifecycle && decision.subject.kind == "Node") {
        return fmt::format("{} is {}{}", who, action_done(decision.action),
                           why);  // present state: the time is not known
      }
      if (makes_room) {
        return fmt::format("{} took the place of {} other pods on {} at {}{}", who, decision.candidates_total,
                           decision.by, time_text(decision.at), why);
      }
      return fmt::format("{} was {}{} at {}{}", who, action_done(decision.action), by, time_text(decision.at), why);
    case Verdict::kRefuses:
      return fmt::format("{} was not {}{} at {}{}", who, action_done(decision.action), by, time_text(decision.at), why);
    case Verdict::kWaits:
      if (decision.subject.kind == "Node" && decision.area != policy::Area::kLifecycle)
        return fmt::format("{}: nothing more is {} for now{}", who, action_done(decision.action), why);
      return fmt::format("{} is not {} yet{}", who, action_done(decision.action), why);
    case Verdict::kRests:
      if (decision.area == policy::Area::kWorkloads) {
        return fmt::format("{} is {}{}", who, action_done(decision.action), why);
      }
      if (decision.subject.kind == "Node" && decision.area != policy::Area::kLifecycle)
        return fmt::format("{}: nothing is {}{}", who, action_done(decision.action), why);
      return fmt::format("{} is not {}{}", who, action_done(decision.action), why);
  }
  return who;
}

std::string explain(const Decision& decision, const std::optional<api::PodKey>& pod, Paint paint) {
  const bool terminal = paint == Paint::kTerminal;
  const std::string first = printable_line(headline(decision, pod));
  std::string text = fmt::format("{}{}{}\n", terminal ? kBold : "", first, terminal ? kReset : "");
  const auto section = [&](std::string_view title, const std::string& body) {
    text += fmt::format("\n  {}{}{}\n{}", terminal ? kBold : "", title, terminal ? kReset : "", body);
  };
  if (const Table table = thresholds_of(decision, paint); !table.empty())
    section("What was measured", table.text("    "));
  if (const Table table = reclaimed_of(decision); !table.empty())
    section("What the node freed first", table.text("    "));
  if (decision.area == policy::Area::kScheduling) {
    const Table table = subjects_of(decision, "NODE", "REASON");
    if (!table.empty()) section("What each node says now", table.text("    "));
  } else if (decision.area == policy::Area::kWorkloads) {
    const Table table = subjects_of(decision, "POD", "WHAT");
    if (!table.empty()) section("Which pods it waits for", table.text("    "));
  } else if (const Table table = ranking_of(decision, pod, paint); !table.empty()) {
    const auto shown = static_cast<std::int64_t>(decision.candidates.size());
    const std::string title = shown < decision.candidates_total
                                  ? fmt::format("Pods compared (the first {} of {})", shown, decision.candidates_total)
                                  : std::string("Pods compared");
    section(title, table.text("    "));
  }
  if (const std::vector<std::string> remarks = remarks_of(decision); !remarks.empty()) {
    std::string body;
    for (const std::string& remark : remarks) body += "    " + printable_line(remark) + "\n";
    section("Also", body);
  }
  if (!decision.cost.empty()) section("What it cost", "    " + printable_line(facts_text(decision.cost)) + "\n");
  if (!decision.message.empty()) section("What its status says", "    " + printable(decision.message) + "\n");
  return text;
}

std::string summary_line(const Decision& decision) {
  return printable_line(headline(decision, std::nullopt));
}

}  // namespace spillway::cli
