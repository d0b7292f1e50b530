#include "wire/server/bounds/connection_table.h"

namespace spillway::wire {

ConnectionTable::Decision ConnectionTable::admit(Id id, const std::string& address) {
  const std::lock_guard lock(mutex_);
  Decision decision;
  if (const auto same = unproven_by_address_.find(address);
      same != unproven_by_address_.end() && same->second.size() >= bounds_.unproven_per_address_max) {
    decision.displaced = displace(same->second);
  } else if (unproven_.size() >= bounds_.unproven_max) {
    decision.displaced = displace(unproven_);
  }
  for (const Order* order : {&idle_ordinary_, &idle_vital_, &unproven_}) {
    if (entries_.size() >= bounds_.connections_max && !decision.displaced) decision.displaced = displace(*order);
  }
  if (entries_.size() >= bounds_.connections_max) return {.admitted = false, .displaced = std::nullopt};
  const std::uint64_t now = ++tick_;
  entries_.emplace(id, Entry{.rank = ClientRank::kUnproven, .address = address, .since = now, .idle_since = {}});
  unproven_.emplace(now, id);
  unproven_by_address_[address].emplace(now, id);
  return decision;
}

ConnectionTable::Decision ConnectionTable::prove(Id id, ClientRank rank) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || rank == ClientRank::kUnproven || found->second.rank == rank) return {};
  Decision decision;
  if (rank == ClientRank::kOrdinary && ordinary_ >= bounds_.ordinary_max) {
    decision.displaced = displace(idle_ordinary_);
    if (!decision.displaced) {
      forget(found);
      return {.admitted = false, .displaced = std::nullopt};
    }
  }
  Entry entry = found->second;
  forget(found);
  entry.rank = rank;
  entry.idle_since.reset();
  entries_.emplace(id, std::move(entry));
  if (rank == ClientRank::kOrdinary) ++ordinary_;
  return decision;
}

void ConnectionTable::set_idle(Id id, bool idle) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.rank == ClientRank::kUnproven) return;
  Entry& entry = found->second;
  if (entry.idle_since.has_value() == idle) return;
  Order& order = idle_of(entry.rank);
  if (idle) {
    entry.idle_since = ++tick_;
    order.emplace(*entry.idle_since, id);
  } else {
    order.erase({*entry.idle_since, id});
    entry.idle_since.reset();
  }
}

void ConnectionTable::remove(Id id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(id); found != entries_.end()) forget(found);
}

std::size_t ConnectionTable::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void ConnectionTable::forget(Entries::iterator found) {
  const auto& [id, entry] = *found;
  if (entry.rank == ClientRank::kUnproven) {
    unproven_.erase({entry.since, id});
    const auto address = unproven_by_address_.find(entry.address);
    address->second.erase({entry.since, id});
    if (address->second.empty()) unproven_by_address_.erase(address);
  } else if (entry.idle_since) {
    idle_of(entry.rank).erase({*entry.idle_since, id});
  }
  if (entry.rank == ClientRank::kOrdinary) --ordinary_;
  entries_.erase(found);
}

/// Removes the first connection of the order from the table.
std::optional<ConnectionTable::Id> ConnectionTable::displace(const Order& order) {
  if (order.empty()) return std::nullopt;
  const Id id = order.begin()->second;
  forget(entries_.find(id));
  return id;
}

}  // namespace spillway::wire
