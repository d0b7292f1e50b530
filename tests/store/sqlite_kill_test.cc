// A process that writes under load is killed at random moments, again and again: nothing that it acknowledged may be
// lost, revisions never go back, the file stays whole. SPILLWAY_KILLS sets a larger number of rounds. The writing
// process is this binary itself, started with the filter of the one disabled test below.
#include "base/rng.h"
#include "store/scratch_directory.h"
#include "store/sqlite/database.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store_client.h"
#include "store/test_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

namespace spillway::store {
namespace {

constexpr std::uint64_t kWriters = 48;
constexpr const char* kPathVariable = "SPILLWAY_KILL_TEST_PATH";
constexpr const char* kPipeVariable = "SPILLWAY_KILL_TEST_PIPE";
constexpr const char* kWithoutHistoryVariable = "SPILLWAY_KILL_TEST_WITHOUT_HISTORY";

/// The message of the writing process about one write, after its acknowledgement.
struct Acknowledged {
  std::uint64_t writer;
  std::uint64_t count;  // number of writes to this writer's key, from 1
  std::uint64_t revision;
};

std::string key_of(std::uint64_t writer) {
  return fmt::format("/registry/leases/ns/n{:03}", writer);
}

/// Every seventh write of a key deletes it.
bool deletes(std::uint64_t count) {
  return count % 7 == 0;
}

std::string text_for(std::uint64_t writer, std::uint64_t count) {
  return fmt::format("{} {} ", writer, count) + std::string(200 + (writer * 37 + count * 101) % 1'500, 'x');
}

std::uint64_t count_in(const std::string& text) {
  return std::strtoull(text.c_str() + text.find(' '), nullptr, 10);
}

SqliteOptions busy_options() {
  // Everything happens often: checkpoints, compaction, trimming.
  SqliteOptions options;
  options.checkpoint_pages = 40;
  options.history.bytes_max = Bytes{300'000};
  options.history.revisions_floor = 500;
  options.group_writes_max = 20;
  if (std::getenv(kWithoutHistoryVariable) != nullptr) options.without_history = {"/registry/leases/ns/n00"};
  return options;
}

/// The writing process. Each writer updates its own key and continues after each acknowledgement.
class LoadProcess {
 public:
  LoadProcess(const std::string& path, int pipe) : pipe_(pipe) {
    auto opened = SqliteStore::open(path, loop_.poster(), busy_options());
    SPILLWAY_CHECK(opened.has_value());
    store_ = *std::move(opened);
    // Counts grow from one process to the next: they are never more than this ahead of the revision.
    for (std::uint64_t writer = 0; writer < kWriters; ++writer) counts_[writer] = store_->revision().number() + 2;
  }

  void run() {
    for (std::uint64_t writer = 0; writer < kWriters; ++writer) write_next(writer);
    loop_.run_until([] { return false; });
  }

 private:
  void write_next(std::uint64_t writer) {
    const std::uint64_t count = ++counts_[writer];
    Value value = deletes(count) ? nullptr : value_of(text_for(writer, count));
    store_->write(Write{key_of(writer), std::move(value), std::nullopt}, [=, this](Result<WriteResult> result) {
      SPILLWAY_CHECK(result.has_value());
      if (result->committed) {
        const Acknowledged said{writer, count, result->revision.number()};
        SPILLWAY_CHECK(::write(pipe_, &said, sizeof said) == sizeof said);
      }
      write_next(writer);
    });
  }

  int pipe_;
  TestLoop loop_;
  std::unique_ptr<SqliteStore> store_;
  std::map<std::uint64_t, std::uint64_t> counts_;
};

TEST(SqliteKill, DISABLED_WritingProcess) {
  const char* path = std::getenv(kPathVariable);
  const char* pipe = std::getenv(kPipeVariable);
  ASSERT_NE(path, nullptr) << "started by SqliteKillTest.LosesNothingAcknowledged only";
  ASSERT_NE(pipe, nullptr);
  LoadProcess(path, static_cast<int>(std::strtol(pipe, nullptr, 10))).run();
}

class SqliteKillTest : public ::testing::Test {
 protected:
  /// Starts the process, reads `kill_after` acknowledgements, kills it, reads the rest. 0 kills it while it opens.
  void run_and_kill(std::uint64_t kill_after) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = start(ends[1]);
    ASSERT_GT(child, 0);
    ::close(ends[1]);
    std::uint64_t read = 0;
    while (read < kill_after && read_one(ends[0])) ++read;
    EXPECT_EQ(read, kill_after) << "the process ended by itself";
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    while (read_one(ends[0])) ++read;
    ::close(ends[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    acknowledgements_ += read;
  }

  void check_file() {
    TestLoop loop;
    auto opened = SqliteStore::open(path_, loop.poster(), busy_options());
    ASSERT_TRUE(opened) << opened.error().text();
    Store& store = **opened;
    EXPECT_GE(store.revision().number(), newest_) << "revisions went back";
    check_past(store, loop);
    check_present(store, loop);
    newest_ = store.revision().number();
    opened->reset();
    auto connection = sqlite::Connection::open(path_, sqlite::Access::kReadOnly);
    ASSERT_TRUE(connection);
    auto statement = connection->prepare("PRAGMA integrity_check");
    ASSERT_TRUE(statement);
    sqlite::Rows rows = statement->query();
    ASSERT_TRUE(rows.next());
    EXPECT_EQ(rows.bytes(0), "ok");
  }

  std::uint64_t acknowledgements() const { return acknowledgements_; }

  void kill_again_and_again() {
    const char* asked = std::getenv("SPILLWAY_KILLS");
    const std::uint64_t kills = asked == nullptr ? 25 : std::strtoull(asked, nullptr, 10);
    Rng rng(4711);
    for (std::uint64_t round = 0; round < kills && !HasFailure(); ++round) {
      SCOPED_TRACE(fmt::format("round {}", round));
      run_and_kill(rng.below(8) == 0 ? rng.below(3) : rng.below(3'000));
      // At times the next process opens the store that the killed one left, with its journal.
      if (rng.below(3) != 0 || round + 1 == kills) check_file();
    }
    EXPECT_GT(acknowledgements(), kills * 300);
    RecordProperty("acknowledged", std::to_string(acknowledgements()));
  }

 private:
  pid_t start(int pipe) {
    const std::string pipe_text = std::to_string(pipe);
    ::setenv(kPathVariable, path_.c_str(), 1);
    ::setenv(kPipeVariable, pipe_text.c_str(), 1);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);  // failures still show on standard error
      ::execl("/proc/self/exe", "spillway-kill-test", "--gtest_also_run_disabled_tests",
              "--gtest_filter=SqliteKill.DISABLED_WritingProcess", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    return child;
  }

  bool read_one(int pipe) {
    Acknowledged said{};
    if (::read(pipe, &said, sizeof said) != sizeof said) return false;
    EXPECT_GT(said.revision, newest_) << "a revision was given twice";
    newest_ = said.revision;
    last_[said.writer] = said;
    by_revision_[said.revision] = said;
    return true;
  }

  /// History has every acknowledged write that is not compacted, at its revision; of a key without history the
  /// deletions and the last one.
  void check_past(Store& store, TestLoop& loop) {
    struct Past final : Watcher {
      void on_changes(const std::vector<Change>& changes) override {
        for (const Change& change : changes) by_revision.emplace(change.revision.number(), change);
      }

      void on_watch_end(const Error& error) override { FAIL() << error.text(); }

      void on_reached(Revision revision) override { reached = revision; }

      std::map<std::uint64_t, Change> by_revision;
      Revision reached;
    } past;

    store.watch("", store.compacted(), past);
    const auto delivered = [&] {
      return past.by_revision.empty() ? Revision() : Revision(past.by_revision.rbegin()->first);
    };
    ASSERT_TRUE(
        loop.run_until([&] { return std::max({past.reached, delivered(), store.compacted()}) >= store.revision(); }));
    by_revision_.erase(by_revision_.begin(), by_revision_.upper_bound(store.compacted().number()));
    for (const auto& [revision, said] : by_revision_) {
      const auto found = past.by_revision.find(revision);
      const bool may_lack = sqlite::is_below(key_of(said.writer), busy_options().without_history) &&
                            !deletes(said.count) && last_[said.writer].revision != revision;
      if (found == past.by_revision.end() && may_lack) continue;
      if (found == past.by_revision.end() && was_overwritten(said, past.by_revision)) continue;
      ASSERT_NE(found, past.by_revision.end()) << "revision " << revision << " is missing";
      EXPECT_EQ(found->second.key, key_of(said.writer));
      EXPECT_EQ(text_of(found->second.value), deletes(said.count) ? "(none)" : text_for(said.writer, said.count));
    }
    last_deletion_.clear();
    for (const auto& [revision, change] : past.by_revision) {
      if (!change.value) last_deletion_[change.key] = revision;
    }
  }

  /// The acknowledged write was the last of a key without history, and a later write to that key was stored without an
  /// acknowledgement.
  static bool was_overwritten(const Acknowledged& said, const std::map<std::uint64_t, Change>& delivered) {
    return sqlite::is_below(key_of(said.writer), busy_options().without_history) && !deletes(said.count) &&
           std::any_of(delivered.upper_bound(said.revision), delivered.end(),
                       [&](const auto& change) { return change.second.key == key_of(said.writer); });
  }

  /// Every key stands where its last acknowledgement says, or at a later write that was under way.
  void check_present(Store& store, TestLoop& loop) {
    StoreClient client(store, loop);
    const Result<RangeResult> present = client.range({});
    ASSERT_TRUE(present);
    std::map<std::string, Entry> entries;
    for (const Entry& entry : present->entries) entries.emplace(entry.key, entry);
    for (const auto& [writer, said] : last_) {
      const auto found = entries.find(key_of(writer));
      if (found == entries.end()) {
        EXPECT_TRUE(deletes(said.count) || last_deletion_[key_of(writer)] > said.revision)
            << "lost: " << key_of(writer) << " " << said.count;
        continue;
      }
      const std::uint64_t stored = count_in(*found->second.value);
      EXPECT_GE(stored, said.count) << key_of(writer);
      EXPECT_EQ(*found->second.value, text_for(writer, stored));
      EXPECT_GE(found->second.mod_revision.number(), said.revision);
      EXPECT_EQ(found->second.mod_revision.number() == said.revision, stored == said.count);
    }
  }

  ScratchDirectory directory_;
  std::string path_ = directory_.file("kill.db");
  std::uint64_t newest_ = 0;  // revision acknowledged or found
  std::uint64_t acknowledgements_ = 0;
  std::map<std::uint64_t, Acknowledged> last_;
  std::map<std::uint64_t, Acknowledged> by_revision_;
  std::map<std::string, std::uint64_t> last_deletion_;  // in the history that is left
};

TEST_F(SqliteKillTest, LosesNothingAcknowledged) {
  kill_again_and_again();
}

TEST_F(SqliteKillTest, LosesNothingWhereKeysHaveNoHistory) {
  ::setenv(kWithoutHistoryVariable, "1", 1);
  kill_again_and_again();
  ::unsetenv(kWithoutHistoryVariable);
}

}  // namespace
}  // namespace spillway::store
