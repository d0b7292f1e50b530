#include "sim/etcd/sim_etcd.h"

#include "sim/etcd/sim_etcd_parts.h"

#include <algorithm>
#include <utility>

namespace spillway::sim {
namespace {

using store::EtcdFailure;
using store::Revision;

// Status codes of gRPC.
constexpr int kInvalidArgument = 3;
constexpr int kNotFound = 5;
constexpr int kResourceExhausted = 8;
constexpr int kOutOfRange = 11;

std::unexpected<EtcdFailure> refusal(int code, std::string words) {
  return std::unexpected(EtcdFailure{code, std::move(words)});
}

std::unexpected<EtcdFailure> no_space() {
  return refusal(kResourceExhausted, "etcdserver: mvcc: database space exceeded");
}

}  // namespace

SimEtcd::SimEtcd(VirtualTime& time, Rng rng, SimEtcdOptions options)
    : time_(time), rng_(rng), options_(options), replicas_(time, rng.fork("replicas"), options.replicas, *this) {
  replicas_.set_pace(options_.faults.pace);
}

SimEtcd::~SimEtcd() = default;

void SimEtcd::set_faults(const EtcdFaults& faults) {
  options_.faults = faults;
  replicas_.set_pace(faults.pace);
}

Duration SimEtcd::delay() {
  const EtcdFaults& faults = options_.faults;
  const bool slow = faults.slow_ppm > 0 && rng_.chance_ppm(faults.slow_ppm);
  const Duration most = slow ? faults.slow_max : faults.latency_max;
  return Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most.count()) + 1)));
}

bool SimEtcd::is_lost(const std::string& client) {
  const std::uint32_t lost = options_.faults.lost_ppm;
  return cut_off_.contains(client) || (lost > 0 && rng_.chance_ppm(lost));
}

void SimEtcd::cut_off(const std::string& client) {
  cut_off_.insert(client);
  for (const auto& [number, stream] : streams_)
    if (stream->client() == client) stream->end(kKeepalive, kUnavailable, "keepalive watchdog timeout");
}

// Calls

void SimEtcd::send(const std::shared_ptr<Call>& call) {
  if (is_lost(call->client)) return;
  // The request arrives even if its sender has ended meanwhile.
  time_.after(delay(), [this, call] { arrive(call); });
}

void SimEtcd::arrive(const std::shared_ptr<Call>& call) {
  if (!replicas_.is_up(call->member)) {
    call->outcome = refusal(kUnavailable, "failed to connect to all addresses; last error: connection refused");
    return reply(call);
  }
  call->number = ++last_number_;
  open_.emplace(call->number, call);
  if (const auto* txn = std::get_if<store::EtcdTxn>(&call->request);
      txn != nullptr && txn->put && 2 * txn->key.size() + txn->put->size() > kRequestBytesMax) {
    call->outcome = refusal(kInvalidArgument, "etcdserver: request is too large");
    return reply(call);
  }
  if (std::holds_alternative<store::EtcdRange>(call->request)) {
    replicas_.read_index(call->member, [this, call] { read(call); });
  } else {
    replicas_.propose(
        call->member,
        [this, call] {
          const Revision before = history_.revision();
          run(*call);
          return committed(before);
        },
        [this, call] { reply(call); });
  }
  time_.after(kGivesUpAfter, [this, call, term = replicas_.term()] {
    if (!open_.contains(call->number)) return;
    call->outcome =
        refusal(kUnavailable, term == replicas_.term()
                                  ? "etcdserver: request timed out"
                                  : "etcdserver: request timed out, possibly due to previous leader failure");
    reply(call);
  });
}

/// Answers a call, once only. A member that has stopped since does not answer.
void SimEtcd::reply(const std::shared_ptr<Call>& call) {
  if (call->number != 0 && open_.erase(call->number) == 0) return;
  if (is_lost(call->client)) return;
  time_.after(delay(), [this, weak = std::weak_ptr(call), outcome = *call->outcome]() mutable {
    const auto asked = weak.lock();
    if (asked && !cut_off_.contains(asked->client)) asked->finish(std::move(outcome));
  });
}

/// Answers from the state that this member shows, which is no older than the call's arrival.
void SimEtcd::read(const std::shared_ptr<Call>& call) {
  const Revision present = std::max(replicas_.applied(call->member).revision, history_.compacted());
  auto answer = history_.read(std::get<store::EtcdRange>(call->request), present);
  call->outcome = answer ? Call::Outcome(*std::move(answer)) : std::unexpected(answer.error());
  reply(call);
}

EtcdReplicas::Applied SimEtcd::committed(Revision before) {
  const auto events = history_.events(before, history_.revision());
  if (!events.empty() && observer_) observer_(events);
  return {history_.revision(), history_.compacted()};
}

