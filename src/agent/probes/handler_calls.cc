#include "agent/probes/handler_calls.h"

#include "api/text/duration.h"
#include "policy/containers/utf8_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

/// Bytes of a command's words with their terminators: more than the kernel takes as arguments (execve(2)).
constexpr std::size_t kCommandBytesMax = 2 * 1024 * 1024;

using containers::HttpPurpose;
using containers::ProbeOutcome;
using containers::ProbeVerdict;

ProbeVerdict error(std::string_view text) {
  return {ProbeOutcome::kError, std::string(text)};
}

std::string fell_back_to_http(const containers::HttpAsk& ask) {
  const bool six = ask.host.contains(':');
  return fmt::format("request to HTTPS lifecycle hook {}{}{}:{} got HTTP response, retry with HTTP succeeded",
                     six ? "[" : "", ask.host, six ? "]" : "", ask.port);
}

}  // namespace

void HandlerCalls::begin(const HandlerPlace& place, const api::Handler& handler, Duration timeout, Done done, Now now) {
  Call call{.uid = place.uid,
            .done = std::move(done),
            .purpose = place.purpose,
            .ask = {},
            .command = {},
            .address = {},
            .timeout = timeout,
            .redirects = 0,
            .fell_back = false,
            .deadline = now.mono + timeout};
  const bool over_network = handler.http_get || handler.tcp_socket || handler.grpc;
  if (over_network && place.own_network)
    return call.done(error("the pod has a network namespace of its own, which cannot be reached"), now);
  if (handler.http_get) {
    const auto asked = containers::http_ask_of(*handler.http_get, *place.container, place.pod_ip, place.purpose);
    if (!asked) return call.done(error(asked.error().message), now);
    return ask(*asked, std::move(call), timeout);
  }
  if (handler.tcp_socket && place.purpose == HttpPurpose::kProbe) {
    const auto port = containers::port_of(handler.tcp_socket->port, *place.container);
    if (!port) return call.done(error(port.error().message), now);
    const std::string host = handler.tcp_socket->host.empty() ? place.pod_ip : handler.tcp_socket->host;
    calls_.emplace(++last_id_, std::move(call));
    context_.host_commands.emplace_back(TryTcp{last_id_, host, *port, timeout});
    return;
  }
  if (handler.sleep_seconds) {
    const std::uint64_t id = ++last_id_;
    calls_.emplace(id, std::move(call));
    context_.api.at(now.mono + std::min<Duration>(seconds(*handler.sleep_seconds), timeout), [this, id](Now then) {
      if (auto ended = take(id)) ended->done({ProbeOutcome::kSuccess, {}}, then);
    });
    return;
  }
  if (handler.exec) return run(place, *handler.exec, std::move(call), now);
  if (handler.grpc && place.purpose == HttpPurpose::kProbe)
    return ask_health(place, *handler.grpc, std::move(call), now);
  call.done(error("invalid handler: no action is set that can be carried out"), now);
}

void HandlerCalls::ask_health(const HandlerPlace& place, const api::GrpcAction& action, Call call, Now now) {
  const auto port = containers::port_of(fmt::format("{}", action.port), *place.container);
  if (!port) return call.done(error(port.error().message), now);
  const bool bracketed = place.pod_ip.contains(':');
  call.address = fmt::format("{}{}{}:{}", bracketed ? "[" : "", place.pod_ip, bracketed ? "]" : "", *port);
  const Duration timeout = call.timeout;
  calls_.emplace(++last_id_, std::move(call));
  context_.host_commands.emplace_back(AskGrpc{last_id_, place.pod_ip, *port, action.service, timeout});
}

void HandlerCalls::run(const HandlerPlace& place, const std::vector<std::string>& command, Call call, Now now) {
  RunInContainer wanted{
      .id = ++last_id_, .uid = place.uid, .container = place.container->name, .argv = command, .timeout = call.timeout};
  if (place.expand) {
    std::size_t left = kCommandBytesMax;
    for (std::string& word : wanted.argv) {
      Result<std::string> expanded = place.expand(word);
      if (!expanded) return call.done(error(expanded.error().message), now);
      if (expanded->size() >= left) return call.done(error("argument list too long"), now);
      left -= expanded->size() + 1;
      word = *std::move(expanded);
    }
  }
  call.command = fmt::format("{}", fmt::join(wanted.argv, " "));
  calls_.emplace(last_id_, std::move(call));
  context_.host_commands.emplace_back(std::move(wanted));
}

