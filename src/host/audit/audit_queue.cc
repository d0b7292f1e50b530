#include "host/audit/audit_queue.h"

#include <utility>

namespace spillway::host {

bool AuditQueue::has_room(std::size_t bytes) const {
  return entries_.empty() || (entries_.size() < bounds_.events_max && bytes_ + bytes <= bounds_.bytes_max);
}

bool AuditQueue::push(AuditEntry& entry) {
  if (!has_room(entry.line.size())) return false;
  bytes_ += entry.line.size();
  entries_.push_back(std::move(entry));
  return true;
}

std::vector<AuditEntry> AuditQueue::take(std::size_t bytes_max) {
  std::vector<AuditEntry> taken;
  std::size_t bytes = 0;
  while (!entries_.empty() && (taken.empty() || bytes + entries_.front().line.size() <= bytes_max)) {
    bytes += entries_.front().line.size();
    taken.push_back(std::move(entries_.front()));
    entries_.pop_front();
  }
  bytes_ -= bytes;
  return taken;
}

}  // namespace spillway::host
