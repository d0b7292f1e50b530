// Leases by which keys go by themselves: one is given to several keys, as upstream does, so that not every event costs
// a grant. A key lives at least as long as it is to, and at most the reuse time longer.
// Thread: loop. Bounds: kKeysMax keys of a lease; one grant at a time, others wait for it. Source: spec "etcd as the
// store", 7; Kubernetes, --lease-reuse-duration-seconds.
#pragma once

#include "store/etcd/etcd_calls.h"
#include "store/etcd/etcd_wire.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <vector>

namespace spillway::store {

class EtcdLeases {
 public:
  static constexpr Duration kReuse = seconds(60);
  static constexpr std::size_t kKeysMax = 1'000;
  static constexpr Duration kGrantMax = seconds(15);

  using Done = std::move_only_function<void(std::expected<std::int64_t, EtcdFailure>)>;

  /// `reuse`: for so long a lease is given to further keys, at most a twentieth of their life.
  EtcdLeases(EtcdTransport& transport, EtcdCalls& calls, Duration reuse)
      : transport_(transport), calls_(calls), reuse_(reuse) {}

  /// A lease that ends after `ttl`, soon after.
  void take(Duration ttl, Done done);
  /// Forgets a lease that has ended before its time.
  void forget(std::int64_t lease);

 private:
  struct Waiting {
    Duration ttl{};
    Done done;
  };

  Duration reuse_of(Duration ttl) const;
  bool fits(Duration ttl) const;
  void grant();

  EtcdTransport& transport_;
  EtcdCalls& calls_;
  Duration reuse_;
  std::int64_t lease_ = 0;  // 0: none
  Instant ends_{};
  std::size_t keys_ = 0;
  Instant asked_{};  // when the grant was requested
  std::vector<Waiting> waiting_;
};

}  // namespace spillway::store