void HandlerCalls::ask(const containers::HttpAsk& ask, Call call, Duration timeout) {
  call.ask = ask;
  calls_.emplace(++last_id_, std::move(call));
  context_.host_commands.emplace_back(AskHttp{last_id_, ask, timeout});
}

std::optional<HandlerCalls::Call> HandlerCalls::take(std::uint64_t id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return std::nullopt;
  Call call = std::move(found->second);
  calls_.erase(found);
  return call;
}

void HandlerCalls::forget(const std::string& uid) {
  std::erase_if(calls_, [&](const auto& each) { return each.second.uid == uid; });
}

void HandlerCalls::on_http_answered(const HttpAnswered& event, Now now) {
  auto call = take(event.id);
  if (!call) return;
  const bool is_hook = call->purpose == HttpPurpose::kLifecycle;
  if (is_hook && call->ask.tls && !event.answer && event.answer.error().message.ends_with(containers::kHttpForHttps)) {
    containers::HttpAsk plain = call->ask;
    plain.tls = false;
    std::erase_if(plain.headers, [](const auto& each) { return each.first == "Authorization"; });
    call->fell_back = true;
    const Duration left = std::max<Duration>(call->deadline - now.mono, Duration{});
    return ask(plain, *std::move(call), left);
  }
  if (!event.answer) return call->done({ProbeOutcome::kFailure, event.answer.error().message}, now);
  if (is_hook && call->fell_back) return call->done({ProbeOutcome::kWarning, fell_back_to_http(call->ask)}, now);
  if (is_hook) return call->done({ProbeOutcome::kSuccess, {}}, now);
  const auto next = containers::follow(call->ask, *event.answer);
  if (!next) return call->done(containers::evaluate_http(*event.answer), now);
  if (call->redirects == containers::kRedirectsMax)
    return call->done({ProbeOutcome::kFailure, "Get \"" + next->url() + "\": stopped after 10 redirects"}, now);
  if (call->deadline <= now.mono)
    return call->done({ProbeOutcome::kFailure, "Get \"" + next->url() + "\": context deadline exceeded"}, now);
  ++call->redirects;
  const Duration left = call->deadline - now.mono;
  ask(*next, *std::move(call), left);
}

void HandlerCalls::on_ran(const RanInContainer& event, Now now) {
  auto call = take(event.id);
  if (!call) return;
  if (event.timed_out) {
    const std::string after = spillway::api::format_duration(call->timeout);
    return call->done(
        {ProbeOutcome::kFailure, fmt::format("command timed out: \"{}\" timed out after {}", call->command, after)},
        now);
  }
  if (!event.exit_code) return call->done(error(event.exit_code.error().message), now);
  const std::string output = containers::utf8_text(event.output);
  if (*event.exit_code == 0) return call->done({ProbeOutcome::kSuccess, output}, now);
  if (call->purpose == HttpPurpose::kProbe) return call->done({ProbeOutcome::kFailure, output}, now);
  call->done(
      {ProbeOutcome::kFailure, fmt::format("command '{}' exited with {}: {}", call->command, *event.exit_code, output)},
      now);
}

void HandlerCalls::on_tcp_tried(const TcpTried& event, Now now) {
  auto call = take(event.id);
  if (!call) return;
  if (event.outcome) return call->done({ProbeOutcome::kSuccess, {}}, now);
  call->done({ProbeOutcome::kFailure, event.outcome.error().message}, now);
}

void HandlerCalls::on_grpc_answered(const GrpcAnswered& event, Now now) {
  auto call = take(event.id);
  if (!call) return;
  call->done(containers::evaluate_grpc(event.answer, call->address, call->timeout), now);
}

}  // namespace spillway::agent
