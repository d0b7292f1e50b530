#include "sim/etcd/etcd_replicas.h"

#include <algorithm>
#include <utility>

namespace spillway::sim {
namespace {

constexpr Duration kElectionMin = seconds(1);
constexpr Duration kElectionSpread = milliseconds(1'500);

}  // namespace

EtcdReplicas::EtcdReplicas(VirtualTime& time, Rng rng, std::size_t count, Listener& listener)
    : time_(time), rng_(rng), listener_(listener), members_(count) {}

Duration EtcdReplicas::draw(Duration most) {
  return Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most.count()) + 1)));
}

bool EtcdReplicas::has_majority() const {
  std::size_t connected = 0;
  for (std::size_t member = 0; member < members_.size(); ++member) connected += is_connected(member) ? 1 : 0;
  return 2 * connected > members_.size();
}

// Leaders

void EtcdReplicas::lose_leader() {
  leader_.reset();
  ++term_;
  listener_.on_leader_lost();
  check_leader();
}

void EtcdReplicas::check_leader() {
  if (leader_ && (!is_connected(*leader_) || !has_majority())) return lose_leader();
  if (leader_ || electing_ || !has_majority()) return;
  electing_ = true;
  time_.after(kElectionMin + draw(kElectionSpread), [this] {
    electing_ = false;
    if (!leader_ && has_majority()) elect();
  });
}

void EtcdReplicas::elect() {
  std::vector<std::size_t> candidates;
  for (std::size_t member = 0; member < members_.size(); ++member)
    if (is_connected(member)) candidates.push_back(member);
  leader_ = candidates[rng_.below(candidates.size())];
  ++term_;
  for (auto& commit : std::exchange(survivors_, {})) commit();
  for (auto& task : std::exchange(waiting_, {})) task();
  listener_.on_leader_found();
}

void EtcdReplicas::depose() {
  if (leader_) lose_leader();
}

void EtcdReplicas::stop(std::size_t member) {
  if (!std::exchange(members_[member].up, false)) return;
  members_[member].waiting.clear();
  listener_.on_stopped(member);
  check_leader();
}

void EtcdReplicas::start(std::size_t member) {
  if (std::exchange(members_[member].up, true)) return;
  check_leader();
  ship(member, log_.size() - 1);
}

void EtcdReplicas::part(std::size_t member) {
  members_[member].parted = true;
  check_leader();
}

void EtcdReplicas::rejoin(std::size_t member) {
  members_[member].parted = false;
  check_leader();
  ship(member, log_.size() - 1);
}

// Agreement

void EtcdReplicas::propose(std::size_t member, std::move_only_function<Applied()> run,
                           std::move_only_function<void()> applied) {
  if (!knows_leader(member)) {
    waiting_.push_back([this, member, run = std::move(run), applied = std::move(applied)]() mutable {
      if (members_[member].up) propose(member, std::move(run), std::move(applied));
    });
    return;
  }
  time_.after(draw(pace_.commit_max),
              [this, member, term = term_, run = std::move(run), applied = std::move(applied)]() mutable {
                if (term == term_) return commit(member, std::move(run), std::move(applied));
                if (rng_.below(2) == 0) return;
                auto late = [this, run = std::move(run)]() mutable { write(std::move(run)); };
                // A follower had the write, so it is in the log of the next leader.
                leader_ ? late() : survivors_.push_back(std::move(late));
              });
}

void EtcdReplicas::commit(std::size_t member, std::move_only_function<Applied()> run,
                          std::move_only_function<void()> applied) {
  write(std::move(run));
  if (members_[member].up) wait_applied(member, log_.size() - 1, std::move(applied));
}

void EtcdReplicas::write(std::move_only_function<Applied()> run) {
  log_.push_back(run());
  for (std::size_t each = 0; each < members_.size(); ++each) ship(each, log_.size() - 1);
}

void EtcdReplicas::read_index(std::size_t member, std::move_only_function<void()> applied) {
  if (!knows_leader(member)) {
    waiting_.push_back([this, member, applied = std::move(applied)]() mutable {
      if (members_[member].up) read_index(member, std::move(applied));
    });
    return;
  }
  time_.after(draw(pace_.commit_max), [this, member, term = term_, applied = std::move(applied)]() mutable {
    if (!members_[member].up) return;
    if (term != term_) return read_index(member, std::move(applied));
    wait_applied(member, log_.size() - 1, std::move(applied));
  });
}

void EtcdReplicas::wait_applied(std::size_t member, std::size_t entry, std::move_only_function<void()> task) {
  if (members_[member].applied >= entry) return task();
  members_[member].waiting.emplace(entry, std::move(task));
}

/// Sends the log up to this entry to a reachable member; another one gets it when it is back.
void EtcdReplicas::ship(std::size_t member, std::size_t entry) {
  if (!is_connected(member)) return;
  const bool late = pace_.late_ppm > 0 && rng_.chance_ppm(pace_.late_ppm);
  Member& to = members_[member];
  to.next_apply = std::max(to.next_apply, time_.now().mono + draw(late ? pace_.late_max : pace_.lag_max));
  time_.at(to.next_apply, [this, member, entry] {
    if (is_connected(member)) apply(member, entry);
  });
}

void EtcdReplicas::apply(std::size_t member, std::size_t entry) {
  Member& to = members_[member];
  if (to.applied >= entry) return;
  to.applied = entry;
  listener_.on_applied(member);
  while (!to.waiting.empty() && to.waiting.begin()->first <= to.applied) {
    auto task = std::move(to.waiting.begin()->second);
    to.waiting.erase(to.waiting.begin());
    task();
  }
}

}  // namespace spillway::sim
