#include "controllers/scheduling/extender_calls.h"

#include "api/text/duration.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::controllers {

namespace {

constexpr int kAnswered = 200;

std::string url_of(const scheduling::Extender& extender, scheduling::ExtenderVerb verb) {
  std::string_view url = extender.url;
  while (url.ends_with('/')) url.remove_suffix(1);
  return fmt::format("{}/{}", url, scheduling::verb_of(extender, verb));
}

}  // namespace

ExtenderCalls::ExtenderCalls(client::ApiClient& client, const telemetry::Log& log, telemetry::Registry& metrics,
                             std::vector<scheduling::Extender> extenders)
    : client_(client), log_(log), metrics_(metrics), extenders_(std::move(extenders)) {}

void ExtenderCalls::ask(std::size_t extender, scheduling::ExtenderVerb verb, const api::Json& question, Now now,
                        Done done) {
  const std::uint64_t id = ++last_id_;
  const Duration timeout = extenders_[extender].timeout;
  const auto timer = client_.at(now.mono + timeout, [this, id, timeout](Now then) {
    const auto found = asked_.find(id);
    if (found == asked_.end()) return;
    const scheduling::Extender& silent = extenders_[found->second.extender];
    end(id,
        make_error(ErrorCode::kTimeout, "extender {} did not answer within {}", url_of(silent, found->second.verb),
                   api::format_duration(timeout)),
        then);
  });
  asked_.emplace(id, Question{extender, verb, timer, std::move(done)});
  calls_.push_back({id, extender, verb, api::to_text(question)});
}

void ExtenderCalls::on_answer(std::uint64_t id, const Result<api::Response>& response, Now now) {
  const auto found = asked_.find(id);
  if (found == asked_.end()) return;  // given up
  client_.cancel(found->second.timer);
  const std::string url = url_of(extenders_[found->second.extender], found->second.verb);
  if (!response) {
    const ErrorCode code =
        response.error().code == ErrorCode::kTimeout ? ErrorCode::kTimeout : ErrorCode::kServiceUnavailable;
    return end(id, make_error(code, "extender {}: {}", url, response.error().text()), now);
  }
  if (response->status != kAnswered) {
    return end(
        id,
        make_error(ErrorCode::kServiceUnavailable, "failed {} with extender at URL {}, code {}",
                   scheduling::verb_of(extenders_[found->second.extender], found->second.verb), url, response->status),
        now);
  }
  end(id, response->body, now);
}

void ExtenderCalls::end(std::uint64_t id, const Result<std::string>& answer, Now now) {
  const auto question = asked_.extract(id);
  const Question& asked = question.mapped();
  count(asked.extender, asked.verb, answer ? "answered" : "failed");
  if (!answer) log_.warning("an extender did not answer", {{"error", answer.error().text()}});
  asked.done(answer, now);
}

Error ExtenderCalls::disbelieve(std::size_t extender, scheduling::ExtenderVerb verb, const Error& why) {
  count(extender, verb, "disbelieved");
  const Error error =
      make_error(ErrorCode::kServiceUnavailable, "extender {}: {}", url_of(extenders_[extender], verb), why.message);
  log_.warning("the answer of an extender does not count", {{"error", error.text()}});
  return error;
}

void ExtenderCalls::count_refusals(std::size_t extender, std::size_t nodes) {
  metrics_
      .counter("spillway_scheduler_extender_refusals_total", "Nodes that an extender left out",
               {{"extender", extenders_[extender].url}})
      .add(static_cast<double>(nodes));
}

void ExtenderCalls::count(std::size_t extender, scheduling::ExtenderVerb verb, std::string_view result) {
  metrics_
      .counter("spillway_scheduler_extender_requests_total",
               "Calls to extenders, by outcome; disbelieved: the answer named nodes or pods that the call did not",
               {{"extender", extenders_[extender].url},
                {"verb", std::string(scheduling::to_string(verb))},
                {"result", std::string(result)}})
      .add();
}

}  // namespace spillway::controllers
