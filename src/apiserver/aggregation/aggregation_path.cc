#include "apiserver/aggregation/aggregation_path.h"

#include "apiserver/aggregation/identity_headers.h"
#include "apiserver/aggregation/service_server.h"
#include "apiserver/proxy/answer_sink.h"
#include "apiserver/proxy/forwarding.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <utility>

namespace spillway::apiserver {
namespace {

constexpr std::string_view kOfApis = "application/octet-stream";  // for an answer without a type
constexpr int kUnavailable = 503;

/// Answers in upstream's form: a line of text.
void answer_unavailable(Exchange& exchange) {
  exchange.answer(kUnavailable, "service unavailable\n", "text/plain; charset=utf-8",
                  {{"X-Content-Type-Options", "nosniff"}});
}

/// Service accounts of a namespace count as one user.
std::string user_key(const std::string& user) {
  constexpr std::string_view kAccount = "system:serviceaccount:";
  return "user " + (user.starts_with(kAccount) ? user.substr(0, user.rfind(':')) : user);
}

bool is_long_lived(const Exchange& exchange) {
  return exchange.asked.action == Verb::kWatch || wants_upgrade(exchange.request());
}

}  // namespace

/// Null: too many requests of the API or of the user are open. The place is given back with the pointer.
std::shared_ptr<void> AggregationPath::take_place(const std::string& api, const std::string& user) {
  const std::string keys[] = {"api " + api, user_key(user)};
  if ((*open_)[keys[0]] >= kOpenOfApiMax || (*open_)[keys[1]] >= kOpenOfUserMax) {
    std::erase_if(*open_, [](const auto& entry) { return entry.second == 0; });
    return nullptr;
  }
  for (const std::string& key : keys) ++(*open_)[key];
  return {this, [all = open_, first = keys[0], second = keys[1]](void*) {
            for (const std::string& key : {first, second}) {
              const auto mine = all->find(key);
              if (--mine->second == 0) all->erase(mine);
            }
          }};
}

/// Ends the request if its answer is not complete in time. The timer runs for as long as the result is held.
std::shared_ptr<void> AggregationPath::limit_time(const ExchangePtr& exchange, const std::function<void()>& cancel,
                                                  const std::shared_ptr<const bool>& has_begun) {
  if (is_long_lived(*exchange)) return nullptr;
  const TimerQueue::Id timer =
      core_.timers.at(core_.now.mono + kAnswerMax, [weak = std::weak_ptr(exchange), cancel, has_begun] {
        const ExchangePtr late = weak.lock();
        if (late == nullptr || late->finished()) return;
        cancel();
        if (*has_begun) return late->cut();
        late->fail(api::retry_status(ErrorCode::kTimeout, "request did not complete within the allotted timeout", 1));
      });
  return {this, [timers = timers_, timer](void*) {
            if (*timers != nullptr) (*timers)->cancel(timer);
          }};
}

void AggregationPath::perform(const ExchangePtr& exchange, const RemoteApi& api) {
  if (!api.available || gateway_ == nullptr) return answer_unavailable(*exchange);
  const Result<AggregatedServer> server = server_of(core_, api);
  if (!server) {
    core_.log.warning("an API service cannot be reached", {{"apiservice", api.name}, {"error", server.error().text()}});
    return answer_unavailable(*exchange);
  }
  std::shared_ptr<void> place = take_place(api.name, exchange->user().name);
  if (place == nullptr) {
    return exchange->fail(
        api::retry_status(ErrorCode::kTooManyRequests, "too many open requests to API services, try again later", 1));
  }
  const api::Request& asked = exchange->request();
  ProxiedPath path = proxied_path(asked, exchange->target, 0);
  api::HeaderList headers = forwarded_headers(asked, path, scheme_);
  for (auto& header : identity_headers(exchange->user())) headers.push_back(std::move(header));
  api::Request request{asked.method, path.target(), std::move(headers), asked.body};
  const auto step = exchange->steps.begin(RequestStep::Of::kPod, api.name, core_.now.mono);
  const bool is_watch = exchange->asked.action == Verb::kWatch;
  const auto has_begun = std::make_shared<bool>(false);
  const auto sink =
      std::make_shared<AnswerSink>(core_, exchange,
                                   AnswerSink::From{.path = std::move(path),
                                                    .hosts = {},
                                                    .type = kOfApis,
                                                    .place = std::move(place),
                                                    .step = step,
                                                    .on_stream =
                                                        [weak = std::weak_ptr(exchange), is_watch, has_begun] {
                                                          *has_begun = true;
                                                          const ExchangePtr watching = weak.lock();
                                                          if (is_watch && watching && watching->release_seats)
                                                            watching->release_seats();
                                                        },
                                                    .redirects = AnswerSink::Redirects::kRefused});
  // The client may disconnect before the answer begins: the call is then cancelled.
  const auto ticket = std::make_shared<std::optional<AggregatedGateway::Ticket>>();
  const std::function<void()> cancel = [gateway = gateway_, ticket] {
    if (*ticket) gateway->cancel(**ticket);
  };
  sink->set_cancel(cancel);
  exchange->wait_for_others(cancel);
  sink->hold(limit_time(exchange, cancel, has_begun));
  *ticket = gateway_->open(*server, std::move(request), sink);
}

}  // namespace spillway::apiserver
