// Backup, restore and defragmentation: one state, revisions that never fall, nothing half done.
#include "store/sqlite/upkeep/backup.h"
#include "store/sqlite/upkeep/defrag.h"
#include "store/sqlite/upkeep/new_file.h"
#include "store/sqlite/upkeep/restore.h"
#include "store/upkeep_fixture.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>

namespace spillway::store {
namespace {

using sqlite::Existing;
using sqlite::kRevisionLead;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class StoreBackup : public UpkeepTest {};

class StoreRestore : public UpkeepTest {
 protected:
  void back_up() {
    const auto report = sqlite::write_backup(path_, copy_, Existing::kKept, should_continue);
    ASSERT_TRUE(report) << report.error().text();
  }

  Result<sqlite::RestoreReport> restore(const std::string& keep_as = {}) {
    return sqlite::restore_database(copy_, path_, keep_as, should_continue);
  }
};

class StoreDefrag : public UpkeepTest {};

TEST_F(StoreBackup, HoldsOneRevisionOfAStoreThatIsWrittenMeanwhile) {
  open();
  constexpr int kKeys = 6'000;
  std::map<std::string, std::string> model;
  int stored = 0;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = fmt::format("k{:05}", i);
    model[key] = key + " is 0";
    store_->write(Write{key, value_of(key + " is 0"), std::nullopt},
                  [&](Result<WriteResult> done) { stored += done ? 1 : 0; });
  }
  ASSERT_TRUE(loop_.run_until([&] { return stored == kKeys; }));
  ASSERT_TRUE(client_->remove("k00007"));
  model.erase("k00007");
  int written = 0;
  const auto write_meanwhile = [&](double) {
    // Writes at both ends of the key range, so that a copy in pieces would miss one.
    put("k00000", "k00000 is new");
    put(fmt::format("k{:05}", kKeys - 1), "the last is new");
    put(fmt::format("m{}", written), "another");
    EXPECT_TRUE(client_->remove("k03000"));
    return ++written > 0;
  };
  const Revision before = store_->revision();
  const auto report = sqlite::write_backup(path_, copy_, Existing::kKept, write_meanwhile);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_GT(written, 0) << "nothing was written meanwhile: this shows nothing";
  EXPECT_EQ(report->revision, before);
  EXPECT_EQ(report->objects, model.size());
  EXPECT_EQ(report->bytes.count(), static_cast<std::int64_t>(std::filesystem::file_size(copy_)));
  EXPECT_THAT(problems(copy_), IsEmpty());
  EXPECT_EQ(check(copy_).backup_of, before);

  open_at(copy_);
  const auto entries = client_->range({});
  ASSERT_TRUE(entries);
  std::map<std::string, std::string> found;
  for (const Entry& entry : entries->entries) found[entry.key] = *entry.value;
  EXPECT_TRUE(found == model);
}

TEST_F(StoreBackup, IsForItsOwnerAloneAndReplacesOnlyWhatItMay) {
  open();
  write_some();
  write_file(copy_, "something of the operator's");
  std::filesystem::permissions(copy_, std::filesystem::perms::all);
  auto report = sqlite::write_backup(path_, copy_, Existing::kKept, should_continue);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(read_file(copy_), "something of the operator's");
  report = sqlite::write_backup(path_, copy_, Existing::kReplaced, should_continue);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->revision, Revision(5));
  struct stat made{};
  ASSERT_EQ(::stat(copy_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0600U);
}

TEST_F(StoreBackup, RemovesEverythingWhenItIsStopped) {
  open();
  put_many(3'000, 20);
  const auto before = files();
  int asked = 0;
  const auto report = sqlite::write_backup(path_, copy_, Existing::kKept, [&](double) { return ++asked > 1; });
  EXPECT_FALSE(report);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(files(), before);
}

TEST_F(StoreBackup, SaysWhereItFailed) {
  open();
  const auto report = sqlite::write_backup(path_, directory_.file("absent/copy.db"), Existing::kKept, should_continue);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text(), HasSubstr("absent/copy.db.partial: cannot be made: No such file or directory"));
  const auto nothing = sqlite::write_backup(directory_.file("none.db"), copy_, Existing::kKept, should_continue);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::kNotFound);
}

