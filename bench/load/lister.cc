#include "load/lister.h"

#include <algorithm>
#include <utility>

namespace spillway::load {
namespace {

constexpr std::size_t kBacklogMax = 100'000;

}  // namespace

Outcome Lister::open() {
  open_.resize(options_.list_connections);
  return dialer_.open(options_.list_connections, *this, [this] { return opened_; }, connections_);
}

void Lister::begin(Instant start, Instant measured, Instant end) {
  measured_ = measured;
  end_ = end;
  arrivals_.emplace(options_.list_rate, start, end);
}

std::optional<Instant> Lister::advance() {
  const Instant present = now();
  std::optional<Instant> next;
  while ((next = arrivals_->next()) && *next <= present) {
    arrivals_->take();
    if (*next >= measured_) ++tally_.due;
    if (due_.size() < kBacklogMax) due_.push_back(*next);
  }
  while (!due_.empty() && !idle_.empty()) send_next();
  return next;
}

void Lister::send_next() {
  Connection* connection = idle_.back();
  idle_.pop_back();
  open_[connection->index] = due_.front();
  due_.pop_front();
  ++busy_;
  connection->send(dialer_.head("GET", options_.list_path, 0));
}

void Lister::finish(std::size_t index, int status) {
  const std::optional<Instant> due = std::exchange(open_[index], std::nullopt);
  if (!due) return;
  --busy_;
  const Instant present = now();
  const bool fine = status == 200;
  if (fine && present >= measured_ && present < end_) ++tally_.in_time;
  if (*due < measured_) return;
  if (!fine) {
    ++tally_.errors[status];
    return;
  }
  ++tally_.answered;
  tally_.latency.record(present - *due);
}

void Lister::end() {
  tally_.unanswered = tally_.due - tally_.answered;
  for (const auto& [code, count] : tally_.errors) tally_.unanswered -= std::min(count, tally_.unanswered);
}

void Lister::on_piece(Connection&, std::string_view piece) {
  bytes_ += piece.size();
}

void Lister::on_answer(Connection& connection) {
  finish(connection.index, connection.status());
}

void Lister::on_idle(Connection& connection) {
  if (!arrivals_) ++opened_;
  idle_.push_back(&connection);
  if (!due_.empty()) send_next();
}

void Lister::on_lost(Connection& connection, std::string_view) {
  finish(connection.index, 0);
  std::erase(idle_, &connection);
}

}  // namespace spillway::load
