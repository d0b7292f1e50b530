// Promises that only the store in SQLite makes: the file, its lock, its limits, its growth.
#include "store/sqlite/sqlite_store.h"

#include "base/file_lock.h"
#include "base/unique_fd.h"
#include "store/scratch_directory.h"
#include "store/sqlite/database.h"
#include "store/sqlite/history.h"
#include "store/store_client.h"
#include "store/test_loop.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace spillway::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class SqliteStoreTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<SqliteStore>> try_open(SqliteOptions options = {}) {
    return SqliteStore::open(path_, loop_.poster(), std::move(options));
  }

  void open(SqliteOptions options = {}) {
    client_.reset();
    store_.reset();
    auto opened = try_open(std::move(options));
    ASSERT_TRUE(opened) << opened.error().text();
    store_ = *std::move(opened);
    client_.emplace(*store_, loop_);
  }

  void close() {
    client_.reset();
    store_.reset();
  }

  void put(const std::string& key, const std::string& text) {
    const Result<WriteResult> result = client_->put(key, text);
    ASSERT_TRUE(result) << result.error().text();
    ASSERT_TRUE(result->committed);
  }

  /// Many writes at once; how many were stored.
  int put_all(int count, const std::function<std::string(int)>& key, std::size_t bytes) {
    int done = 0;
    int stored = 0;
    for (int i = 0; i < count; ++i) {
      store_->write(Write{key(i), value_of(std::string(bytes, 'x')), std::nullopt}, [&](Result<WriteResult> result) {
        ++done;
        if (result) ++stored;
      });
    }
    EXPECT_TRUE(loop_.run_until([&] { return done == count; }));
    return stored;
  }

  std::vector<std::string> list() {
    const Result<RangeResult> result = client_->range({});
    EXPECT_TRUE(result) << result.error().text();
    return result ? describe(result->entries) : std::vector<std::string>();
  }

  /// Runs statements on the closed file, as another program would.
  void tamper(const std::string& sql) {
    auto connection = sqlite::Connection::open(path_, sqlite::Access::kReadWrite);
    ASSERT_TRUE(connection);
    const Outcome outcome = connection->exec(sql.c_str());
    ASSERT_TRUE(outcome) << outcome.error().text();
  }

  std::int64_t number(const std::string& sql) {
    auto connection = sqlite::Connection::open(path_, sqlite::Access::kReadOnly);
    EXPECT_TRUE(connection);
    const Result<std::int64_t> result = connection->number(sql);
    EXPECT_TRUE(result) << result.error().text();
    return result ? *result : -1;
  }

  void expect_refused(ErrorCode code, const std::string& part) {
    const std::string before = read_file(path_);
    const auto opened = try_open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, code);
    EXPECT_THAT(opened.error().text(), HasSubstr(part));
    EXPECT_EQ(opened.error().text().find('\n'), std::string::npos) << opened.error().text();
    EXPECT_TRUE(read_file(path_) == before) << "a file that is refused is not touched";
  }

  TestLoop loop_;
  ScratchDirectory directory_;
  std::string path_ = directory_.file("data/test.db");
  std::unique_ptr<SqliteStore> store_;
  std::optional<StoreClient> client_;
};

TEST_F(SqliteStoreTest, FindsEverythingAgain) {
  open();
  put("a", "1");
  put("b", "1");
  put("a", "2");
  ASSERT_TRUE(client_->remove("b"));
  ASSERT_TRUE(client_->compact(Revision(1)));
  open();
  EXPECT_EQ(store_->revision(), Revision(4));
  EXPECT_EQ(store_->compacted(), Revision(1));
  EXPECT_THAT(list(), ElementsAre("a=2 c1 m3 v2"));
  RecordingWatcher watcher;
  store_->watch("", Revision(1), watcher);
  ASSERT_TRUE(loop_.run_until([&] { return watcher.seen.size() == 3; }));
  EXPECT_THAT(watcher.seen, ElementsAre("2 b: (none) -> 1", "3 a: 1 -> 2", "4 b: 1 -> (none)"));
  put("c", "1");
  EXPECT_EQ(watcher.seen.back(), "5 c: (none) -> 1");
}

