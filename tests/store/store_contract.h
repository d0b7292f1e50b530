// Each kind of store, empty, for the tests of what every store promises (store/store.h).
#pragma once

#include "sim/etcd/sim_etcd.h"
#include "store/etcd/grpc/grpc_transport.h"
#include "store/etcd_process.h"
#include "store/lone_etcd_store.h"
#include "store/memory_store.h"
#include "store/scratch_directory.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store_client.h"
#include "store/test_loop.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::store::contract {

enum class Kind { kMemory, kSqlite, kEtcd, kSimEtcd };

inline std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  switch (info.param) {
    case Kind::kMemory:
      return "Memory";
    case Kind::kSqlite:
      return "Sqlite";
    case Kind::kEtcd:
      return "Etcd";
    case Kind::kSimEtcd:
      break;
  }
  return "SimEtcd";
}

inline StoreLimits small_limits() {
  StoreLimits limits;
  limits.key_bytes_max = 64;
  limits.value_bytes_max = 10'000;
  limits.pending_operations_max = 1'000;
  limits.pending_bytes_max = 1'000'000;
  return limits;
}

class StoreContract : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    switch (GetParam()) {
      case Kind::kMemory:
        store_ = std::make_unique<MemoryStore>(loop_.poster(), small_limits());
        break;
      case Kind::kSqlite: {
        SqliteOptions options;
        options.limits = small_limits();
        auto opened = SqliteStore::open(directory_.file("test.db"), loop_.poster(), options);
        ASSERT_TRUE(opened) << opened.error().text();
        store_ = *std::move(opened);
        break;
      }
      case Kind::kEtcd:
        if (EtcdProcess::shared() == nullptr) GTEST_SKIP() << "this machine has no etcd";
        open_etcd();
        break;
      case Kind::kSimEtcd:
        open_simulated_etcd();
        break;
    }
    ASSERT_TRUE(store_);
    client_.emplace(*store_, loop_);
  }

  /// Under a prefix of the test's own; its revisions begin at 0, as those of an empty store.
  void open_etcd() {
    auto transport = GrpcTransport::create({.servers = {EtcdProcess::shared()->url()}}, loop_.poster());
    ASSERT_TRUE(transport) << transport.error().text();
    open_over(*std::move(transport));
  }

  /// Three members that lag and send in pieces.
  void open_simulated_etcd() {
    sim_etcd_.emplace(time_, Rng(1),
                      sim::SimEtcdOptions{.replicas = 3,
                                          .faults = {.pace = {.late_ppm = 10'000, .late_max = milliseconds(300)},
                                                     .fragment_ppm = 500'000,
                                                     .repeat_ppm = 200'000,
                                                     .early_progress_ppm = 100'000}});
    turn_when_idle(loop_, time_, *sim_etcd_);
    open_over(sim_etcd_->connect("test"));
  }

  void open_over(std::unique_ptr<EtcdTransport> transport) {
    EtcdOptions options;
    options.limits = small_limits();
    options.prefix = fmt::format("/{}/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    store_ = open_alone(std::move(transport), std::move(options), loop_);
  }

  /// Writes that are under way at once are done in any order.
  bool is_concurrent() const { return GetParam() == Kind::kEtcd || GetParam() == Kind::kSimEtcd; }

  Revision put(const std::string& key, const std::string& text) {
    const Result<WriteResult> result = client_->put(key, text);
    EXPECT_TRUE(result && result->committed);
    return result ? result->revision : Revision();
  }

  Revision remove(const std::string& key) {
    const Result<WriteResult> result = client_->remove(key);
    EXPECT_TRUE(result && result->committed);
    return result ? result->revision : Revision();
  }

  std::vector<std::string> list(Range range) {
    const Result<RangeResult> result = client_->range(std::move(range));
    EXPECT_TRUE(result) << result.error().text();
    return result ? describe(result->entries) : std::vector<std::string>();
  }

  ErrorCode range_error(Range range) {
    const Result<RangeResult> result = client_->range(std::move(range));
    EXPECT_FALSE(result);
    return result ? ErrorCode::kInternalError : result.error().code;
  }

  void run_until_seen(const RecordingWatcher& watcher, std::size_t count) {
    EXPECT_TRUE(loop_.run_until([&] { return watcher.seen.size() >= count; }));
  }

  TestLoop loop_;
  ScratchDirectory directory_;
  sim::VirtualTime time_;
  std::optional<sim::SimEtcd> sim_etcd_;
  std::unique_ptr<Store> store_;
  std::optional<StoreClient> client_;
};

}  // namespace spillway::store::contract
