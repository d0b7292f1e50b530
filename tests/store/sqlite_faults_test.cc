// A disk that fails and a power loss: what was acknowledged is there afterwards, what was refused is not shown.
#include "base/rng.h"
#include "store/faulty_disk.h"
#include "store/scratch_directory.h"
#include "store/sqlite/database.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/upkeep/backup.h"
#include "store/sqlite/upkeep/defrag.h"
#include "store/sqlite/upkeep/restore.h"
#include "store/store_client.h"
#include "store/test_loop.h"
#include "support/patience.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

namespace spillway::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Fault = FaultyDisk::Fault;

class SqliteFaults : public ::testing::Test {
 protected:
  SqliteFaults() { open(); }

  void open() {
    client_.reset();
    store_.reset();
    store_ = open_at(path_);
    client_.emplace(*store_, loop_);
  }

  /// Moves the log into the file often.
  std::unique_ptr<SqliteStore> open_at(const std::string& path) {
    SqliteOptions options;
    options.checkpoint_pages = 1;
    auto opened = SqliteStore::open(path, loop_.poster(), std::move(options));
    EXPECT_TRUE(opened) << opened.error().text();
    return opened ? *std::move(opened) : nullptr;
  }

  void put(const std::string& key, const std::string& text) {
    const Result<WriteResult> result = client_->put(key, text);
    ASSERT_TRUE(result) << result.error().text();
  }

  void expect_refused(const std::string& key, const std::string& part) {
    const Result<WriteResult> result = client_->put(key, "refused");
    ASSERT_FALSE(result) << key;
    EXPECT_EQ(result.error().code, ErrorCode::kServiceUnavailable);
    EXPECT_THAT(result.error().message, HasSubstr(part));
  }

  static std::vector<std::string> list(StoreClient& client) {
    const Result<RangeResult> result = client.range({});
    EXPECT_TRUE(result) << result.error().text();
    return result ? describe(result->entries) : std::vector<std::string>();
  }

  TestLoop loop_;
  ScratchDirectory directory_;
  FaultyDisk disk_;
  std::string path_ = directory_.file("data/test.db");
  telemetry::Registry metrics_;
  std::unique_ptr<SqliteStore> store_;
  std::optional<StoreClient> client_;
};

TEST_F(SqliteFaults, ConnectionsThatWriteSyncEveryCommit) {
  auto connection = sqlite::open_for_writing(directory_.file("other.db"), {});
  ASSERT_TRUE(connection) << connection.error().text();
  EXPECT_EQ(*connection->number("PRAGMA synchronous"), 2) << "2 is FULL";
}

