// WebhookCalls: calls to webhooks, their time and their failures.
#include "apiserver/webhooks/webhook_address.h"
#include "apiserver/webhooks/webhook_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

std::string post_failure(const std::string& url, std::string_view why) {
  return fmt::format("failed to call webhook: Post \"{}\": {}", url, why);
}

Error no_answer(std::string text) {
  return make_error(ErrorCode::kServiceUnavailable, "{}", text);
}

Result<webhooks::ReviewAnswer> answer_in(webhooks::Phase phase, const std::string& uid, const std::string& url,
                                         const Result<api::Response>& response) {
  if (!response) return no_answer(post_failure(url, response.error().text()));
  if (!response->ok()) return no_answer("failed to call webhook: " + refusal_text(*response));
  auto answer = webhooks::read_answer(phase, uid, response->body);
  if (!answer) return no_answer("received invalid webhook response: " + answer.error().text());
  return answer;
}

}  // namespace

WebhookCalls::~WebhookCalls() {
  for (const auto& [id, call] : calls_) caller_->cancel(id);
}

void WebhookCalls::fail_soon(std::string why, Answered answered) {
  core_.timers.at(core_.now.mono, [why = std::move(why), answered = std::move(answered)]() mutable {
    answered(no_answer(std::move(why)));
  });
}

void WebhookCalls::ask(const webhooks::Webhook& webhook, const std::string& uid, std::string body, Duration time,
                       Answered answered) {
  std::string url = shown_url(webhook);
  if (caller_ == nullptr) return fail_soon(post_failure(url, "this server calls no webhooks"), std::move(answered));
  if (calls_.size() >= kCallsMax || bytes_ + body.size() > kBytesMax) {
    return fail_soon(post_failure(url, "too many calls to webhooks are under way"), std::move(answered));
  }
  Result<WebhookCall> call = call_of(core_, webhook);
  if (!call) return fail_soon(post_failure(url, call.error().text()), std::move(answered));
  const std::uint64_t id = ++last_;
  call->timeout = std::min(time, webhook.timeout);
  const TimerQueue::Id timer = core_.timers.at(core_.now.mono + call->timeout, [this, id] { give_up(id); });
  bytes_ += body.size();
  calls_.emplace(id, Call{webhook.phase, uid, std::move(url), body.size(), std::move(answered), timer});
  call->body = std::move(body);
  caller_->call(id, *std::move(call), alive_.guard([this, id](const Result<api::Response>& response, Now now) {
    core_.now = now;
    core_.cache.set_time(now.mono);
    finish(id, response);
  }));
}

void WebhookCalls::give_up(std::uint64_t id) {
  caller_->cancel(id);
  finish(id, make_error(ErrorCode::kTimeout, "context deadline exceeded"));
}

void WebhookCalls::finish(std::uint64_t id, const Result<api::Response>& response) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call call = std::move(found->second);
  calls_.erase(found);
  bytes_ -= call.bytes;
  core_.timers.cancel(call.timer);
  call.answered(answer_in(call.phase, call.uid, call.url, response));
}

}  // namespace spillway::apiserver
