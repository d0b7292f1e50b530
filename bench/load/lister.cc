#include "load/lister.h"

#include <utility>

namespace spillway::load {
namespace {

constexpr std::size_t kBacklogMax = 100'000;

}  // namespace

Lister::Lister(const Options& options, Dialer& dialer)
    : options_(options), dialer_(dialer), lists_(options.list_rate, kBacklogMax) {}

Outcome Lister::open() {
  open_.resize(options_.list_connections);
  return dialer_.open(options_.list_connections, *this, [this] { return opened_; }, connections_);
}

std::optional<Instant> Lister::advance() {
  const std::optional<Instant> next = lists_.advance();
  send_due();
  return next;
}

void Lister::send_due() {
  while (const std::optional<OpenLoop::Turn> turn = lists_.next()) {
    open_[turn->connection->index] = turn->due;
    turn->connection->send(dialer_.head("GET", options_.list_path, 0));
  }
}

void Lister::finish(std::size_t index, int status) {
  const std::optional<Instant> due = std::exchange(open_[index], std::nullopt);
  if (due) lists_.finish(*due, status == 200, status);
}

void Lister::on_piece(Connection&, std::string_view piece) {
  bytes_ += piece.size();
}

void Lister::on_answer(Connection& connection) {
  finish(connection.index, connection.status());
}

void Lister::on_idle(Connection& connection) {
  if (!lists_.has_begun()) ++opened_;
  lists_.add_idle(connection);
  send_due();
}

void Lister::on_lost(Connection& connection, std::string_view) {
  finish(connection.index, 0);
  lists_.lose(connection);
}

}  // namespace spillway::load
