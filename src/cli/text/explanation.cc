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
constexpr std::string_view kIndent = "    ";
constexpr std::string_view kMemorySignal = "memory.available";

/// True for facts that count the resource beside them.
bool is_amount(std::string_view name) {
  return name == "requested" || name == "used" || name == "capacity" || name == "allocatable" || name == "available" ||
         name == "free";
}

std::string text_of(const Fact* fact) {
  return fact == nullptr ? std::string() : value_text(*fact);
}

bool may_lead(const Reason& reason) {
  return role_of(reason.code) == ReasonRole::kCause;
}

std::string time_text(WallTime at) {
  return api::format_micro_time(at).substr(0, 23) + "Z";  // 2026-11-21T05:10:11.123Z
}

bool is_pod(const policy::Subject& subject, const api::PodKey& pod) {
  return subject.kind == "Pod" && subject.ns == pod.ns && subject.name == pod.name;
}

/// The index of the pod among the candidates; -1: the pod is not one.
std::ptrdiff_t place_of(const Decision& decision, const api::PodKey& pod) {
  const auto found = std::ranges::find_if(decision.candidates,
                                          [&](const Candidate& candidate) { return is_pod(candidate.subject, pod); });
  return found == decision.candidates.end() ? -1 : found - decision.candidates.begin();
}

/// The time until the threshold is reached; nullptr: no forecast.
const Fact* foreseen_in(const Reason& reason) {
  const Fact* fact = find_fact(reason.facts, "forecast_seconds");
  return fact == nullptr || fact_number(*fact) > kForeseenSeconds ? nullptr : fact;
}

/// The signal whose threshold will be met first at the present rate, and the time until then: "memory.available meets
/// its threshold in 20s at the present rate". Empty: no signal approaches its threshold.
std::string approach_of(const Decision& decision) {
  const Reason* first = nullptr;
  for (const Reason& reason : decision.reasons) {
    const Fact* time = foreseen_in(reason);
    if (time == nullptr || reason.code != ReasonCode::kThresholdNotMet) continue;
    if (first == nullptr || fact_number(*time) < fact_number(*foreseen_in(*first))) first = &reason;
  }
  if (first == nullptr) return {};
  return fmt::format("{} meets its threshold in {} at the present rate", text_of(find_fact(first->facts, "signal")),
                     text_of(foreseen_in(*first)));
}

std::string headline_for_other(const Decision& decision, const api::PodKey& pod) {
  const std::ptrdiff_t place = place_of(decision, pod);
  const std::string cause = cause_of(decision);
  const std::string why = cause.empty() ? "" : ": " + cause;
  const bool is_calm = decision.verdict == Verdict::kRests && decision.action == "evict" &&
                       std::ranges::any_of(decision.reasons, [](const Reason& reason) {
                         return reason.code == ReasonCode::kNoThresholdMet;
                       });
  if (is_calm && place >= 0 &&
      decision.candidates[static_cast<std::size_t>(place)].reason.code != ReasonCode::kCriticalPodSpared) {
    const std::string approach = approach_of(decision);
    return fmt::format("pod {} is {}: no threshold of node {} is met{}; it is {} of {} in the order", pod.text(),
                       approach.empty() ? "in no danger of eviction" : "not evicted now", decision.by,
                       approach.empty() ? approach : ", but " + approach, place + 1,
                       std::max(decision.candidates_total, static_cast<std::int64_t>(decision.candidates.size())));
  }
  std::string text = fmt::format("pod {} was not {}", pod.text(), action_done(decision.action));
  text += decision.verdict == Verdict::kActs
              ? fmt::format(" at {}: {} went instead", time_text(decision.at), decision.subject.text())
              : why;
  if (place < 0) return text;
  if (decision.candidates[static_cast<std::size_t>(place)].reason.code == ReasonCode::kCriticalPodSpared) {
    return text + "; it is critical and is never evicted";
  }
  return text + fmt::format("; it is {} of {} in the order of eviction", place + 1,
                            std::max(decision.candidates_total, static_cast<std::int64_t>(decision.candidates.size())));
}

/// A signal that is worth a row: memory always, others if they were not measured or are near their threshold.
bool is_informative(const Reason& reason) {
  if (reason.code != ReasonCode::kThresholdNotMet) return true;
  const Fact* available = find_measured(reason.facts, "available");
  const Fact* threshold = find_measured(reason.facts, "threshold");
  return text_of(find_fact(reason.facts, "signal")) == kMemorySignal || foreseen_in(reason) != nullptr ||
         available == nullptr || threshold == nullptr || fact_number(*available) < 2 * fact_number(*threshold);
}

std::string state_of(ReasonCode code) {
  if (code == ReasonCode::kThresholdMet) return "met";
  if (code == ReasonCode::kThresholdNotMet) return "not met";
  if (code == ReasonCode::kObservationMissing) return "not measured";
  return words_of(code);
}

/// A table, and a line below it; either may be empty.
struct Section {
  Table table;
  std::string remark;

