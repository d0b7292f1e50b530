#include "apps/commands/what_if.h"

#include "apps/controller/controller_pages.h"
#include "base/utf8.h"
#include "sim/scenario/what_if.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace spillway::apps {
namespace {

constexpr int kExpectationFailed = 3;  // of `spillway simulate`: it was played all the same
constexpr int kPropertyViolated = 4;
constexpr std::string_view kInstead = "play it with `spillway simulate --from-cluster`";

struct Handed {
  std::vector<std::string> arguments;
  std::vector<HandedText> texts;
};

Result<Handed> command_of(const sim::WhatIf& question, const cli::ClusterArgs& api) {
  Handed handed;
  SPILLWAY_TRY(scenario, HandedText::make(question.scenario));
  SPILLWAY_TRY(config_a, HandedText::make(question.config_a));
  SPILLWAY_TRY(config_b, HandedText::make(question.config_b));
  handed.arguments = {"simulate",
                      scenario.path(),
                      "--config-a",
                      config_a.path(),
                      "--config-b",
                      config_b.path(),
                      "--from-cluster",
                      "--seed",
                      "1",
                      "-o",
                      "json"};
  for (const auto& [flag, value] : {std::pair("--kubeconfig", api.kubeconfig),
                                    {"--context", api.context},
                                    {"--cluster", api.cluster},
                                    {"--user", api.user}}) {
    if (!value.empty()) handed.arguments.push_back(fmt::format("{}={}", flag, value));
  }
  handed.texts.push_back(std::move(scenario));
  handed.texts.push_back(std::move(config_a));
  handed.texts.push_back(std::move(config_b));
  return handed;
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

api::Response refusal(int code, std::string_view reason, const std::string& message) {
  return json_response(code, api::Json::object({{"kind", "Status"},
                                                {"apiVersion", "v1"},
                                                {"status", "Failure"},
                                                {"reason", std::string(reason)},
                                                {"message", message},
                                                {"code", std::int64_t{code}}}));
}

api::Response answer_of(LimitedRun::Ended ended) {
  using How = LimitedRun::Ended::How;
  const int code = ended.exit_code;
  switch (ended.how) {
    case How::kOutOfTime:
      return refusal(504, "Timeout", fmt::format("it took longer than two minutes and was ended: {}", kInstead));
    case How::kTooLong:
      return refusal(502, "TooLong", fmt::format("more happens than fits into an answer: {}", kInstead));
    case How::kKilled:
      return refusal(502, "Killed", fmt::format("it needed more memory or time than it may have: {}", kInstead));
    case How::kByItself:
      break;
  }
  if (code != cli::kExitOk && code != kExpectationFailed && code != kPropertyViolated)
    return refusal(code == cli::kExitUsage ? 422 : 502, "NotPlayed", reason_in(ended.complaint));
  return {.status = 200,
          .headers = {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(ended.output)};
}

}  // namespace

void WhatIfRuns::open(std::uint64_t id, const api::Json& question, std::shared_ptr<api::ResponseSink> sink) {
  if (run_ != nullptr) {
    sink->on_response(refusal(429, "TooManyRequests", "another one is being played; one at a time"));
    return;
  }
  const auto what_if = sim::parse_what_if(question);
  if (!what_if) {
    sink->on_response(refusal(422, "Invalid", what_if.error().text()));
    return;
  }
  auto handed = command_of(*what_if, api_);
  auto run = handed ? LimitedRun::start(loop_, handed->arguments, std::move(handed->texts), {},
                                        [this](LimitedRun::Ended ended) { answer(std::move(ended)); })
                    : Result<std::unique_ptr<LimitedRun>>(handed.error());
  if (!run) {
    sink->on_response(refusal(502, "NotPlayed", run.error().text()));
    return;
  }
  id_ = id;
  sink_ = std::move(sink);
  run_ = *std::move(run);
}

void WhatIfRuns::abandon(std::uint64_t id) {
  if (run_ == nullptr || id != id_) return;
  run_.reset();
  sink_.reset();
}

void WhatIfRuns::answer(LimitedRun::Ended ended) {
  const auto sink = std::exchange(sink_, nullptr);
  run_.reset();
  sink->on_response(answer_of(std::move(ended)));
}

}  // namespace spillway::apps
