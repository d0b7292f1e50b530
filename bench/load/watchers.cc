#include "load/watchers.h"

#include "api/text/time_text.h"

#include "load/renewer.h"
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace spillway::load {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{1} << 20U;

}  // namespace

Outcome Watchers::open() {
  rest_.resize(options_.watches);
  wall_behind_ = wall_behind();
  return dialer_.open(options_.watches, *this, [this] { return opened_; }, connections_);
}

void Watchers::begin(Instant measured, Instant end) {
  measured_ = measured;
  end_ = end;
}

void Watchers::fill(Report& report) const {
  report.watches_open = opened_ - lost_;
  report.watches_lost = lost_;
  report.events = events_;
  report.event_age = age_;
}

void Watchers::on_idle(Connection& connection) {
  std::string target = fmt::format(
      "/apis/coordination.k8s.io/v1/namespaces/{}/leases?watch=true&allowWatchBookmarks=true&sendInitialEvents=false"
      "&resourceVersionMatch=NotOlderThan",
      options_.ns);
  if (connection.index >= options_.general_watches) {
    // Spread over all leases.
    const std::size_t lease = connection.index * options_.leases / options_.watches;
    target += fmt::format("&fieldSelector=metadata.name%3Dnode-{:06}", lease);
  }
  connection.send(dialer_.head("GET", target, 0));
  ++opened_;
}

void Watchers::on_piece(Connection& connection, std::string_view piece) {
  std::string& rest = rest_[connection.index];
  for (std::size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    if (rest.empty()) {
      on_line(piece.substr(0, end));
    } else {
      rest += piece.substr(0, end);
      on_line(rest);
      rest.clear();
    }
    piece.remove_prefix(end + 1);
  }
  if (rest.size() < kLineBytesMax) rest += piece;
}

void Watchers::on_line(std::string_view line) {
  const std::size_t near_end = line.size() - std::min<std::size_t>(line.size(), 96);
  const std::string_view renewed = string_member(line, "renewTime", near_end);
  if (renewed.empty()) return;  // a bookmark
  const Result<WallTime> time = api::parse_time(renewed);
  if (!time) return;
  const Instant due(Duration(time->time_since_epoch()) - wall_behind_);
  if (due < measured_ || due >= end_) return;
  ++events_;
  age_.record(now() - due);
}

void Watchers::on_answer(Connection&) {
  ++lost_;  // a watch has no end of its own
}

void Watchers::on_lost(Connection&, std::string_view) {
  ++lost_;
}

}  // namespace spillway::load
