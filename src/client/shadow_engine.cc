#include "client/shadow_engine.h"

#include "api/json/json.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::client {
namespace {

bool is_event(const api::Request& request) {
  return request.target.ends_with("/events") || request.target.find("/events/") != std::string::npos;
}

/// A heartbeat may travel without its text.
std::string body_of(const api::Request& request) {
  return request.body.empty() && request.document ? api::to_text(*request.document) : request.body;
}

}  // namespace

void ShadowEngine::start(Now now) {
  now_ = now.mono;
  inner_->start(now);
}

void ShadowEngine::on_api_event(const ApiEvent& event, Now now) {
  now_ = now.mono;
  answer_writes(now);
  inner_->on_api_event(event, now);
}

void ShadowEngine::on_wakeup(Now now) {
  now_ = now.mono;
  answer_writes(now);
  inner_->on_wakeup(now);
}

std::optional<Instant> ShadowEngine::next_wakeup() const {
  return writes_.empty() ? inner_->next_wakeup() : std::optional(now_);
}

void ShadowEngine::answer_writes(Now now) {
  for (const SendCall& call : std::exchange(writes_, {})) {
    if (!is_event(call.request)) record(call.request, now);
    inner_->on_api_event(
        CallDone{call.id,
                 api::Response{404, {}, R"({"kind":"Status","status":"Failure","reason":"NotFound","code":404})"}},
        now);
  }
}

void ShadowEngine::record(const api::Request& request, Now now) {
  const Duration memory = options_.patience * 10;
  std::erase_if(wants_, [&](const auto& entry) { return now.mono - entry.second.last > memory; });
  const std::string write = fmt::format("{} {}", api::to_string(request.method), request.target);
  const auto [entry, fresh] = wants_.try_emplace(write, Want{now.mono, now.mono});
  Want& want = entry->second;
  want.last = now.mono;
  if (fresh && options_.on_write) options_.on_write(write, body_of(request));
  if (want.reported || now.mono - want.since < options_.patience) return;
  want.reported = true;
  if (options_.on_difference) options_.on_difference({write, body_of(request), now.mono - want.since});
}

std::vector<ApiCommand> ShadowEngine::take_api_commands() {
  std::vector<ApiCommand> passed;
  for (ApiCommand& command : inner_->take_api_commands()) {
    auto* call = std::get_if<SendCall>(&command);
    if (call != nullptr && call->request.method != api::Method::kGet) {
      writes_.push_back(std::move(*call));
    } else {
      passed.push_back(std::move(command));
    }
  }
  return passed;
}

}  // namespace spillway::client
