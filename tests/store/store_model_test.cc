// Random work from a seed, on a store and on the model: every answer and every change must be the same.
#include "base/rng.h"
#include "sim/etcd/sim_etcd.h"
#include "store/etcd/grpc/grpc_transport.h"
#include "store/etcd_process.h"
#include "store/lone_etcd_store.h"
#include "store/memory_store.h"
#include "store/model_store.h"
#include "store/scratch_directory.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store_client.h"
#include "store/test_loop.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <list>

namespace spillway::store {
namespace {

/// SPILLWAY_SEEDS sets another number than the usual one.
std::uint64_t seeds_or(std::uint64_t usual) {
  const char* asked = std::getenv("SPILLWAY_SEEDS");
  return asked == nullptr ? usual : std::strtoull(asked, nullptr, 10);
}

struct Followed {
  std::string prefix;
  Revision after;
  WatchId id = 0;
  RecordingWatcher watcher;
  bool too_old = false;
  /// The revision up to which the changes were compared with the model.
  Revision checked;
  std::vector<std::string> want;
};

enum class Kind { kMemory, kSqlite, kEtcd, kSimEtcd };

class RandomWork {
 public:
  RandomWork(std::uint64_t seed, Kind kind) : rng_(seed), seed_(seed), kind_(kind) {}

  void run(int steps) {
    reopen();
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(fmt::format("step {}", step));
      const std::uint64_t dice = rng_.below(100);
      if (dice < 50) {
        write_burst();
      } else if (dice < 75) {
        read();
      } else if (dice < 85) {
        follow();
      } else if (dice < 90) {
        unfollow();
      } else if (dice < 96) {
        compact();
      } else if (kind_ == Kind::kSqlite) {
        reopen();
      }
      check_watchers();
    }
  }

 private:
  void reopen() {
    followed_.clear();
    client_.reset();
    store_.reset();
    if (kind_ == Kind::kEtcd) {
      open_etcd();
    } else if (kind_ == Kind::kSimEtcd) {
      open_simulated_etcd();
    } else if (kind_ == Kind::kSqlite) {
      SqliteOptions options;
      options.group_writes_max = 1 + rng_.below(20);
      options.trim_rows_max = rng_.below(3) == 0 ? 0 : 5;  // leaves compacted rows in the log
      auto opened = SqliteStore::open(directory_.file("test.db"), loop_.poster(), options);
      ASSERT_TRUE(opened) << opened.error().text();
      store_ = *std::move(opened);
    } else {
      store_ = std::make_unique<MemoryStore>(loop_.poster());
    }
    client_.emplace(*store_, loop_);
    EXPECT_EQ(store_->revision(), model_.revision());
    EXPECT_EQ(store_->compacted(), model_.compacted());
  }

  void open_etcd() {
    auto transport = GrpcTransport::create({.servers = {EtcdProcess::shared()->url()}}, loop_.poster());
    ASSERT_TRUE(transport) << transport.error().text();
    open_over(*std::move(transport));
  }

