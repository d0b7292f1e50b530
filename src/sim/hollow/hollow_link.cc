#include "sim/hollow/hollow_link.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace spillway::sim {

HollowLink::HollowLink(VirtualTime& time, Common& common, Rng rng, std::unique_ptr<client::Transport> server)
    : time_(time), timers_(time), common_(common), rng_(rng), server_(std::move(server)) {}

HollowLink::~HollowLink() {
  server_->disconnect(*this);
}

void HollowLink::execute(client::ApiCommand command, client::Transport::Receiver& receiver) {
  receiver_ = &receiver;
  if (const auto* close = std::get_if<client::CloseWatch>(&command)) {
    watches_.erase(close->id);
    return server_->execute(std::move(command), *this);
  }
  if (const auto* open = std::get_if<client::OpenWatch>(&command)) watches_.insert(open->id);
  ++common_.requests;
  if (is_cut(Cut::kToServer) || draw_loss()) return;
  const Duration delay = draw_delay();
  if (delay == Duration::zero()) return send(std::move(command));
  timers_.after(delay, [this, command = std::move(command)]() mutable { send(std::move(command)); });
}

/// A watch that was closed before its request arrived is not opened.
void HollowLink::send(client::ApiCommand command) {
  const auto* const open = std::get_if<client::OpenWatch>(&command);
  if (open != nullptr && !watches_.contains(open->id)) return;
  server_->execute(std::move(command), *this);
}

void HollowLink::disconnect(client::Transport::Receiver&) {
  receiver_ = nullptr;
  watches_.clear();
  server_->disconnect(*this);
}

/// An event reaches the agent only when the clock shows its time of arrival.
void HollowLink::on_api_event(client::ApiEvent event) {
  const Instant now = time_.now().mono;
  const Instant arrival = common_.arrival ? std::max(common_.arrival(), now) : now;
  const bool call = std::holds_alternative<client::CallDone>(event);
  if (is_cut(Cut::kFromServer) || (call && draw_loss())) return;
  Instant due = arrival + draw_delay();
  if (!call) due = last_due_ = std::max(due, last_due_);
  if (due <= now) return deliver(std::move(event));
  timers_.at(due, [this, event = std::move(event)]() mutable { deliver(std::move(event)); });
}

void HollowLink::deliver(client::ApiEvent event) {
  if (receiver_ == nullptr || is_cut(Cut::kFromServer)) return;
  if (const auto* frame = std::get_if<client::WatchFrame>(&event); frame != nullptr && !watches_.contains(frame->id))
    return;
  if (const auto* ended = std::get_if<client::WatchEnded>(&event); ended != nullptr && watches_.erase(ended->id) == 0)
    return;
  receiver_->on_api_event(std::move(event));
}

/// A cut direction stays cut until heal().
void HollowLink::cut(Cut way) {
  cut_ = cut_ && *cut_ != way ? Cut::kBoth : way;
}

void HollowLink::heal() {
  if (!std::exchange(cut_, std::nullopt)) return;
  const std::set<client::CallId> broken = watches_;
  for (const client::CallId id : broken) {
    server_->execute(client::CloseWatch{id}, *this);
    deliver(client::WatchEnded{id, make_error(ErrorCode::kServiceUnavailable, "the link to the API server was cut")});
  }
}

/// Zero for a link as good as any other.
Duration HollowLink::draw_delay() {
  if (link_.latency == Duration::zero()) return {};
  const auto more = static_cast<std::uint64_t>(link_.latency.count() / 2) + 1;
  return link_.latency / 2 + Duration(static_cast<std::int64_t>(rng_.below(more)));
}

}  // namespace spillway::sim