TEST_F(StoreBackup, MayBePutInPlaceByHand) {
  open();
  write_some();
  ASSERT_TRUE(sqlite::write_backup(path_, copy_, Existing::kKept, should_continue));
  put("c", "c is lost");
  const Revision newest = store_->revision();
  close();
  std::filesystem::rename(copy_, path_);
  open();
  EXPECT_GT(store_->revision(), newest);
  put("d", "d is 1");
  EXPECT_THAT(check(path_).backup_of, std::nullopt) << "it is a store again";
}

TEST_F(StoreRestore, ContinuesFarAheadSoThatRevisionsNeverFall) {
  open();
  write_some();
  back_up();
  put("a", "a is lost");
  put("d", "d is lost");
  const Revision seen = store_->revision();
  close();
  const std::string kept = directory_.file("kept.db");
  const auto report = restore(kept);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->revision, Revision(5));
  EXPECT_EQ(report->objects, 2U);
  EXPECT_EQ(report->continues_at, Revision(seen.number() + kRevisionLead))
      << "the replaced store was ahead of the backup";
  EXPECT_EQ(report->kept, kept);

  open();
  EXPECT_EQ(store_->revision(), report->continues_at);
  EXPECT_THAT(list(), ElementsAre("a=a is 2 c1 m3 v2", "c=c is 1 c5 m5 v1"));
  RecordingWatcher watcher;
  store_->watch("", seen, watcher);
  ASSERT_TRUE(loop_.run_until([&] { return watcher.end.has_value(); }));
  EXPECT_EQ(watcher.end->code, ErrorCode::kExpired) << "who knows the lost writes has to list again";
  put("e", "e is 1");
  EXPECT_EQ(store_->revision(), Revision(report->continues_at.number() + 1));
  close();
  EXPECT_THAT(problems(path_), IsEmpty());
  open_at(kept);
  EXPECT_THAT(list(), Contains("d=d is lost c7 m7 v1"));
}

TEST_F(StoreRestore, IntoANewDirectoryGoesOnAtTheBackupsLead) {
  open();
  write_some();
  back_up();
  close();
  const std::string fresh = directory_.file("fresh.db");
  const auto report = sqlite::restore_database(copy_, fresh, {}, should_continue);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->continues_at, Revision(5 + kRevisionLead));
  EXPECT_EQ(report->kept, "");
  struct stat made{};
  ASSERT_EQ(::stat(fresh.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0600U);
}

TEST_F(StoreRestore, TwiceFromOneBackupNeverGivesARevisionTwice) {
  open();
  write_some();
  back_up();
  close();
  ASSERT_TRUE(restore(directory_.file("kept-1.db")));
  open();
  for (int i = 0; i < 20; ++i) put("a", fmt::format("a is {}", i));
  const Revision seen = store_->revision();
  close();
  const auto again = restore(directory_.file("kept-2.db"));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_GT(again->continues_at, seen);
}

TEST_F(StoreRestore, OfACopyThatIsNoBackupGoesAheadAsWell) {
  open();
  write_some();
  close();
  const std::string fresh = directory_.file("fresh.db");
  const auto report = sqlite::restore_database(path_, fresh, {}, should_continue);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->revision, Revision(5));
  EXPECT_EQ(report->continues_at, Revision(5 + kRevisionLead));
  EXPECT_THAT(problems(fresh), IsEmpty());
}

TEST_F(StoreRestore, RefusesAStoreInUseOneThatIsThereAndStopsWithoutATrace) {
  open();
  write_some();
  back_up();
  auto refused = restore(directory_.file("kept.db"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().text(), HasSubstr("is in use by process"));
  close();
  const std::string there = read_file(path_);
  const auto before = files();
  refused = restore();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kAlreadyExists);
  write_file(copy_, "no database");
  EXPECT_FALSE(restore(directory_.file("kept.db")));
  EXPECT_EQ(files(), before);
  EXPECT_TRUE(read_file(path_) == there);
}

TEST_F(StoreRestore, ReplacesAStoreThatCannotBeRead) {
  open();
  write_some();
  back_up();
  close();
  const std::string rubbish = "this was a database once, and is none any more, as one can see";
  write_file(path_, rubbish);
  write_file(path_ + "-wal", "nor is this a journal");
  const std::string kept = directory_.file("kept.db");
  const auto report = restore(kept);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(read_file(kept), rubbish);
  open();
  EXPECT_THAT(list(), ElementsAre("a=a is 2 c1 m3 v2", "c=c is 1 c5 m5 v1"));
}

