#include "store/etcd/etcd_leases.h"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <utility>

namespace spillway::store {

Duration EtcdLeases::reuse_of(Duration ttl) const {
  return std::min(reuse_, ttl / 20);
}

/// Upstream's rule: the lease ends neither before the key may nor much later.
bool EtcdLeases::fits(Duration ttl) const {
  const Instant end = transport_.now() + ttl;
  return lease_ != 0 && keys_ < kKeysMax && end <= ends_ && ends_ <= end + reuse_of(ttl) + seconds(1);
}

void EtcdLeases::take(Duration ttl, Done done) {
  if (waiting_.empty() && fits(ttl)) {
    ++keys_;
    return done(lease_);
  }
  waiting_.push_back({ttl, std::move(done)});
  if (waiting_.size() == 1) grant();
}

/// Asks etcd for a lease with the life that the first waiting caller needs; it serves every other caller that it fits.
void EtcdLeases::grant() {
  const Duration ttl = waiting_.front().ttl;
  // Whole seconds; the grant itself takes time.
  const auto life = std::chrono::ceil<std::chrono::seconds>(ttl + reuse_of(ttl));
  asked_ = transport_.now();
  calls_.grant(life, kGrantMax, [this](std::expected<EtcdLease, EtcdFailure> lease, bool) {
    auto waiting = std::exchange(waiting_, {});
    if (!lease) {
      for (Waiting& each : waiting) each.done(std::unexpected(lease.error()));
      return;
    }
    lease_ = lease->id;
    ends_ = asked_ + lease->life;
    keys_ = 0;
    // The first caller gets it in any case: a grant that took long is not repeated again and again.
    ++keys_;
    waiting.front().done(lease_);
    for (Waiting& each : waiting | std::views::drop(1)) take(each.ttl, std::move(each.done));
  });
}

void EtcdLeases::forget(std::int64_t lease) {
  if (lease_ == lease) lease_ = 0;
}

}  // namespace spillway::store
