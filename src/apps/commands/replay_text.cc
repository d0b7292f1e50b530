#include "apps/commands/replay_text.h"

#include "agent/contract/journal.h"
#include "api/json/json.h"
#include "api/text/time_text.h"
#include "base/utf8.h"
#include "cli/text/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <variant>

namespace spillway::apps {

namespace {

using agent::ReplayReport;
using recording::ReplayOutcome;
using recording::ReplayRow;
using sim::LifecycleReplayReport;

/// The readings of a recording are evidence only up to the first decision that differs: after it, other readings
/// would have been taken.
class Evidence {
 public:
  /// Evidence that reaches to the end.
  Evidence() = default;

  explicit Evidence(const ReplayReport& report) : first_(recording::first_difference(report.rows)) {}

  bool holds(const ReplayRow& row) const { return !first_ || row.at() <= *first_; }

 private:
  std::optional<Instant> first_;
};

std::string time_of(const ReplayOutcome& outcome) {
  return api::format_micro_time(outcome.at.wall);
}

std::string decided_text(const ReplayRow& row) {
  return row.decided ? row.decided->what : "-";
}

std::string would_be_text(const ReplayRow& row) {
  if (!row.would_be) return "-";
  if (!row.decided || row.decided->at.mono == row.would_be->at.mono) return row.would_be->what;
  const double by = std::chrono::duration<double>(row.would_be->at.mono - row.decided->at.mono).count();
  return fmt::format("{}, {:.3f} s {}", row.would_be->what, std::abs(by), by < 0 ? "earlier" : "later");
}

/// The cause in the words of `spillway explain`; of a controller, whose recording has no decision, the recorded
/// reasons.
std::string reasons_text(const ReplayOutcome& outcome) {
  const auto line = agent::parse_line(outcome.line);
  const auto* entry = line ? std::get_if<agent::JournalEntry>(&*line) : nullptr;
  const std::string cause = entry == nullptr ? std::string() : cli::cause_of(entry->decision);
  return cause.empty() ? outcome.reasons : printable_line(cause);
}

void add_rows(std::string& text, const std::vector<const ReplayRow*>& rows, const Evidence& evidence,
              bool with_reasons) {
  std::size_t subject = 7;
  std::size_t decided = 7;
  for (const ReplayRow* row : rows) {
    const ReplayOutcome& named = row->decided ? *row->decided : *row->would_be;
    subject = std::max(subject, named.subject.size());
    decided = std::max(decided, decided_text(*row).size());
  }
  auto out = std::back_inserter(text);
  fmt::format_to(out, "  {:<27}  {:<{}}  {:<{}}  {}\n", "TIME", "SUBJECT", subject, "DECIDED", decided, "WOULD BE");
  bool evident = true;
  for (const ReplayRow* row : rows) {
    if (evident && !evidence.holds(*row)) {
      evident = false;
      text +=
          "  -- from here on the recording proves nothing: another pod would have been evicted than the one that was "
          "--\n";
    }
    const ReplayOutcome& named = row->decided ? *row->decided : *row->would_be;
    fmt::format_to(out, "  {:<27}  {:<{}}  {:<{}}  {}\n", time_of(named), named.subject, subject, decided_text(*row),
                   decided, would_be_text(*row));
    if (!with_reasons) continue;
    if (row->decided && !row->decided->reasons.empty()) {
      fmt::format_to(out, "      decided:  {}\n", reasons_text(*row->decided));
    }
    if (row->would_be && !row->would_be->reasons.empty()) {
      fmt::format_to(out, "      would be: {}\n", reasons_text(*row->would_be));
    }
  }
}

template <typename Report>
void add_totals(std::string& text, const Report& report, const std::string& config) {
  auto out = std::back_inserter(text);
  if (report.runs > 1) fmt::format_to(out, "the process was started {} times\n", report.runs);
  if (report.gaps > 0)
    fmt::format_to(out, "records are missing in {} places: the replay begins anew there\n", report.gaps);
  if (report.torn_bytes > 0)
    fmt::format_to(out, "the last {} bytes are an incomplete record and were left out\n", report.torn_bytes);
  const std::size_t all = report.rows.size();
  if (config.empty()) {
    const std::uint64_t percent = all == 0 ? 100 : report.same() * 100 / all;
    fmt::format_to(out, "under its own configuration: {} decisions, {} the same ({} %)\n", all, report.same(), percent);
  } else {
    fmt::format_to(out, "under {}: {} decisions, {} the same, {} different\n", config, all, report.same(),
                   report.different());
  }
}

std::string head_text(const ReplayReport& report, const std::string& config) {
  std::string text = fmt::format("recording of node {} ({}), {} to {}: {} observations\n", report.node.name,
                                 report.node.program, report.begin ? api::format_micro_time(*report.begin) : "?",
                                 report.end ? api::format_micro_time(*report.end) : "?", report.observations);
  add_totals(text, report, config);
  auto out = std::back_inserter(text);
  if (report.drifts > 0) fmt::format_to(out, "{} segments begin with another state than replayed\n", report.drifts);
  if (report.estimated > 0) {
    fmt::format_to(out,
                   "{} times the other configuration would have read the pods when the recorded one did not: the last "
                   "figures are used\n",
                   report.estimated);
  }
  return text;
}

api::Json to_json(const ReplayOutcome& outcome) {
  return api::Json::object(
      {{"at", api::format_micro_time(outcome.at.wall)}, {"what", outcome.what}, {"reasons", outcome.reasons}});
}

std::string head_text(const LifecycleReplayReport& report, const std::string& config) {
  std::string text = fmt::format("recording of a controller of {} nodes, {} to {}: {} heartbeats\n", report.nodes,
                                 report.begin ? api::format_micro_time(*report.begin) : "?",
                                 report.end ? api::format_micro_time(*report.end) : "?", report.heartbeats);
  add_totals(text, report, config);
  return text;
}

std::string tables(const std::vector<ReplayRow>& rows, const Evidence& evidence) {
  std::string text;
  std::vector<const ReplayRow*> different;
  std::vector<const ReplayRow*> same;
  for (const ReplayRow& row : rows) (row.same ? same : different).push_back(&row);
  if (!different.empty()) {
    text += "\ndifferent:\n";
    add_rows(text, different, evidence, true);
  }
  if (!same.empty()) {
    text += "\nthe same:\n";
    add_rows(text, same, evidence, false);
  }
  return text;
}

api::Json rows_json(const std::vector<ReplayRow>& all, const Evidence& evidence) {
  api::Json rows = api::Json::array();
  for (const ReplayRow& row : all) {
    const ReplayOutcome& named = row.decided ? *row.decided : *row.would_be;
    api::Json entry =
        api::Json::object({{"subject", named.subject}, {"same", row.same}, {"evidence", evidence.holds(row)}});
    if (row.decided) entry["decided"] = to_json(*row.decided);
    if (row.would_be) entry["wouldBe"] = to_json(*row.would_be);
    rows.if_array()->push_back(std::move(entry));
  }
  return rows;
}

template <typename Report>
api::Json finished(api::Json document, const Report& report, const std::string& config) {
  if (!config.empty()) document["configuration"] = config;
  if (report.begin) document["begin"] = api::format_micro_time(*report.begin);
  if (report.end) document["end"] = api::format_micro_time(*report.end);
  return document;
}

}  // namespace

std::string replay_text(const ReplayReport& report, const std::string& config) {
  return head_text(report, config) + tables(report.rows, Evidence(report));
}

std::string replay_text(const LifecycleReplayReport& report, const std::string& config) {
  return head_text(report, config) + tables(report.rows, Evidence());
}

api::Json replay_json(const LifecycleReplayReport& report, const std::string& config) {
  return finished(api::Json::object({{"kind", "ControllerReplayReport"},
                                     {"apiVersion", "spillway/v1"},
                                     {"nodes", report.nodes},
                                     {"heartbeats", report.heartbeats},
                                     {"runs", report.runs},
                                     {"gaps", report.gaps},
                                     {"tornBytes", report.torn_bytes},
                                     {"same", report.same()},
                                     {"different", report.different()},
                                     {"rows", rows_json(report.rows, Evidence())}}),
                  report, config);
}

api::Json replay_json(const ReplayReport& report, const std::string& config) {
  api::Json document = api::Json::object({{"kind", "ReplayReport"},
                                          {"apiVersion", "spillway/v1"},
                                          {"node", report.node.name},
                                          {"program", report.node.program},
                                          {"observations", report.observations},
                                          {"runs", report.runs},
                                          {"gaps", report.gaps},
                                          {"tornBytes", report.torn_bytes},
                                          {"drifts", report.drifts},
                                          {"estimated", report.estimated},
                                          {"same", report.same()},
                                          {"different", report.different()},
                                          {"rows", rows_json(report.rows, Evidence(report))}});
  return finished(std::move(document), report, config);
}

}  // namespace spillway::apps