/// A write at a time and bursts, and the power fails after each: revision n is the n-th write, so the state that is
/// found shows which writes it holds.
TEST_F(SqliteFaults, APowerLossTakesNothingThatWasAcknowledged) {
  Rng rng(17);
  std::map<std::uint64_t, std::vector<std::string>> state_at{{0, {}}};
  std::map<std::string, std::string> model;
  std::uint64_t acknowledged = 0;
  for (int round = 0; round < 30; ++round) {
    const std::uint64_t burst = 1 + rng.below(6);
    for (std::uint64_t i = 0; i < burst; ++i) {
      const std::string key = fmt::format("k{}", rng.below(5));
      const bool removes = model.contains(key) && rng.below(4) == 0;
      const std::string text(1 + rng.below(6'000), static_cast<char>('a' + rng.below(26)));
      if (removes) {
        model.erase(key);
      } else {
        model[key] = text;
      }
      std::vector<std::string> state;
      for (const auto& [name, value] : model) state.push_back(name + "=" + value);
      state_at[state_at.size()] = std::move(state);
      store_->write(Write{key, removes ? nullptr : value_of(text), std::nullopt}, [&](Result<WriteResult> result) {
        ASSERT_TRUE(result) << result.error().text();
        acknowledged = std::max(acknowledged, result->revision.number());
      });
    }
    const std::uint64_t wanted = state_at.size() - 1 - rng.below(burst);  // some of the burst may still be on their way
    ASSERT_TRUE(loop_.run_until([&] { return acknowledged >= wanted; }));

    const ScratchDirectory after;
    disk_.lose_power(directory_.file("data"), after.path(), rng);
    const std::unique_ptr<SqliteStore> found = open_at(after.file("test.db"));
    ASSERT_TRUE(found) << "round " << round;
    EXPECT_GE(found->revision().number(), wanted) << "an acknowledged write is gone, round " << round;
    StoreClient client(*found, loop_);
    const Result<RangeResult> result = client.range({});
    ASSERT_TRUE(result);
    std::vector<std::string> left;
    for (const Entry& entry : result->entries) left.push_back(entry.key + "=" + *entry.value);
    EXPECT_EQ(left, state_at.at(result->revision.number())) << "not a state there was, round " << round;
  }
}

TEST_F(SqliteFaults, ASyncThatFailsEndsTheWritesUntilRestart) {
  put("a", "1");
  RecordingWatcher watcher;
  store_->watch("", Revision(1), watcher);
  disk_.fail_syncs(Fault::kIo);
  expect_refused("b", "");
  disk_.fail_syncs(Fault::kNone);
  expect_refused("c", "read-only until restart");
  const Result<WriteResult> lease = client_->put("/registry/leases/n1", "x");
  EXPECT_FALSE(lease) << "what the disk holds is unknown: not even heartbeats";
  EXPECT_FALSE(client_->remove("a"));
  ASSERT_TRUE(store_->refusing());
  EXPECT_THAT(*store_->refusing(), HasSubstr("read-only until restart"));
  EXPECT_THAT(list(*client_), ElementsAre("a=1 c1 m1 v1")) << "reading goes on";
  EXPECT_TRUE(watcher.seen.empty()) << "watchers are told nothing that was refused";
  EXPECT_EQ(store_->revision().number(), 1U);
  open();
  put("d", "2");
  EXPECT_EQ(list(*client_).front(), "a=1 c1 m1 v1");
}

TEST_F(SqliteFaults, NoSpaceForASyncIsAFailureOfTheDiskToo) {
  put("a", "1");
  disk_.fail_syncs(Fault::kNoSpace);
  expect_refused("b", "");
  disk_.fail_syncs(Fault::kNone);
  expect_refused("c", "read-only until restart");
}

TEST_F(SqliteFaults, AWriteThatFailsEndsTheWritesUntilRestart) {
  put("a", "1");
  disk_.fail_writes(Fault::kIo);
  expect_refused("b", "");
  disk_.fail_writes(Fault::kNone);
  expect_refused("c", "read-only until restart");
  EXPECT_THAT(list(*client_), ElementsAre("a=1 c1 m1 v1"));
  open();
  put("d", "2");
  EXPECT_THAT(list(*client_), ElementsAre("a=1 c1 m1 v1", "d=2 c2 m2 v1"));
}

/// The log is moved into the file beside the writer: a failure of that is reported, delays no write, loses nothing, and
/// passes.
TEST_F(SqliteFaults, ALogThatCannotBeMovedHoldsUpNoWrite) {
  SqliteOptions options;
  options.checkpoint_pages = 64;
  options.log_pages_wanted = 128;
  options.log_pages_max = 256;
  options.metrics = &metrics_;
  client_.reset();
  store_.reset();
  auto opened = SqliteStore::open(path_, loop_.poster(), options);
  ASSERT_TRUE(opened) << opened.error().text();
  store_ = *std::move(opened);
  client_.emplace(*store_, loop_);
  const std::string text(1'000, 'x');
  const auto moves = [&](std::string_view by) {
    const std::string page = metrics_.text();
    const std::string line = fmt::format("spillway_store_checkpoints_total{{by=\"{}\"}} ", by);
    const std::size_t at = page.find(line);
    return at == std::string::npos ? 0.0 : std::strtod(page.c_str() + at + line.size(), nullptr);
  };
  const auto log_bytes = [this] { return std::filesystem::file_size(path_ + "-wal"); };

  disk_.fail_database_writes(Fault::kIo);
  int written = 0;
  while ((moves("nobody") < 3 || written < 300) && written < 3'000) put(fmt::format("k{}", ++written % 40), text);
  EXPECT_GE(moves("nobody"), 3) << "a move that fails is counted";
  EXPECT_LT(moves("nobody"), written / 4) << "it is not tried with every write";
  Rng rng(9);
  const ScratchDirectory after;
  disk_.lose_power(directory_.file("data"), after.path(), rng);

  disk_.fail_database_writes(Fault::kNone);
  const std::uintmax_t longest = log_bytes();
  // The writer moves it where the thread gets no processor.
  for (int i = 0; i < 1'000 || (moves("thread") == 0 && i < 50'000); ++i) put(fmt::format("k{}", i % 40), text);
  EXPECT_LT(log_bytes(), longest + std::uintmax_t{1} * 1024 * 1024) << "it begins anew";
  EXPECT_GT(moves("thread"), 0);
  EXPECT_GT(moves("writer"), 0);

  const std::unique_ptr<SqliteStore> found = open_at(after.file("test.db"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->revision().number(), static_cast<std::uint64_t>(written)) << "all of it was in the log";
}

class NoSpaceOnDisk : public SqliteFaults, public ::testing::WithParamInterface<Fault> {};

INSTANTIATE_TEST_SUITE_P(Faults, NoSpaceOnDisk, ::testing::Values(Fault::kNoSpace, Fault::kShortWrite));

TEST_P(NoSpaceOnDisk, PassesWhenThereIsSpaceAgain) {
  put("a", "1");
  disk_.fail_writes(GetParam());
  expect_refused("b", "");
  expect_refused("c", "the disk is full");
  EXPECT_TRUE(store_->refusing());
  EXPECT_THAT(list(*client_), ElementsAre("a=1 c1 m1 v1"));
  disk_.fail_writes(Fault::kNone);
  put("d", "2");
  EXPECT_FALSE(store_->refusing());
  const std::vector<std::string> wanted{"a=1 c1 m1 v1", "d=2 c2 m2 v1"};
  EXPECT_EQ(list(*client_), wanted) << "what was refused took no revision";
  Rng rng(5);
  const ScratchDirectory after;
  disk_.lose_power(directory_.file("data"), after.path(), rng);
  const std::unique_ptr<SqliteStore> found = open_at(after.file("test.db"));
  ASSERT_TRUE(found);
  StoreClient client(*found, loop_);
  EXPECT_EQ(list(client), wanted);
}

/// The log has space of its own, so that writes succeed while the file cannot grow any more. Before it would have to
/// grow by more than the reserve gives, the disk counts as full: else what is in the log could not be moved any more.
TEST_F(SqliteFaults, ALogThatDoesNotFitTheFileCountsAsAFullDisk) {
  put("a", "1");
  const auto file_bytes = [this] { return static_cast<std::int64_t>(std::filesystem::file_size(path_)); };
  const auto reserve = static_cast<std::int64_t>(std::filesystem::file_size(path_ + ".reserve"));
  const std::int64_t full = file_bytes();
  disk_.limit_database(full);
  constexpr std::int64_t kBytes = 200'000;
  std::int64_t written = 0;
  const auto name = [](std::int64_t i) { return fmt::format("k{}", i); };
  while (client_->put(name(written), std::string(kBytes, 'x'))) {
    ASSERT_LT(++written * kBytes, reserve) << "more than the file can take";
  }
  ASSERT_GT(written, 0);
  EXPECT_THAT(store_->refusing().value_or(""), HasSubstr("the disk is full"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".reserve")) << "it is given up for the deletions";
  disk_.limit_database(full + reserve);
  for (std::int64_t i = 0; i < written; ++i) {
    const Result<WriteResult> removed = client_->remove(name(i));
    ASSERT_TRUE(removed) << i << ": " << removed.error().text();
  }
  put("b", "2");
  EXPECT_FALSE(store_->refusing());
}

/// A disk that was nearly full at the start has a small reserve; a log that has just been moved is measured as soon as
/// it has grown again.
TEST_F(SqliteFaults, ASmallReserveIsEnoughForWhatTheLogHolds) {
  constexpr std::int64_t kReserve = 1 << 20;
  constexpr std::int64_t kBytes = 100'000;
  client_.reset();
  store_.reset();
  std::filesystem::resize_file(path_ + ".reserve", kReserve);
  auto opened = SqliteStore::open(path_, loop_.poster(), SqliteOptions{});
  ASSERT_TRUE(opened) << opened.error().text();
  store_ = *std::move(opened);
  client_.emplace(*store_, loop_);
  const auto file_bytes = [this] { return static_cast<std::int64_t>(std::filesystem::file_size(path_)); };
  const std::int64_t before = file_bytes();
  put("before", std::string(6 * kBytes, 'x'));
  // The log holds half of the reserve: it is moved, after the answer.
  const auto patience = std::chrono::steady_clock::now() + support::kPatience;
  while (file_bytes() < before + 6 * kBytes && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  ASSERT_GE(file_bytes(), before + 6 * kBytes);
  const std::int64_t full = file_bytes();
  disk_.limit_database(full);
  std::int64_t written = 0;
  std::int64_t taken = 0;
  for (std::int64_t bytes = 6 * kBytes; client_->put(fmt::format("k{}", written), std::string(bytes, 'x'));
       bytes = kBytes) {
    ++written;
    taken += bytes;
    ASSERT_LT(taken, 2 * kReserve) << "more than the file can take";
  }
  ASSERT_GT(written, 0);
  EXPECT_LT(taken, kReserve);
  disk_.limit_database(full + 2 * kReserve);
  for (std::int64_t i = 0; i < written; ++i) {
    const Result<WriteResult> removed = client_->remove(fmt::format("k{}", i));
    ASSERT_TRUE(removed) << i << ": " << removed.error().text();
  }
}

TEST_F(SqliteFaults, UpkeepThatFindsNoSpaceLeavesEverythingAsItWas) {
  const auto should_continue = [](double) { return true; };
  const auto files = [this] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path())) {
      const std::string name = entry.path().string();
      // Readers of a store at rest leave an empty journal.
      if (!name.ends_with("-wal") && !name.ends_with("-shm")) names.push_back(name);
    }
    std::ranges::sort(names);
    return names;
  };
  put("a", std::string(9'000, 'x'));
  const std::string copy = directory_.file("copy.db");
  ASSERT_TRUE(sqlite::write_backup(path_, copy, sqlite::Existing::kKept, should_continue));
  put("b", "after the backup");
  client_.reset();
  store_.reset();
  const auto before = files();
  for (const Fault fault : {Fault::kNoSpace, Fault::kShortWrite, Fault::kIo}) {
    disk_.fail_writes(fault);
    const auto backup = sqlite::write_backup(path_, copy + "2", sqlite::Existing::kKept, should_continue);
    const auto restore = sqlite::restore_database(copy, path_, path_ + ".kept", should_continue);
    const auto defrag = sqlite::defragment(path_, [](const sqlite::DefragPlan&) {}, should_continue);
    disk_.fail_writes(Fault::kNone);
    ASSERT_FALSE(backup);
    ASSERT_FALSE(restore);
    ASSERT_FALSE(defrag);
    const ErrorCode expected = fault == Fault::kIo ? ErrorCode::kInternalError : ErrorCode::kServiceUnavailable;
    EXPECT_EQ(backup.error().code, expected) << backup.error().text();
    EXPECT_EQ(restore.error().code, expected) << restore.error().text();
    EXPECT_EQ(defrag.error().code, expected) << defrag.error().text();
    EXPECT_EQ(files(), before);
  }
  open();
  EXPECT_THAT(list(*client_), ElementsAre(HasSubstr("a=xxx"), "b=after the backup c2 m2 v1"));
}

}  // namespace
}  // namespace spillway::store
