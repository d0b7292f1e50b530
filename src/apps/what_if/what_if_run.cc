#include "apps/what_if/what_if_run.h"

#include "api/json/json.h"
#include "base/utf8.h"
#include "cli/flags/command_line.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <utility>

namespace spillway::apps {
namespace {

// exit code of `spillway simulate` after a failed expectation: the run itself is complete
constexpr int kExpectationFailed = 3;
constexpr int kPropertyViolated = 5;

/// Completes the command of the child.
Outcome add_question(const sim::WhatIf& question, WhatIfCluster& child) {
  SPILLWAY_TRY(scenario, HandedText::make(question.scenario));
  SPILLWAY_TRY(config_a, HandedText::make(question.config_a));
  SPILLWAY_TRY(config_b, HandedText::make(question.config_b));
  const std::vector<std::string> words{"simulate",   scenario.path(), "--config-a", config_a.path(),
                                       "--config-b", config_b.path(), "--seed",     "1",
                                       "-o",         "json"};
  child.arguments.insert(child.arguments.begin(), words.begin(), words.end());
  child.texts.push_back(std::move(scenario));
  child.texts.push_back(std::move(config_a));
  child.texts.push_back(std::move(config_b));
  return {};
}

/// The last line, without the name of the program and of the handed file: the reason.
std::string reason_in(const std::string& complaint) {
  std::string text = printable(complaint);
  while (text.ends_with('\n')) text.pop_back();
  text = text.substr(text.rfind('\n') + 1);
  constexpr std::string_view kSpeaker = "spillway: ";
  if (text.starts_with(kSpeaker)) text.erase(0, kSpeaker.size());
  constexpr std::string_view kHandedFile = "/proc/self/fd/";
  if (const std::size_t end = text.find(": "); text.starts_with(kHandedFile) && end != std::string::npos) {
    text.erase(0, end + 2);
  }
  return text;
}

api::Response answer_of(LimitedRun::Ended ended) {
  using How = LimitedRun::Ended::How;
  const int code = ended.exit_code;
  switch (ended.how) {
    case How::kOutOfTime:
      return what_if_refusal(504, "Timeout",
                             fmt::format("it took longer than two minutes and was ended: {}", kWhatIfInstead));
    case How::kTooLong:
      return what_if_refusal(502, "TooLong", fmt::format("more happens than fits into an answer: {}", kWhatIfInstead));
    case How::kKilled:
      return what_if_refusal(502, "Killed",
                             fmt::format("it needed more memory or time than it may have: {}", kWhatIfInstead));
    case How::kByItself:
      break;
  }
  if (code != cli::kExitOk && code != kExpectationFailed && code != kPropertyViolated)
    return what_if_refusal(code == cli::kExitUsage ? 422 : 502, "NotPlayed", reason_in(ended.complaint));
  return {.status = 200,
          .headers = {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(ended.output),
          .document = {}};
}

}  // namespace

api::Response what_if_refusal(int code, std::string_view reason, const std::string& message) {
  return {.status = code,
          .headers = {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}},
          .body = api::to_text(api::Json::object({{"kind", "Status"},
                                                  {"apiVersion", "v1"},
                                                  {"status", "Failure"},
                                                  {"reason", std::string(reason)},
                                                  {"message", message},
                                                  {"code", std::int64_t{code}}})) +
                  "\n",
          .document = {}};
}

api::Response what_if_busy() {
  return what_if_refusal(429, "TooManyRequests", "another one is being played; one at a time");
}

Result<std::unique_ptr<LimitedRun>> start_what_if(runtime::Loop& loop, const sim::WhatIf& question,
                                                  WhatIfCluster cluster, std::function<void(api::Response)> done) {
  SPILLWAY_TRY_VOID(add_question(question, cluster));
  return LimitedRun::start(
      loop, cluster.arguments, std::move(cluster.texts), {},
      [done = std::move(done)](LimitedRun::Ended ended) mutable { done(answer_of(std::move(ended))); });
}

}  // namespace spillway::apps
