#include "sim/etcd/sim_etcd_parts.h"

#include <algorithm>
#include <utility>

namespace spillway::sim {
namespace {

using store::EtcdEvent;
using store::EtcdWatchMessage;
using store::Revision;

}  // namespace

SimEtcd::Stream::Stream(SimEtcd& etcd, std::string client, std::size_t member, Revision from,
                        store::EtcdTransport::WatchReceiver& receiver)
    : etcd_(etcd),
      client_(std::move(client)),
      member_(member),
      from_(from),
      sent_(from.number() - 1),
      receiver_(receiver),
      number_(++etcd.last_number_) {
  etcd_.streams_.emplace(number_, this);
  if (etcd_.cut_off_.contains(client_))
    end(kKeepalive, kUnavailable, "keepalive watchdog timeout");
  else
    later(etcd_.delay(), [this] { arrive(); });
}

SimEtcd::Stream::~Stream() {
  etcd_.streams_.erase(number_);
}

void SimEtcd::Stream::later(Duration in, std::move_only_function<void()> task) {
  etcd_.time_.after(in, alive_.guard([task = std::move(task)]() mutable { task(); }));
}

void SimEtcd::Stream::arrive() {
  if (over_) return;
  if (!etcd_.replicas_.is_up(member_)) return end(etcd_.delay(), kUnavailable, "failed to connect to all addresses");
  open_ = true;
  const EtcdReplicas::Applied& applied = etcd_.replicas_.applied(member_);
  if (from_ < applied.compacted) {
    deliver({.canceled = true, .compacted = applied.compacted});
    over_ = true;
    return;
  }
  if (!etcd_.replicas_.knows_leader(member_)) end_without_leader();
  if (etcd_.options_.faults.future_shows_past && from_ > applied.revision)
    sent_ = Revision(applied.revision.number() - 1);
  push();
}

void SimEtcd::Stream::end_without_leader() {
  later(kNoLeaderAfter, [this] {
    if (!etcd_.replicas_.knows_leader(member_)) end(Duration::zero(), kUnavailable, "etcdserver: no leader");
  });
}

void SimEtcd::Stream::end(Duration in, int code, std::string why) {
  if (std::exchange(over_, true)) return;
  later(in, [this, code, why = std::move(why)] { receiver_.on_watch_broken({code, why}); });
}

void SimEtcd::Stream::push() {
  if (!open_ || over_) return;
  const Revision present = etcd_.replicas_.applied(member_).revision;
  if (present <= sent_) return;
  const auto fresh = etcd_.history_.events(sent_, present);
  std::vector<EtcdEvent> events(fresh.begin(), fresh.end());
  const EtcdFaults& faults = etcd_.options_.faults;
  if (faults.gap_ppm > 0 && etcd_.rng_.chance_ppm(faults.gap_ppm)) {
    const Revision lost = events.front().revision;
    std::erase_if(events, [lost](const EtcdEvent& event) { return event.revision == lost; });
  }
  if (faults.repeat_ppm > 0 && sent_.number() > 1 && etcd_.rng_.chance_ppm(faults.repeat_ppm)) {
    const auto again = etcd_.history_.events(Revision(sent_.number() - 1), sent_);
    events.insert(events.begin(), again.begin(), again.end());
  }
  if (faults.early_progress_ppm > 0 && etcd_.rng_.chance_ppm(faults.early_progress_ppm)) deliver({});
  sent_ = present;
  send(std::move(events));
}

void SimEtcd::Stream::send(std::vector<EtcdEvent> events) {
  if (events.empty()) return;
  const std::uint32_t pieces = etcd_.options_.faults.fragment_ppm;
  if (pieces == 0 || !etcd_.rng_.chance_ppm(pieces)) return deliver({.events = std::move(events)});
  for (std::size_t at = 0; at < events.size(); ++at) {
    EtcdWatchMessage message{.fragment = at + 1 < events.size()};
    message.events.push_back(std::move(events[at]));
    deliver(std::move(message));
  }
}

/// Delivers in the order of the connection.
void SimEtcd::Stream::deliver(EtcdWatchMessage message) {
  const Instant now = etcd_.time_.now().mono;
  last_due_ = std::max(last_due_, now + etcd_.delay());
  later(last_due_ - now, [this, canceled = message.canceled, message = std::move(message)]() mutable {
    if (!over_ || canceled) receiver_.on_watch_message(std::move(message));
  });
}

}  // namespace spillway::sim
