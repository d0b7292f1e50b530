#include "load/open_loop.h"

#include "load/dialer.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::load {

std::optional<Instant> Arrivals::next() const {
  if (rate_ <= 0) return std::nullopt;
  const Instant due =
      start_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(static_cast<double>(taken_) / rate_));
  return due < end_ ? std::optional(due) : std::nullopt;
}

void OpenLoop::begin(Instant start, Instant measured, Instant end) {
  measured_ = measured;
  end_ = end;
  arrivals_.emplace(rate_, start, end);
}

std::optional<Instant> OpenLoop::advance() {
  const Instant present = now();
  std::optional<Instant> next;
  while ((next = arrivals_->next()) && *next <= present) {
    arrivals_->take();
    if (*next >= measured_) ++tally_.due;
    if (due_.size() < backlog_max_) due_.push_back(*next);
  }
  return next;
}

Connection& OpenLoop::take_idle() {
  Connection& connection = *idle_.back();
  idle_.pop_back();
  return connection;
}

std::vector<Connection*> OpenLoop::take_all_idle() {
  return std::exchange(idle_, {});
}

std::optional<OpenLoop::Turn> OpenLoop::next() {
  if (due_.empty() || idle_.empty()) return std::nullopt;
  const Turn turn{.connection = &take_idle(), .due = due_.front()};
  due_.pop_front();
  ++busy_;
  return turn;
}

void OpenLoop::finish(Instant due, bool fine, int status) {
  --busy_;
  const Instant present = now();
  if (fine && present >= measured_ && present < end_) ++tally_.in_time;
  if (due < measured_) return;
  if (!fine) {
    ++tally_.errors[status];
    return;
  }
  ++tally_.answered;
  tally_.latency.record(present - due);
}

void OpenLoop::end() {
  tally_.unanswered = tally_.due - tally_.answered;
  for (const auto& [code, count] : tally_.errors) tally_.unanswered -= std::min(count, tally_.unanswered);
}

}  // namespace spillway::load
