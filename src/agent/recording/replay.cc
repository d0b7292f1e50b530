#include "agent/recording/replay.h"

#include "agent/contract/decision_log.h"
#include "agent/recording/replay_session.h"

#include "recording/frame.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::size_t kProgressEvery = 1000;  // records

std::string text_of(const eviction::ConditionSet& conditions) {
  std::string text;
  for (const eviction::Condition each : conditions.list()) {
    text += (text.empty() ? "" : ", ") + std::string(to_string(each));
  }
  return text.empty() ? "no pressure" : text;
}

/// nullopt: nothing that was decided.
Result<std::optional<ReplayOutcome>> decided_in(const Record& record, Now at) {
  if (const auto* changed = std::get_if<ConditionsChanged>(&record)) {
    return std::optional(outcome_of(changed->conditions, at));
  }
  const auto* decided = std::get_if<Decided>(&record);
  if (decided == nullptr) return std::optional<ReplayOutcome>();
  SPILLWAY_TRY(line, parse_line(decided->line));
  const auto* entry = std::get_if<JournalEntry>(&line);
  if (entry == nullptr) return make_error(ErrorCode::kInvalid, "a decision of the recording is none");
  return std::optional(outcome_of(*entry, at));
}

}  // namespace

ReplayOutcome outcome_of(const eviction::ConditionSet& conditions, Now at) {
  const std::string text = text_of(conditions);
  return {.at = at, .subject = "node", .key = "conditions " + text, .what = text, .reasons = {}, .line = {}};
}

ReplayOutcome outcome_of(const JournalEntry& entry, Now at) {
  ReplayOutcome made{
      .at = at, .subject = "node", .key = "pass", .what = entry.decision.action, .reasons = {}, .line = to_line(entry)};
  for (const policy::Reason& reason : entry.decision.reasons) {
    made.reasons += (made.reasons.empty() ? "" : "; ") + policy::render(reason);
  }
  if (!entry.eviction) {
    made.what = entry.decision.message.empty() ? "no pod evicted" : entry.decision.message;
    return made;
  }
  made.subject = entry.eviction->pod.text();
  made.key = "evict " + entry.eviction->uid;
  made.what = entry.emergency ? fmt::format("evicted for {}, at once", entry.eviction->metric_label)
                              : fmt::format("evicted for {}, grace {}s", entry.eviction->metric_label,
                                            entry.eviction->grace_period_seconds);
  return made;
}

Replay::Replay(Reconfigure reconfigure) : reconfigure_(std::move(reconfigure)) {}

Replay::~Replay() = default;

Outcome Replay::take(Record record) {
  if (auto* state = std::get_if<RunState>(&record)) {
    SPILLWAY_TRY_VOID(run_step());
    return begin(std::move(*state));
  }
  if (session_ == nullptr) return make_error(ErrorCode::kInvalid, "the recording does not begin with a state");
  auto* received = std::get_if<InputReceived>(&record);
  if (received == nullptr || received->nested) {
    if (!step_) return make_error(ErrorCode::kInvalid, "the recording has an answer without a question");
    followed_.push_back(std::move(record));
    return {};
  }
  SPILLWAY_TRY_VOID(run_step());
  step_ = std::move(*received);
  return {};
}

/// Begins a segment: the run continues, or a new one begins.
Outcome Replay::begin(RunState state) {
  const bool goes_on = session_ != nullptr && state.run == run_ && state.segment == segment_ + 1 && !state.after_gap;
  const bool same_run = session_ != nullptr && state.run == run_;
  run_ = state.run;
  segment_ = state.segment;
  if (!report_.begin) report_.begin = state.at.wall;
  if (goes_on) {
    if (!reconfigure_ && encode_snapshot(session_->snapshot()) != encode_snapshot(state.snapshot)) ++report_.drifts;
    session_->see_all(std::move(state.pods));
    return {};
  }
  same_run ? ++report_.gaps : ++report_.runs;
  EvictionOptions options = state.node.options;
  if (reconfigure_) {
    SPILLWAY_TRY(other, reconfigure_(state.node));
    options = std::move(other);
  }
  report_.node = state.node;
  const auto as = reconfigure_ ? Session::As::kOther : Session::As::kOwn;
  SPILLWAY_TRY(session, Session::create(std::move(state), std::move(options), as, would_be_));
  if (session_ != nullptr) report_.estimated += session_->estimated();
  session_ = std::move(session);
  return {};
}

Outcome Replay::run_step() {
  if (!step_) return {};
  const InputReceived received = *std::exchange(step_, std::nullopt);
  std::vector<Record> followed = std::exchange(followed_, {});
  Now at = received.at;
  for (const Record& each : followed) {
    if (const auto* nested = std::get_if<InputReceived>(&each)) at = nested->at;
    SPILLWAY_TRY(outcome, decided_in(each, at));
    if (outcome) decided_.push_back(std::move(*outcome));
  }
  ++report_.inputs;
  if (std::holds_alternative<Observed>(received.input)) ++report_.observations;
  report_.end = received.at.wall;
  session_->run(received, std::move(followed));
  return {};
}

Result<ReplayReport> Replay::finish() {
  SPILLWAY_TRY_VOID(run_step());
  if (session_ == nullptr) return make_error(ErrorCode::kInvalid, "the recording holds nothing");
  report_.estimated += session_->estimated();
  const bool exactly = !reconfigure_;
  report_.rows = recording::pair_rows(std::exchange(decided_, {}), std::exchange(would_be_, {}),
                                      [exactly](const ReplayOutcome& was, const ReplayOutcome& would_be) {
                                        return would_be.at.mono == was.at.mono && would_be.what == was.what &&
                                               (!exactly || would_be.line == was.line);
                                      });
  return std::move(report_);
}

Result<ReplayReport> replay_recording(std::string_view file, Replay::Reconfigure reconfigure,
                                      const std::function<bool(std::size_t, std::size_t)>& may_continue) {
  SPILLWAY_TRY(frames, recording::read_frames(file, recording::kAgentKind));
  Replay replay(std::move(reconfigure));
  for (std::size_t i = 0; i < frames.records.size(); ++i) {
    if (may_continue && i % kProgressEvery == 0 && !may_continue(i, frames.records.size()))
      return make_error(ErrorCode::kServiceUnavailable, "interrupted");
    SPILLWAY_TRY(record, decode_record(frames.records[i]));
    SPILLWAY_TRY_VOID(replay.take(std::move(record)));
  }
  SPILLWAY_TRY(report, replay.finish());
  report.torn_bytes = frames.torn_bytes;
  return std::move(report);
}

}  // namespace spillway::agent
