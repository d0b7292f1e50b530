#include "store/retention.h"

#include <algorithm>

namespace spillway::store {
namespace {

Revision minus(Revision revision, std::uint64_t count) {
  return Revision(revision.number() > count ? revision.number() - count : 0);
}

}  // namespace

Retention::Retention(HistoryPolicy policy, Instant now, Revision head) : policy_(policy), marks_{Mark{now, head}} {}

Revision Retention::compact_to(const HistorySize& size, Instant now) {
  if (now >= next_wakeup()) marks_.push_back(Mark{now, size.head});
  // Drops all marks that are old enough but the newest, which allows to forget most.
  while (marks_.size() > 1 && marks_[1].at + policy_.age_min <= now) marks_.pop_front();
  Revision target = size.compacted;
  if (marks_.front().at + policy_.age_min <= now) {
    target = std::max(target, std::min(marks_.front().head, minus(size.head, policy_.revisions_min)));
  }
  const Bytes bytes_max = std::max(policy_.bytes_max, Bytes{size.live.count() / 2});
  if (size.history > bytes_max) {
    // Down to 7/8, so that it does not happen at every write. Revisions are taken to be of the same size.
    const double surplus = static_cast<double>(size.history.count()) - 0.875 * static_cast<double>(bytes_max.count());
    const double share = surplus / static_cast<double>(size.history.count());
    const auto revisions = static_cast<double>(size.head.number() - size.compacted.number());
    const Revision smaller(size.compacted.number() + static_cast<std::uint64_t>(share * revisions) + 1);
    target = std::max(target, std::min(smaller, minus(size.head, policy_.revisions_floor)));
  }
  return target;
}

}  // namespace spillway::store