TEST_F(SqliteStoreTest, MakesItsDirectoryAndAFileForItsOwnerAlone) {
  open();
  const auto rights = std::filesystem::status(path_).permissions();
  EXPECT_EQ(rights, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(SqliteStoreTest, ReplaysALongPastFromTheFile) {
  open();
  constexpr int kWrites = 6'000;
  EXPECT_EQ(put_all(kWrites, [](int i) { return fmt::format("k{}", i % 50); }, 700), kWrites);
  open();
  RecordingWatcher watcher;
  RecordingWatcher late;
  store_->watch("", Revision(), watcher);
  // Written while earlier changes are being delivered.
  int done = 0;
  for (int i = 0; i < 500; ++i) {
    store_->write(Write{"live", value_of(std::to_string(i)), std::nullopt}, [&](Result<WriteResult> result) {
      ASSERT_TRUE(result);
      if (++done == 100) store_->watch("", Revision(kWrites - 10), late);
    });
  }
  ASSERT_TRUE(loop_.run_until([&] { return watcher.seen.size() >= kWrites + 500 && late.seen.size() >= 510; }));
  EXPECT_THAT(watcher.seen, SizeIs(kWrites + 500));
  EXPECT_THAT(late.seen, SizeIs(510));
  EXPECT_EQ(late.seen.back(), watcher.seen.back());
  EXPECT_FALSE(watcher.end);
}

TEST_F(SqliteStoreTest, ReplaysUpToARevisionThatIsNotTheLast) {
  open();
  put("a", "1");
  put("b", "1");
  put("a", "2");
  put("a", "3");
  ASSERT_TRUE(client_->remove("b"));
  close();
  auto connection = sqlite::Connection::open(path_, sqlite::Access::kReadOnly);
  ASSERT_TRUE(connection);
  auto history = sqlite::History::open(*connection);
  ASSERT_TRUE(history);
  std::vector<std::string> seen;
  ASSERT_TRUE(history->replay("", Revision(1), Revision(3), [&](std::vector<Change> changes) {
    for (const Change& change : changes) seen.push_back(describe(change));
  }));
  EXPECT_THAT(seen, ElementsAre("2 b: (none) -> 1", "3 a: 1 -> 2"));
}

TEST_F(SqliteStoreTest, ShowsNothingThatWatchersHaveNotSeen) {
  // The answer to a read may overtake the delivery of the changes that it shows.
  std::mutex mutex;
  std::condition_variable posted;
  std::vector<TestLoop::Task> tasks;
  const auto post = [&](TestLoop::Task task) {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
    posted.notify_one();
  };
  const auto wait_for = [&](std::size_t count) {
    std::unique_lock lock(mutex);
    posted.wait(lock, [&] { return tasks.size() >= count; });
  };
  auto store = SqliteStore::open(path_, post);
  ASSERT_TRUE(store);
  (*store)->write(Write{"a", value_of("1"), std::nullopt}, [](Result<WriteResult>) {});
  wait_for(1);
  std::optional<RangeResult> shown;
  (*store)->range({}, [&](Result<RangeResult> result) { shown = *std::move(result); });
  wait_for(2);
  tasks[1]();
  EXPECT_FALSE(shown);
  EXPECT_EQ((*store)->revision(), Revision());
  tasks[0]();
  ASSERT_TRUE(shown);
  EXPECT_THAT(describe(shown->entries), ElementsAre("a=1 c1 m1 v1"));
  EXPECT_EQ((*store)->revision(), Revision(1));
}

TEST_F(SqliteStoreTest, HasOneHolder) {
  open();
  put("a", "1");
  const auto second = try_open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(second.error().text(),
            fmt::format("data directory {} is in use by process {}", directory_.file("data"), ::getpid()));
  put("a", "2");
  close();
  open();
  EXPECT_THAT(list(), ElementsAre("a=2 c1 m2 v2"));
}

/// The number of descriptors of this process for `path`.
int times_open(const std::string& path) {
  int found = 0;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    found += std::filesystem::read_symlink(entry.path(), gone) == path ? 1 : 0;
  return found;
}

/// The lock of a killed process is held by a child until its exec().
TEST_F(SqliteStoreTest, WaitsForTheChildrenOfAHolderThatDied) {
  open();
  close();
  const std::string file = path_ + ".lock";
  ASSERT_TRUE(std::filesystem::exists(file)) << file;
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  write_file(file, std::to_string(dead) + "\n");
  for (int tries = 0; tries < 10; ++tries) {
    UniqueFd child(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(lock_exclusively(child.get()));
    const auto began = std::chrono::steady_clock::now();
    auto released = began;
    std::atomic<bool> over = false;
    std::thread lets_go([&] {
      while (times_open(file) < 2 && !over) std::this_thread::yield();
      released = std::chrono::steady_clock::now();
      child.reset();
    });
    const auto opened = try_open();
    over = true;
    lets_go.join();
    // The store waits some seconds for the lock; a thread that gets no processor for so long releases it too late.
    if (!opened && released - began > std::chrono::seconds(2)) continue;
    EXPECT_TRUE(opened) << opened.error().text();
    return;
  }
  FAIL() << "the lock was always released too late";
}

TEST_F(SqliteStoreTest, StopFinishesWhatWaitsAndRefusesTheRest) {
  open();
  RecordingWatcher watcher;
  store_->watch("", Revision(), watcher);
  int stored = 0;
  for (int i = 0; i < 100; ++i) {
    store_->write(Write{fmt::format("k{}", i), value_of("1"), std::nullopt},
                  [&](Result<WriteResult> result) { stored += result ? 1 : 0; });
  }
  store_->stop();
  std::optional<Error> refused;
  store_->write(Write{"late", value_of("1"), std::nullopt},
                [&](Result<WriteResult> result) { refused = result.error(); });
  EXPECT_FALSE(client_->range({}));
  EXPECT_FALSE(client_->compact(Revision()));
  loop_.run_posted();
  EXPECT_EQ(stored, 100);
  EXPECT_THAT(watcher.seen, SizeIs(100));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kServiceUnavailable);
  ASSERT_TRUE(watcher.end);
  EXPECT_EQ(watcher.end->code, ErrorCode::kServiceUnavailable);
  store_->stop();
  EXPECT_FALSE(std::filesystem::exists(path_ + "-wal")) << "everything is in the main file";
  open();
  EXPECT_THAT(list(), SizeIs(100));
}

TEST_F(SqliteStoreTest, RefusesAFileThatIsNoDatabase) {
  std::filesystem::create_directories(directory_.file("data"));
  write_file(path_, "kind: Pod\nmetadata: {name: not-a-database, namespace: but-long-enough-to-be-one}\n");
  expect_refused(ErrorCode::kInvalid, path_ + ": not a Spillway database");
}

TEST_F(SqliteStoreTest, RefusesTheDatabaseOfAnotherProgram) {
  std::filesystem::create_directories(directory_.file("data"));
  tamper("CREATE TABLE kine(id INTEGER PRIMARY KEY); INSERT INTO kine VALUES(1)");
  expect_refused(ErrorCode::kInvalid, "the database of another program");
}

TEST_F(SqliteStoreTest, RefusesANewerSchema) {
  open();
  put("a", "1");
  close();
  tamper("PRAGMA user_version=3");
  expect_refused(ErrorCode::kInvalid, "written by a newer version of Spillway (schema 3, this one knows 2)");
}

TEST_F(SqliteStoreTest, RefusesADamagedFile) {
  open();
  EXPECT_EQ(put_all(500, [](int i) { return fmt::format("k{}", i); }, 800), 500);
  close();
  std::string bytes = read_file(path_);
  ASSERT_GT(bytes.size(), 100'000U);
  for (std::size_t page = 3; page < 60; ++page) bytes.replace(page * 4096, 64, std::string(64, '\x7e'));
  write_file(path_, bytes);
  expect_refused(ErrorCode::kInvalid, "the database is damaged");
}

TEST_F(SqliteStoreTest, RefusesAFileThatWasCut) {
  open();
  EXPECT_EQ(put_all(500, [](int i) { return fmt::format("k{}", i); }, 800), 500);
  close();
  write_file(path_, read_file(path_).substr(0, 150'000));
  expect_refused(ErrorCode::kInvalid, "the database is damaged");
}

TEST_F(SqliteStoreTest, RefusesARevisionThatWentBack) {
  open();
  put("a", "1");
  put("a", "2");
  close();
  tamper("UPDATE state SET revision = 1");
  expect_refused(ErrorCode::kInvalid, "its history is ahead of its revision");
}

TEST_F(SqliteStoreTest, SaysWhyTheDirectoryCannotBeMade) {
  write_file(directory_.file("data"), "a file");
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().text(), HasSubstr(directory_.file("data") + ": cannot create the data directory"));
}

TEST_F(SqliteStoreTest, TakesAnEmptyFile) {
  std::filesystem::create_directories(directory_.file("data"));
  write_file(path_, "");
  open();
  put("a", "1");
  open();
  EXPECT_THAT(list(), ElementsAre("a=1 c1 m1 v1"));
}

/// A small file, heartbeats and a load that does not fit.
class FullDisk : public SqliteStoreTest {
 protected:
  void fill() {
    SqliteOptions options;
    options.metrics = &metrics_;
    options.log = telemetry::Log([this](telemetry::Level, std::string_view event, std::span<const telemetry::Field>) {
      const std::lock_guard lock(mutex_);
      events_.emplace_back(event);
    });
    options.file_bytes_max = mebibytes(2);
    open(std::move(options));
    put("/registry/leases/n1", "first");
    while (put_all(20, [&](int) { return fmt::format("/registry/pods/p{:05}", next_++); }, 4'000) == 20) {
      ASSERT_LT(next_, 1'000) << "the limit has no effect";
    }
  }

  std::vector<std::string> events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

  void TearDown() override { close(); }

  int next_ = 0;
  telemetry::Registry metrics_;

 private:
  std::mutex mutex_;
  std::vector<std::string> events_;
};

TEST_F(FullDisk, IsSaidOnce) {
  fill();
  // While it fills up, a smaller group of writes may fit behind a larger one that did not: then it is said again.
  ASSERT_FALSE(client_->put("/registry/pods/large", std::string(500'000, 'x')));
  std::vector<std::string> said = events();
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said.back(), "store does not accept writes");
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(client_->put("/registry/pods/large", std::string(500'000, 'x')));
  EXPECT_EQ(events(), said);
  EXPECT_THAT(metrics_.text(), HasSubstr("spillway_store_takes_writes 0\n"));
  EXPECT_TRUE(store_->refusing());
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(client_->remove(fmt::format("/registry/pods/p{:05}", i)));
  ASSERT_TRUE(client_->put("/registry/pods/small", "x"));
  EXPECT_FALSE(store_->refusing());
  said.emplace_back("store accepts writes again");
  EXPECT_EQ(events(), said);
  EXPECT_THAT(metrics_.text(), HasSubstr("spillway_store_takes_writes 1\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr(fmt::format("spillway_store_revision {}\n", store_->revision().number())));
}

TEST_F(FullDisk, RefusesWritesAndGoesOnReading) {
  fill();
  const Revision before = store_->revision();
  const Result<WriteResult> refused = client_->put("/registry/pods/large", std::string(500'000, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kServiceUnavailable);
  EXPECT_THAT(refused.error().text(), HasSubstr("full"));
  const Result<RangeResult> listed = client_->range({.prefix = "/registry/pods/"});
  ASSERT_TRUE(listed);
  EXPECT_GT(listed->entries.size(), 100U);
  EXPECT_EQ(store_->revision(), before);
}

TEST_F(FullDisk, HeartbeatsGoFirst) {
  fill();
  std::optional<Error> refused;
  store_->write(Write{"/registry/pods/large", value_of(std::string(500'000, 'x')), std::nullopt},
                [&](Result<WriteResult> result) {
                  ASSERT_FALSE(result);
                  refused = result.error();
                });
  const Result<WriteResult> renewed = client_->put("/registry/leases/n1", "later");
  ASSERT_TRUE(renewed) << renewed.error().text();
  EXPECT_TRUE(renewed->committed);
  ASSERT_TRUE(loop_.run_until([&] { return refused.has_value(); }));
  EXPECT_EQ(refused->code, ErrorCode::kServiceUnavailable);
}

TEST_F(FullDisk, TakesWhatLeadsToDeletionsAndNothingElse) {
  fill();
  // Deletions of many keys: they use the reserve, and free more than they take.
  for (int i = 0; i < 40; ++i) {
    const std::string key = fmt::format("/registry/pods/p{:05}", i);
    std::optional<Result<WriteResult>> marked;
    const Value deleting = value_of(std::string(4'050, 'd'));
    store_->write(Write{.key = key, .value = deleting, .expected = std::nullopt, .frees = true},
                  [&](Result<WriteResult> result) { marked = std::move(result); });
    ASSERT_TRUE(loop_.run_until([&] { return marked.has_value(); }));
    ASSERT_TRUE(*marked) << marked->error().text();
    EXPECT_FALSE(client_->put(fmt::format("/registry/pods/new{}", i), std::string(4'000, 'n')));
    const Result<WriteResult> removed = client_->remove(key);
    ASSERT_TRUE(removed) << removed.error().text();
    ASSERT_TRUE(client_->put("/registry/leases/n1", std::to_string(i)));
    if (!store_->refusing()) break;
  }
}

TEST_F(FullDisk, RecoversWithSpace) {
  fill();
  for (int i = 0; i < 150; ++i) {
    const Result<WriteResult> removed = client_->remove(fmt::format("/registry/pods/p{:05}", i));
    ASSERT_TRUE(removed) << removed.error().text();
  }
  EXPECT_EQ(put_all(10, [](int i) { return fmt::format("/registry/pods/again{}", i); }, 4'000), 10);
  const Revision before = store_->revision();
  const std::vector<std::string> listed = list();
  open();
  EXPECT_EQ(store_->revision(), before);
  EXPECT_EQ(list(), listed);
}

TEST_F(SqliteStoreTest, ChurnDoesNotGrowTheFile) {
  SqliteOptions options;
  options.history.bytes_max = mebibytes(1);
  options.checkpoint_pages = 64;
  open(std::move(options));
  // 200 leases of 800 bytes: 160 kB live, 16 MB written.
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(put_all(1'000, [](int i) { return fmt::format("/registry/leases/n{:03}", i % 200); }, 800), 1'000);
  }
  EXPECT_GT(store_->compacted(), Revision(15'000));
  EXPECT_LE(store_->compacted(), Revision(20'000 - 1'000));
  const Revision compacted = store_->compacted();
  close();
  EXPECT_LT(std::filesystem::file_size(path_), 4U * 1024 * 1024);
  EXPECT_EQ(number("SELECT count(*) FROM current"), 200);
  EXPECT_EQ(number("SELECT min(rev) > " + std::to_string(compacted.number()) + " - 3000 FROM log"), 1);
}

TEST_F(SqliteStoreTest, ALogThatIsWrittenAllTheTimeStaysShort) {
  SqliteOptions options;
  options.checkpoint_pages = 64;
  options.log_pages_wanted = 512;
  options.log_pages_max = 2'048;
  open(std::move(options));
  // 24 MB and more through the log.
  for (int round = 0; round < 6; ++round) {
    ASSERT_EQ(
        put_all(1'000, [](int i) { return fmt::format("/registry/leases/n{:03}", i * 7 % 1'000); }, 1'000), 1'000);
  }
  // A group of writes is not divided: one may exceed the bound.
  EXPECT_LT(std::filesystem::file_size(path_ + "-wal"), (2'048U + 1'024U) * 4'120U);
  const std::vector<std::string> listed = list();
  open();
  EXPECT_EQ(list(), listed);
}

TEST_F(SqliteStoreTest, OldHistoryGoesAndTheFileShrinks) {
  auto time = std::make_shared<std::atomic<std::int64_t>>(0);
  SqliteOptions options;
  options.clock = [time] { return Instant(Duration(time->load())); };
  options.history.revisions_min = 10;
  options.history.bytes_max = mebibytes(64);
  open(std::move(options));
  EXPECT_EQ(put_all(5'000, [](int i) { return fmt::format("k{}", i % 10); }, 4'000), 5'000);
  EXPECT_EQ(store_->compacted(), Revision());
  *time += Duration(minutes(1)).count();
  put("k0", "marks the time");
  *time += Duration(minutes(5)).count();
  put("k0", "makes history old");
  EXPECT_EQ(store_->compacted(), Revision(4'992));
  // The rows go, and the pages with them, in steps while no request waits.
  const std::int64_t pages_before = number("PRAGMA page_count");
  int writes = 0;
  while (number("PRAGMA page_count") > pages_before / 3 && ++writes < 2'000) put("k1", "waits for a step");
  EXPECT_LT(writes, 2'000);
  EXPECT_LT(number("SELECT count(*) FROM log"), 2'100);
}

TEST_F(SqliteStoreTest, CountsLiveAndHistoricBytesExactly) {
  open();
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(put_all(1, [&](int) { return fmt::format("k{}", i % 7); }, static_cast<std::size_t>(i)), 1);
    if (i % 5 == 0) {
      ASSERT_TRUE(client_->remove(fmt::format("k{}", (i + 3) % 7)));
    }
    if (i % 50 == 0) {
      ASSERT_TRUE(client_->compact(Revision(static_cast<std::uint64_t>(i))));
    }
  }
  close();
  EXPECT_EQ(number("SELECT live_bytes - (SELECT sum(length(CAST(key AS BLOB)) + length(value) + 40) FROM current) "
                   "FROM state"),
            0);
  EXPECT_EQ(number("SELECT history_bytes - (SELECT sum(length(CAST(key AS BLOB)) + ifnull(length(prev_value), 0) + 40) "
                   "FROM log) FROM state"),
            0);
}

}  // namespace
}  // namespace spillway::store
