#include "wire/api_endpoint.h"

#include <utility>

namespace spillway::wire {

ApiEndpoint::~ApiEndpoint() {
  if (timer_) loop_.cancel(timer_->id);
}

RequestHandler::Ticket ApiEndpoint::on_request(api::Request request, api::UserInfo user,
                                               std::shared_ptr<api::ResponseSink> sink) {
  const Ticket ticket = server_.handle(std::move(request), std::move(user), std::move(sink), loop_.now());
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