  bool empty() const { return table.empty() && remark.empty(); }

  std::string text(std::size_t width) const {
    std::string body = table.empty() ? std::string() : table.text(kIndent, width);
    if (!remark.empty()) body += wrapped(printable_line(remark), kIndent, width);
    return body;
  }
};

Section thresholds_of(const Decision& decision, Paint paint) {
  std::vector<const Reason*> rows;
  std::int64_t others = 0;
  for (const Reason& reason : decision.reasons) {
    if (find_fact(reason.facts, "signal") == nullptr ||
        (find_measured(reason.facts, "available") == nullptr && reason.code != ReasonCode::kObservationMissing)) {
      continue;
    }
    is_informative(reason) ? rows.push_back(&reason) : static_cast<void>(++others);
  }
  const bool graces = std::ranges::any_of(
      rows, [](const Reason* reason) { return find_fact(reason->facts, "grace_seconds") != nullptr; });
  const bool forecasts =
      std::ranges::any_of(rows, [](const Reason* reason) { return foreseen_in(*reason) != nullptr; });
  std::vector<std::string> headings{"SIGNAL", "AVAILABLE", "THRESHOLD", "CAPACITY"};
  if (graces) headings.emplace_back("GRACE");
  if (forecasts) headings.emplace_back("MET IN");
  headings.emplace_back("STATE");
  Table table(std::move(headings));
  table.may_drop({"CAPACITY", "GRACE"});
  for (const Reason* reason : rows) {
    const Fact* available = find_measured(reason->facts, "available");
    const Fact* threshold = find_measured(reason->facts, "threshold");
    std::vector<std::string> cells{
        text_of(find_fact(reason->facts, "signal")),
        available != nullptr && threshold != nullptr ? value_text_apart(*available, *threshold) : text_of(available),
        text_of(threshold), text_of(find_measured(reason->facts, "capacity"))};
    if (graces) cells.push_back(text_of(find_fact(reason->facts, "grace_seconds")));
    if (forecasts) cells.push_back(text_of(foreseen_in(*reason)));
    cells.push_back(state_of(reason->code));
    const bool is_reached =
        reason->code != ReasonCode::kThresholdNotMet && reason->code != ReasonCode::kObservationMissing;
    table.add(std::move(cells), paint == Paint::kTerminal && is_reached ? kYellow : "");
  }
  if (others == 0) return {std::move(table), {}};
  return {std::move(table), others == 1 ? std::string("1 other signal is far from its threshold")
                                        : fmt::format("{} other signals are far from their thresholds", others)};
}

/// A table with one row per node and obstacle.
Section subjects_of(const Decision& decision, std::string_view subject, std::string_view what) {
  std::vector<std::string> names;
  for (const Candidate& candidate : decision.candidates) {
    for (const Fact& fact : candidate.reason.facts) {
      if (std::ranges::find(names, fact.name) == names.end()) names.push_back(fact.name);
    }
  }
  std::vector<std::string> headings{std::string(subject), std::string(what)};
  for (const std::string& name : names) headings.push_back(heading_of(name));
  Table table(std::move(headings));
  table.may_drop({"RATIO"});
  for (const Candidate& candidate : decision.candidates) {
    const std::string resource = text_of(find_fact(candidate.reason.facts, "resource"));
    std::vector<std::string> cells{candidate.subject.name, words_of(candidate.reason.code)};
    for (const std::string& name : names) {
      const Fact* fact = find_fact(candidate.reason.facts, name);
      cells.push_back(fact == nullptr   ? std::string()
                      : is_amount(name) ? amount_text(resource, *fact)
                                        : value_text(*fact));
    }
    table.add(std::move(cells));
  }
  return {std::move(table), {}};
}

/// "it uses 400Mi more than it requested, the most of all": why the first of the ranking is first.
std::string rank_reason(const Candidate& first) {
  const std::string_view by = first.decided_by;
  const Fact* above = find_fact(first.reason.facts, "above_request_bytes");
  if (by == "missing-stats") return "its usage is unknown";
  if (by == "exceeds-request") {
    return above == nullptr
               ? "it uses more than it requested, and the next does not"
               : fmt::format("it uses {} more than it requested, and the next does not use more", value_text(*above));
  }
  if (by == "priority") return "its priority is the lowest";
  if (by == "above-request" && above != nullptr) {
    return fact_number(*above) >= 0
               ? fmt::format("it uses {} more than it requested, the most of its priority", value_text(*above))
               : fmt::format("it uses {} less than it requested, the least difference of its priority",
                             value_text({"below_bytes", -fact_number(*above)}));
  }
  if (by == "processes") return "it has the most processes of its priority";
  if (by == "name") return "it equals the next one, and is first by name";
  return {};
}

