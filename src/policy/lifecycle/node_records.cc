#include "policy/lifecycle/node_records.h"

#include "base/check.h"
#include "base/rng.h"

#include <utility>

namespace spillway::lifecycle {
namespace {

constexpr std::size_t kIndexMin = 64;

}  // namespace

NodeRecords::NodeRecords() : index_(kIndexMin, kNone) {}

/// The slot of the name in the index, or the free slot in which it would be stored.
std::size_t NodeRecords::slot_of(std::string_view name) const {
  const std::size_t mask = index_.size() - 1;
  std::size_t slot = fnv1a64(name) & mask;
  while (index_[slot] != kNone && (*this)[index_[slot]].name != name) slot = (slot + 1) & mask;
  return slot;
}

NodeRecords::Id NodeRecords::find(std::string_view name) const {
  return index_[slot_of(name)];
}

void NodeRecords::grow_index() {
  const std::vector<Id> before = std::exchange(index_, std::vector<Id>(index_.size() * 2, kNone));
  for (const Id id : before) {
    if (id != kNone) index_[slot_of((*this)[id].name)] = id;
  }
}

NodeRecords::Id NodeRecords::find_or_add(std::string_view name) {
  if (const Id known = find(name); known != kNone) return known;
  if ((size_ + 1) * 10 > index_.size() * 7) grow_index();
  Id id = used_;
  if (free_.empty()) {
    if (used_++ % kBlock == 0) blocks_.push_back(std::make_unique<Block>());
  } else {
    id = free_.back();
    free_.pop_back();
  }
  (*this)[id].name = name;
  index_[slot_of(name)] = id;
  ++size_;
  return id;
}

void NodeRecords::erase(Id id) {
  unlink(id);
  agenda_.erase((*this)[id].name);
  // Linear probing: whatever follows and would be found earlier moves into the gap.
  const std::size_t mask = index_.size() - 1;
  std::size_t gap = slot_of((*this)[id].name);
  SPILLWAY_CHECK(index_[gap] == id);
  for (std::size_t next = (gap + 1) & mask; index_[next] != kNone; next = (next + 1) & mask) {
    const std::size_t home = fnv1a64((*this)[index_[next]].name) & mask;
    if (((next - home) & mask) < ((next - gap) & mask)) continue;
    index_[gap] = index_[next];
    gap = next;
  }
  index_[gap] = kNone;
  (*this)[id] = Entry();
  free_.push_back(id);
  --size_;
}

std::optional<HealthRecord> NodeRecords::record(Id id) const {
  const Entry& entry = (*this)[id];
  const auto has = [&entry](std::uint8_t what) { return (entry.present & what) != 0; };
  const auto time = [&has](std::uint8_t what, WallTime value) {
    return has(what) ? std::optional(value) : std::nullopt;
  };
  if (!has(Entry::kRecord)) return std::nullopt;
  HealthRecord record{.probe = entry.probe,
                      .transition = entry.transition,
                      .ready = std::nullopt,
                      .lease_renewed = time(Entry::kRenewed, entry.lease_renewed),
                      .lease_seen = time(Entry::kSeen, entry.lease_seen)};
  if (has(Entry::kReadiness)) {
    record.ready =
        HealthRecord::Ready{entry.ready, time(Entry::kHeartbeat, entry.heartbeat), time(Entry::kTurned, entry.turned)};
  }
  return record;
}

void NodeRecords::set_record(Id id, const HealthRecord& record) {
  Entry& entry = (*this)[id];
  with_heartbeat_ -= has_heartbeat(entry) ? 1 : 0;
  const bool stays = entry.linked && record.ready && entry.probe == record.probe;
  if (!stays) unlink(id);
  entry.present = Entry::kRecord;
  const auto keep = [&entry](std::uint8_t what, const std::optional<WallTime>& from, WallTime& to) {
    if (!from) return;
    entry.present |= what;
    to = *from;
  };
  entry.probe = record.probe;
  entry.transition = record.transition;
  keep(Entry::kRenewed, record.lease_renewed, entry.lease_renewed);
  keep(Entry::kSeen, record.lease_seen, entry.lease_seen);
  if (record.ready) {
    entry.present |= Entry::kReadiness;
    entry.ready = record.ready->status;
    keep(Entry::kHeartbeat, record.ready->heartbeat, entry.heartbeat);
    keep(Entry::kTurned, record.ready->transition, entry.turned);
    if (!stays && entry.known) link(id);
  }
  with_heartbeat_ += has_heartbeat(entry) ? 1 : 0;
}

void NodeRecords::retire(Id id) {
  with_heartbeat_ -= has_heartbeat((*this)[id]) ? 1 : 0;
  unlink(id);
  (*this)[id].known = false;
}

void NodeRecords::restart_all(Instant now) {
  for (Id id = 0; id < used_; ++id) {
    Entry& entry = (*this)[id];
    if (!entry.known || (entry.present & Entry::kRecord) == 0) continue;
    entry.probe = now;
    entry.transition = now;
  }
}

/// Searches from the end, where a sign of life belongs.
void NodeRecords::link(Id id) {
  Entry& entry = (*this)[id];
  Id before = last_;
  while (before != kNone && (*this)[before].probe > entry.probe) before = (*this)[before].before;
  entry.before = before;
  entry.after = before == kNone ? first_ : (*this)[before].after;
  (before == kNone ? first_ : (*this)[before].after) = id;
  (entry.after == kNone ? last_ : (*this)[entry.after].before) = id;
  entry.linked = true;
}

void NodeRecords::unlink(Id id) {
  Entry& entry = (*this)[id];
  if (!entry.linked) return;
  (entry.before == kNone ? first_ : (*this)[entry.before].after) = entry.after;
  (entry.after == kNone ? last_ : (*this)[entry.after].before) = entry.before;
  entry.before = entry.after = kNone;
  entry.linked = false;
}

void NodeRecords::touch(Id id) {
  Entry& entry = (*this)[id];
  if (entry.touched) return;
  entry.touched = true;
  agenda_.emplace(entry.name, id);
}

void NodeRecords::touch_silent(Instant now, Duration grace) {
  for (Id id = first_; id != kNone && now > (*this)[id].probe + grace; id = (*this)[id].after) touch(id);
}

std::optional<Instant> NodeRecords::first_deadline(Instant now, Duration grace) const {
  for (Id id = first_; id != kNone; id = (*this)[id].after) {
    const Instant deadline = (*this)[id].probe + grace;
    if (now <= deadline) return deadline;
  }
  return std::nullopt;
}

NodeRecords::Heartbeats NodeRecords::heartbeats(Instant now, Duration late) const {
  Heartbeats result{.nodes = with_heartbeat_};
  for (Id id = first_; id != kNone && now - (*this)[id].probe > late; id = (*this)[id].after) {
    result.late += has_heartbeat((*this)[id]) ? 1 : 0;
  }
  return result;
}

}  // namespace spillway::lifecycle