void SimEtcd::write(const std::vector<EtcdHistory::Put>& puts) {
  replicas_.write([this, puts] {
    const Revision before = history_.revision();
    for (const EtcdHistory::Put& put : puts) attach(put.first, 0);
    history_.write(puts);
    return committed(before);
  });
}

void SimEtcd::compact(Revision revision) {
  replicas_.write([this, revision] {
    history_.compact(std::min(revision, history_.revision()));
    return committed(history_.revision());
  });
}

// Requests on which the members agree

void SimEtcd::run(Call& call) {
  if (std::holds_alternative<store::EtcdTxn>(call.request)) return run_txn(call);
  if (std::holds_alternative<Revision>(call.request)) return run_compact(call);
  run_grant(call);
}

bool SimEtcd::has_room(std::size_t bytes) {
  full_ = full_ || history_.bytes() + bytes > options_.quota_bytes;
  return !full_;
}

/// A full etcd refuses whatever may put, even where its comparison would fail.
void SimEtcd::run_txn(Call& call) {
  const auto& txn = std::get<store::EtcdTxn>(call.request);
  if (txn.put && !has_room(txn.key.size() + txn.put->size())) {
    call.outcome = no_space();
    return;
  }
  if (txn.put && txn.lease != 0 && !leases_.contains(txn.lease)) {
    call.outcome = refusal(kNotFound, "etcdserver: requested lease not found");
    return;
  }
  store::EtcdTxnAnswer answer = history_.run(txn);
  if (answer.succeeded) attach(txn.key, txn.put ? txn.lease : 0);
  call.outcome = std::move(answer);
}

void SimEtcd::run_compact(Call& call) {
  const Revision revision = std::get<Revision>(call.request);
  if (revision <= history_.compacted()) {
    call.outcome = refusal(kOutOfRange, "etcdserver: mvcc: required revision has been compacted");
  } else if (revision > history_.revision()) {
    call.outcome = refusal(kOutOfRange, "etcdserver: mvcc: required revision is a future revision");
  } else {
    history_.compact(revision);
    call.outcome = revision;
  }
}

void SimEtcd::run_grant(Call& call) {
  if (full_) {
    call.outcome = no_space();
    return;
  }
  const Duration life = std::get<Duration>(call.request);
  const std::int64_t id = ++last_lease_;
  leases_[id] = {life, time_.now().mono + life, {}};
  time_.after(life, [this, id] { check_lease(id); });
  call.outcome = store::EtcdLease{id, life};
}

// Leases

void SimEtcd::attach(const std::string& key, std::int64_t lease) {
  if (const auto before = lease_of_.find(key); before != lease_of_.end()) {
    leases_.at(before->second).keys.erase(key);
    lease_of_.erase(before);
  }
  if (lease == 0) return;
  leases_.at(lease).keys.insert(key);
  lease_of_.emplace(key, lease);
}

/// The leader ends an expired lease; without a leader the lease lives on.
void SimEtcd::check_lease(std::int64_t lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || !replicas_.has_leader()) return;
  if (found->second.ends <= time_.now().mono) return end_lease(lease);
  time_.at(found->second.ends, [this, lease] { check_lease(lease); });
}

void SimEtcd::end_lease(std::int64_t lease) {
  replicas_.write([this, lease] {
    const Revision before = history_.revision();
    std::vector<EtcdHistory::Put> gone;
    for (const std::string& key : leases_.at(lease).keys) {
      gone.emplace_back(key, nullptr);
      lease_of_.erase(key);
    }
    leases_.erase(lease);
    history_.write(gone);
    return committed(before);
  });
}

// Members

void SimEtcd::on_applied(std::size_t member) {
  for (const auto& [number, stream] : streams_)
    if (stream->member() == member) stream->push();
}

void SimEtcd::on_stopped(std::size_t member) {
  for (const auto& [number, stream] : streams_)
    if (stream->member() == member) stream->end(delay(), kUnavailable, "Socket closed");
  std::vector<std::shared_ptr<Call>> broken;
  for (const auto& [number, weak] : open_)
    if (const auto call = weak.lock(); call && call->member == member) broken.push_back(call);
  for (const auto& call : broken) {
    call->outcome = refusal(kUnavailable, "Socket closed");
    reply(call);
  }
}

void SimEtcd::on_leader_lost() {
  for (const auto& [number, stream] : streams_) stream->end_without_leader();
}

/// A new leader does not have the age of leases: each begins anew.
void SimEtcd::on_leader_found() {
  for (auto& [id, lease] : leases_) {
    lease.ends = time_.now().mono + lease.life;
    time_.at(lease.ends, [this, lease_id = id] { check_lease(lease_id); });
  }
}

}  // namespace spillway::sim