Section ranking_of(const Decision& decision, const std::optional<api::PodKey>& pod, Paint paint) {
  std::vector<std::string> names;
  for (const Candidate& candidate : decision.candidates) {
    for (const Fact& fact : candidate.reason.facts) {
      if (std::ranges::find(names, fact.name) == names.end()) names.push_back(fact.name);
    }
  }
  std::vector<std::string> headings{"#", "NAME"};
  for (const std::string& name : names) headings.push_back(heading_of(name));
  headings.emplace_back("");
  Table table(std::move(headings));
  table.may_drop({"PROCESSES", "USAGE", "REQUEST", "PRIORITY"});
  std::string remark;
  std::size_t place = 0;
  for (const Candidate& candidate : decision.candidates) {
    const std::string name =
        candidate.subject.ns.empty() ? candidate.subject.name : candidate.subject.ns + "/" + candidate.subject.name;
    std::vector<std::string> cells{fmt::format("{}", ++place), name};
    for (const std::string& each : names) cells.push_back(text_of(find_fact(candidate.reason.facts, each)));
    const bool chosen =
        (decision.verdict == Verdict::kActs || is_shadow(decision)) && candidate.subject == decision.subject;
    const bool spared = candidate.reason.code == ReasonCode::kCriticalPodSpared;
    const bool asked = pod && is_pod(candidate.subject, *pod);
    std::string outcome = chosen ? action_done(decision.action) : spared ? "critical: spared" : " ";
    if (chosen && is_shadow(decision)) outcome = "would have been " + outcome;
    if (asked && !chosen) outcome = spared ? outcome + " <-" : "<-";
    cells.push_back(std::move(outcome));
    const std::string_view colour = chosen ? kRed : spared ? kDim : asked ? kBold : "";
    table.add(std::move(cells), paint == Paint::kTerminal ? colour : "");
    if (remark.empty() && candidate.reason.code == ReasonCode::kRankedFirst) {
      const std::string why = rank_reason(candidate);
      if (!why.empty()) remark = fmt::format("{} is first: {}", name, why);
    }
  }
  return {std::move(table), std::move(remark)};
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
    // An estimator that agrees to the byte adds nothing.
    const Fact* difference = find_fact(reason.facts, "difference_bytes");
    const bool is_plain =
        reason.code == ReasonCode::kEstimateAgrees && difference != nullptr && fact_number(*difference) == 0;
    if (!in_table && !in_headline && !is_plain) remarks.push_back(sentence_of(reason));
  }
  return remarks;
}

}  // namespace

std::string action_done(std::string_view action) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kDone{{{"admit", "admitted"},
                                                                                        {"bind", "bound"},
                                                                                        {"delete", "deleted"},
                                                                                        {"evict", "evicted"},
                                                                                        {"preempt", "preempted"},
                                                                                        {"reject", "rejected"},
                                                                                        {"replace", "replaced"},
                                                                                        {"taint", "tainted"},
                                                                                        {"reclaim", "cleaned up"},
                                                                                        {"resize", "resized"},
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
                           why);  // present state: the time is unknown
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

std::string explain(const Decision& decision, const std::optional<api::PodKey>& pod, Paint paint, std::size_t width) {
  const bool terminal = paint == Paint::kTerminal;
  const std::string first = wrapped(printable_line(headline(decision, pod)), "", width);
  std::string text =
      fmt::format("{}{}{}\n", terminal ? kBold : "", first.substr(0, first.size() - 1), terminal ? kReset : "");
  const auto section = [&](std::string_view title, const std::string& body) {
    text += fmt::format("\n  {}{}{}\n{}", terminal ? kBold : "", title, terminal ? kReset : "", body);
  };
  if (const Section found = thresholds_of(decision, paint); !found.empty())
    section("What was measured", found.text(width));
  if (const Table table = reclaimed_of(decision); !table.empty())
    section("Reclaimed by the node first", table.text(kIndent, width));
  if (decision.area == policy::Area::kScheduling) {
    const Section found = subjects_of(decision, "NODE", "REASON");
    if (!found.empty()) section("Reasons of each node now", found.text(width));
  } else if (decision.area == policy::Area::kWorkloads) {
    const Section found = subjects_of(decision, "POD", "WHAT");
    if (!found.empty()) section("Which pods it waits for", found.text(width));
  } else if (const Section found = ranking_of(decision, pod, paint); !found.empty()) {
    const auto shown = static_cast<std::int64_t>(decision.candidates.size());
    const std::string title = shown < decision.candidates_total
                                  ? fmt::format("Pods compared (the first {} of {})", shown, decision.candidates_total)
                                  : std::string("Pods compared");
    section(title, found.text(width));
  }
  if (const std::vector<std::string> remarks = remarks_of(decision); !remarks.empty()) {
    std::string body;
    for (const std::string& remark : remarks) body += wrapped(printable_line(remark), kIndent, width);
    section("Also", body);
  }
  if (!decision.cost.empty())
    section("What it cost", wrapped(printable_line(facts_text(decision.cost)), kIndent, width));
  if (!decision.message.empty()) section("Status", wrapped(printable(decision.message), kIndent, width));
  return text;
}

std::string summary_line(const Decision& decision) {
  return printable_line(headline(decision, std::nullopt));
}

}  // namespace spillway::cli
