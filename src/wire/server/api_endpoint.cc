#include "wire/server/api_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::size_t kMarkBytes = 128;  // bytes of a path in a report of slow turns

}  // namespace

ApiEndpoint::~ApiEndpoint() {
  if (timer_) loop_.cancel(timer_->id);
}

std::shared_ptr<const apiserver::ReadRequest> ApiEndpoint::read(const Incoming& incoming, ReadBody body) const {
  using Body = apiserver::ApiServer::Body;
  return server_.read(incoming.request, *incoming.user, body == ReadBody::kYes ? Body::kYes : Body::kNo);
}

RequestHandler::Ticket ApiEndpoint::on_request(Incoming incoming, std::shared_ptr<api::ResponseSink> sink) {
  const api::Request& request = incoming.request;
  loop_.mark(fmt::format("{} {}", api::to_string(request.method),
                         std::string_view(request.target).substr(0, std::min(request.target.find('?'), kMarkBytes))));
  const Ticket ticket = server_.handle(std::move(incoming.request), std::move(incoming.user), std::move(incoming.read),
                                       std::move(sink), loop_.now());
  rearm();
  return ticket;
}

void ApiEndpoint::on_abandoned(Ticket ticket) {
  server_.abandon(ticket);
  rearm();
}

void ApiEndpoint::rearm() {
  const std::optional<Instant> due = server_.next_wakeup();
  if (timer_ && due && timer_->due == *due) return;
  if (timer_) loop_.cancel(timer_->id);
  timer_.reset();
  if (!due) return;
  const runtime::Loop::TimerId id = loop_.at(*due, [this] {
    timer_.reset();
    server_.on_wakeup(loop_.now());
    rearm();
  });
  timer_ = Timer{id, *due};
}

}  // namespace spillway::wire