  /// Members that lag, with watches that are fragmented and repeat events.
  void open_simulated_etcd() {
    sim_etcd_.emplace(time_, rng_.fork("etcd"),
                      sim::SimEtcdOptions{.replicas = 3,
                                          .faults = {.pace = {.late_ppm = 20'000, .late_max = milliseconds(500)},
                                                     .fragment_ppm = 500'000,
                                                     .repeat_ppm = 200'000,
                                                     .early_progress_ppm = 100'000,
                                                     .future_shows_past = true}});
    turn_when_idle(loop_, time_, *sim_etcd_);
    open_over(sim_etcd_->connect("test"));
  }

  void open_over(std::unique_ptr<EtcdTransport> transport) {
    EtcdOptions options;
    options.prefix = fmt::format("/model-{}/", seed_);
    options.seed = seed_;
    store_ = open_alone(std::move(transport), std::move(options), loop_);
    ASSERT_TRUE(store_);
  }

  std::string any_key() {
    return std::string(1, static_cast<char>('a' + rng_.below(3))) + std::to_string(rng_.below(4));
  }

  std::string any_prefix() {
    const std::string key = any_key();
    return key.substr(0, rng_.below(key.size() + 1));
  }

  Revision any_revision() { return Revision(rng_.below(model_.revision().number() + 3)); }

  std::optional<Revision> any_condition(const std::string& key) {
    const std::uint64_t dice = rng_.below(10);
    if (dice < 4) return std::nullopt;
    if (dice < 6) return Revision();
    if (dice < 7) return any_revision();
    const Result<RangeResult> present = model_.range({.prefix = key, .limit = 1});
    const bool exists = !present->entries.empty() && present->entries.front().key == key;
    return exists ? present->entries.front().mod_revision : Revision();
  }

  void write_burst() {
    const std::uint64_t drawn = 1 + rng_.below(30);
    const std::uint64_t count =
        kind_ == Kind::kEtcd || kind_ == Kind::kSimEtcd ? 1 : drawn;  // concurrent writes are carried out in any order
    std::vector<WriteResult> got;
    std::vector<WriteResult> want;
    for (std::uint64_t i = 0; i < count; ++i) {
      Write write;
      write.key = any_key();
      if (rng_.below(4) != 0) write.value = value_of(std::string(rng_.below(60), 'x') + std::to_string(++values_));
      write.expected = any_condition(write.key);
      want.push_back(model_.write(write));
      store_->write(std::move(write), [&](Result<WriteResult> result) {
        ASSERT_TRUE(result) << result.error().text();
        got.push_back(std::move(*result));
      });
    }
    ASSERT_TRUE(loop_.run_until([&] { return got.size() == count; }));
    for (std::uint64_t i = 0; i < count; ++i) {
      EXPECT_EQ(got[i].committed, want[i].committed);
      EXPECT_EQ(got[i].current.has_value(), want[i].current.has_value());
      EXPECT_EQ(got[i].revision, want[i].revision);
      if (got[i].current && want[i].current) {
        EXPECT_EQ(describe(*got[i].current), describe(*want[i].current));
      }
    }
    EXPECT_EQ(store_->revision(), model_.revision());
  }

  void read() {
    Range range;
    range.prefix = any_prefix();
    if (rng_.below(3) == 0) range.start_after = any_key();
    if (rng_.below(2) == 0) range.limit = rng_.below(5);
    if (rng_.below(4) != 0) range.at = any_revision();
    const Result<RangeResult> want = model_.range(range);
    const Result<RangeResult> got = client_->range(range);
    ASSERT_EQ(got.has_value(), want.has_value());
    if (!want) {
      EXPECT_EQ(got.error().code, want.error().code);
      return;
    }
    EXPECT_EQ(got->revision, want->revision);
    EXPECT_EQ(got->remaining, want->remaining);
    EXPECT_EQ(describe(got->entries), describe(want->entries));
  }

  void follow() {
    Followed& one = followed_.emplace_back();
    one.prefix = any_prefix();
    one.after = any_revision();
    one.checked = one.after;
    one.too_old = one.after < model_.compacted();
    one.id = store_->watch(one.prefix, one.after, one.watcher);
  }

  void unfollow() {
    if (followed_.empty()) return;
    store_->unwatch(followed_.front().id);
    followed_.pop_front();
  }

  void compact() {
    const Revision revision = any_revision();
    // Watches first reach the present: what is compacted before they do, they may or may not still get.
    check_watchers();
    const Result<Revision> got = client_->compact(revision);
    ASSERT_EQ(got.has_value(), revision <= model_.revision());
    if (!got) return;
    model_.compact(revision);
    EXPECT_EQ(*got, model_.compacted());
  }

  void check_watchers() {
    for (Followed& one : followed_) {
      if (one.too_old) {
        ASSERT_TRUE(loop_.run_until([&] { return one.watcher.end.has_value(); }));
        EXPECT_EQ(one.watcher.end->code, ErrorCode::kExpired);
        EXPECT_TRUE(one.watcher.seen.empty());
        continue;
      }
      const std::size_t before = one.want.size();
      for (const Change& change : model_.changes(one.prefix, one.checked)) one.want.push_back(describe(change));
      one.checked = std::max(one.checked, model_.revision());
      ASSERT_TRUE(loop_.run_until([&] { return one.watcher.end || one.watcher.seen.size() >= one.want.size(); }))
          << "watch of \"" << one.prefix << "\" after " << one.after.number() << " saw " << one.watcher.seen.size()
          << " of " << one.want.size();
      ASSERT_FALSE(one.watcher.end) << one.watcher.end->text();
      ASSERT_EQ(one.watcher.seen.size(), one.want.size());
      for (std::size_t i = before; i < one.want.size(); ++i) ASSERT_EQ(one.watcher.seen[i], one.want[i]);
    }
  }

  Rng rng_;
  std::uint64_t seed_;
  Kind kind_;
  int values_ = 0;
  TestLoop loop_;
  ScratchDirectory directory_;
  sim::VirtualTime time_;
  std::optional<sim::SimEtcd> sim_etcd_;
  ModelStore model_;
  std::list<Followed> followed_;
  std::unique_ptr<Store> store_;
  std::optional<StoreClient> client_;
};

TEST(StoreModel, MemoryStoreIsTheModel) {
  for (std::uint64_t seed = 1; seed <= seeds_or(20); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomWork(seed, Kind::kMemory).run(200);
    if (HasFailure()) break;
  }
}

TEST(StoreModel, SqliteStoreIsTheModel) {
  for (std::uint64_t seed = 1; seed <= seeds_or(8); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomWork(seed, Kind::kSqlite).run(120);
    if (HasFailure()) break;
  }
}

TEST(StoreModel, EtcdStoreIsTheModel) {
  if (EtcdProcess::shared() == nullptr) GTEST_SKIP() << "this machine has no etcd";
  for (std::uint64_t seed = 1; seed <= seeds_or(4); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomWork(seed, Kind::kEtcd).run(120);
    if (HasFailure()) break;
  }
}

TEST(StoreModel, EtcdStoreOverTheSimulatedEtcdIsTheModel) {
  for (std::uint64_t seed = 1; seed <= seeds_or(12); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomWork(seed, Kind::kSimEtcd).run(120);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace spillway::store