TEST_F(StoreRestore, TakesNothingFromTheJournalOfAStoreThatIsGone) {
  open();
  write_some();
  back_up();
  open();
  put("a", "a is 3");
  const std::string lost = directory_.file("lost.db");
  std::filesystem::copy_file(path_ + "-wal", lost + "-wal");
  const auto report = sqlite::restore_database(copy_, lost, {}, should_continue);
  ASSERT_TRUE(report) << report.error().text();
  open_at(lost);
  EXPECT_THAT(list(), ElementsAre("a=a is 2 c1 m3 v2", "c=c is 1 c5 m5 v1"));
}

TEST_F(StoreDefrag, GivesUnusedPagesBackAndChangesNothingElse) {
  open();
  write_some();
  const std::string large(4'000, 'x');
  int done = 0;
  for (int i = 0; i < 400; ++i) {
    store_->write(Write{"c", value_of("c is " + large), std::nullopt}, [&](const auto&) { ++done; });
  }
  ASSERT_TRUE(loop_.run_until([&] { return done == 400; }));
  const Revision newest = store_->revision();
  close();
  tamper(
      fmt::format("DELETE FROM log WHERE rev <= {0}; UPDATE state SET compacted = {0}, history_bytes = "
                  "(SELECT ifnull(sum(40 + length(CAST(key AS BLOB)) + ifnull(length(prev_value), 0)), 0) FROM log)",
                  newest.number() - 3));
  ASSERT_THAT(problems(path_), IsEmpty());
  std::optional<sqlite::DefragPlan> plan;
  const auto report =
      sqlite::defragment(path_, [&](const sqlite::DefragPlan& planned) { plan = planned; }, should_continue);
  ASSERT_TRUE(report) << report.error().text();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->before, report->before);
  EXPECT_GE(plan->needed, report->after);
  EXPECT_LT(report->after.count(), report->before.count() / 4);
  EXPECT_EQ(report->after.count(), static_cast<std::int64_t>(std::filesystem::file_size(path_)));
  EXPECT_THAT(problems(path_), IsEmpty());
  EXPECT_THAT(files(), Not(Contains("test.db.defrag")));
  open();
  EXPECT_EQ(store_->revision(), newest);
  EXPECT_EQ(store_->compacted(), Revision(newest.number() - 3));
  RecordingWatcher watcher;
  store_->watch("", Revision(newest.number() - 3), watcher);
  ASSERT_TRUE(loop_.run_until([&] { return watcher.seen.size() == 3; }));
}

TEST_F(StoreDefrag, RefusesAStoreInUseAndLeavesADamagedOne) {
  open();
  write_some();
  const auto nothing = [](const sqlite::DefragPlan&) {};
  auto report = sqlite::defragment(path_, nothing, should_continue);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kConflict);
  put_many(200, 800);
  close();
  std::string bytes = read_file(path_);
  for (std::size_t page = 3; page < 30; ++page) bytes.replace(page * 4096, 64, std::string(64, '\x7e'));
  write_file(path_, bytes);
  report = sqlite::defragment(path_, nothing, should_continue);
  EXPECT_FALSE(report);
  EXPECT_TRUE(read_file(path_) == bytes);
  EXPECT_THAT(files(), Not(Contains("test.db.defrag")));
  report = sqlite::defragment(directory_.file("none.db"), nothing, should_continue);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(files(), Not(Contains("none.db.lock")));
}

TEST_F(StoreBackup, TwoMakersOfOneFileConflict) {
  write_file(copy_ + ".partial", "of one that was killed");
  auto first = sqlite::NewFile::make(copy_, "partial");
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->size(), Bytes{0}) << "what was left is gone";
  const auto second = sqlite::NewFile::make(copy_, "partial");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  ASSERT_TRUE(first->commit(Existing::kKept));
  EXPECT_THAT(files(), ElementsAre("copy.db"));
  auto third = sqlite::NewFile::make(copy_, "partial");
  ASSERT_TRUE(third);
  const Outcome taken = third->commit(Existing::kKept);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kAlreadyExists);
}

TEST_F(StoreBackup, FollowsNoLinkToTheFileItMakes) {
  write_file(directory_.file("precious"), "precious");
  std::filesystem::create_symlink(directory_.file("precious"), copy_ + ".partial");
  EXPECT_FALSE(sqlite::NewFile::make(copy_, "partial"));
  EXPECT_EQ(read_file(directory_.file("precious")), "precious");
}

}  // namespace
}  // namespace spillway::store
