// A store in an etcd cluster, a real or a simulated one, that no other server uses.
#pragma once

#include "sim/etcd/sim_etcd.h"
#include "store/etcd/etcd_store.h"
#include "store/offset_store.h"
#include "store/store_client.h"
#include "store/test_loop.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace spillway::store {

/// Advances virtual time by up to half a minute, and again after each change.
inline void turn_when_idle(TestLoop& loop, sim::VirtualTime& time, sim::SimEtcd& etcd) {
  loop.when_idle([&time, &etcd, until = Instant(), seen = std::uint64_t(0)]() mutable {
    const std::uint64_t revision = etcd.history().revision().number();
    if (std::exchange(seen, revision) != revision) until = time.now().mono + seconds(30);
    return time.run_next(until);
  });
}

/// Below the prefix of `options`; its revisions begin at 0, as those of an empty store. Null: the test has failed.
inline std::unique_ptr<Store> open_alone(std::unique_ptr<EtcdTransport> transport, EtcdOptions options,
                                         TestLoop& loop) {
  options.root = "";
  options.agrees_on_compaction = false;
  options.carries_previous = true;
  auto store = std::make_unique<EtcdStore>(std::move(transport), loop.poster(), options);
  const Result<RangeResult> head = StoreClient(*store, loop).range({});
  EXPECT_TRUE(head) << head.error().text();
  if (!head) return nullptr;
  return std::make_unique<OffsetStore>(std::move(store), head->revision);
}

}  // namespace spillway::store
