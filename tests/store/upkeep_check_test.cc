// The check of a database: a sound one is found sound, and each damage that is planted is found, and named.
#include "base/rng.h"
#include "store/sqlite/upkeep/check.h"
#include "store/sqlite/upkeep/restore.h"
#include "store/upkeep_fixture.h"

#include <string>
#include <vector>

namespace spillway::store {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreCheck : public UpkeepTest {};

struct Damage {
  std::string name;
  std::string sql;
  std::string finding;
};

class StoreCheckFinds : public UpkeepTest, public ::testing::WithParamInterface<Damage> {};

TEST_P(StoreCheckFinds, WhatWasPlanted) {
  open();
  write_some();
  close();
  ASSERT_THAT(problems(path_), IsEmpty());
  tamper(GetParam().sql);
  EXPECT_THAT(problems(path_), Contains(HasSubstr(GetParam().finding)));
}

INSTANTIATE_TEST_SUITE_P(
    Damages, StoreCheckFinds,
    ::testing::Values(
        Damage{"ObjectIsMissing", "DELETE FROM current WHERE key = 'c'",
               "c: is missing, expected as revision 5 wrote it"},
        Damage{
            "ObjectIsMissingAndHistoryToo",
            "DELETE FROM current WHERE key = 'c'; DELETE FROM log; UPDATE state SET compacted = 5, history_bytes = 0",
            "table state: 94 bytes of objects, expected 47"},
        Damage{"DeletedObjectIsBack", "INSERT INTO current VALUES('b', 2, 2, 1, 'b is 1')",
               "b: is there, expected it to be gone: revision 4 deleted it"},
        Damage{"RevisionBeyondTheHead", "UPDATE state SET revision = 4",
               "history: c changed at revision 5, expected none beyond 4, the store's own"},
        Damage{"ObjectBeyondTheHead", "UPDATE current SET mod_rev = 9 WHERE key = 'c'",
               "c: changed at revision 9, expected none beyond 5, the store's own"},
        Damage{"HistoryHasAHole", "DELETE FROM log WHERE rev IN (2, 3)",
               "history: revisions 2 to 3 are missing, expected every one after 0, the compacted one"},
        Damage{"HistoryEndsEarly", "DELETE FROM log WHERE rev = 5", "history: revisions 5 to 5 are missing"},
        Damage{"CompactedBeyondTheHead", "UPDATE state SET compacted = 8",
               "compacted at revision 8, expected at most 5"},
        Damage{"NewestRevisionIsAnother", "UPDATE current SET mod_rev = 2 WHERE key = 'a'",
               "a: changed at revision 2, version 2, created at 1; expected 3, 2, 1 by the history"},
        Damage{"TwoObjectsOfOneRevision", "UPDATE current SET mod_rev = 5 WHERE key = 'a'",
               "c: changed at revision 5, expected one of its own: it is that of a"},
        Damage{"ChangeFollowsAnother", "UPDATE log SET prev_rev = 2 WHERE rev = 3",
               "history: revision 3 of a replaces revision 2, version 1, created at 1; expected 1, 1, 1"},
        Damage{"CreationOfWhatIsThere", "UPDATE log SET prev_rev = NULL, prev_value = NULL WHERE rev = 3",
               "history: revision 3 creates a, expected an update of what revision 1 wrote"},
        Damage{"FormerValueIsGone", "UPDATE log SET prev_value = NULL WHERE rev = 3",
               "history: revision 3 of a lacks a former value, expected one"},
        Damage{"VersionIsTooLarge", "UPDATE current SET version = 99 WHERE key = 'c'",
               "c: created at revision 5, changed at 5, version 99"},
        Damage{"ValueIsNone", "UPDATE current SET value = 'rubbish' WHERE key = 'c'", "c: is no value, expected one"},
        Damage{"FormerValueIsNone", "UPDATE log SET prev_value = 'rubbi' WHERE rev = 3",
               "a as of revision 1: is no value, expected one"},
        Damage{"StateIsGone", "DELETE FROM state", "table state: cannot be read to the end (it is empty)"},
        Damage{"TableIsGone", "DROP TABLE current", "table current: cannot be read to the end"}),
    [](const auto& row) { return row.param.name; });

TEST_F(StoreCheck, FindsNothingInASoundStoreWhileItIsWritten) {
  open();
  write_some();
  put_many(2'000, 20);
  ASSERT_TRUE(client_->compact(Revision(100)));
  int written = 0;
  const auto report = sqlite::check_database(path_, check_value, [&](double) {
    put("k1", "k1 is another");
    return ++written > 0;
  });
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_GT(written, 0) << "nothing was written meanwhile: this shows nothing";
  EXPECT_THAT(report->findings.lines(), IsEmpty());
  EXPECT_EQ(report->compacted, Revision(100));
  EXPECT_EQ(report->history, report->revision.number() - 100);
  EXPECT_EQ(report->objects, (std::map<std::string, std::uint64_t>{{"a", 1}, {"c", 1}, {"k", 2'000}}));
}

TEST_F(StoreCheck, FindsFlippedBytesOfAValue) {
  open();
  write_some();
  close();
  std::string bytes = read_file(path_);
  const std::size_t at = bytes.find("c is 1");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 0x20);
  write_file(path_, bytes);
  EXPECT_THAT(problems(path_), Contains("c: is no value, expected one"));
}

TEST_F(StoreCheck, FindsFlippedBytesOfPages) {
  open();
  put_many(500, 800);
  close();
  const std::string whole = read_file(path_);
  for (const std::size_t page : {2, 5, 40, 90}) {
    std::string bytes = whole;
    bytes.replace(page * 4096, 16, std::string(16, '\x7e'));
    write_file(path_, bytes);
    EXPECT_THAT(problems(path_), Contains(HasSubstr("pages: "))) << "page " << page;
  }
}

/// A disk may damage the bytes in any way: an answer arrives. Not every damage is found: most bytes are unused, or
/// inside of a text that is still one.
TEST_F(StoreCheck, AnswersWhateverIsInTheFile) {
  open();
  write_some();
  put_many(60, 200);
  close();
  const std::string whole = read_file(path_);
  Rng rng(4711);
  int found = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    const std::uint64_t flips = 1 + rng.below(4);
    for (std::uint64_t i = 0; i < flips; ++i) {
      char& byte = bytes[rng.below(bytes.size())];
      byte = static_cast<char>(byte ^ static_cast<char>(1 + rng.below(255)));
    }
    if (rng.below(10) == 0) bytes.resize(rng.below(bytes.size()));
    write_file(path_, bytes);
    const auto report = sqlite::check_database(path_, check_value, should_continue);
    if (!report || report->findings.count() != 0) ++found;
    std::filesystem::remove(path_ + "-wal");
    std::filesystem::remove(path_ + "-shm");
  }
  EXPECT_GT(found, 50);
}

TEST_F(StoreCheck, SaysWhatItCannotRead) {
  write_file(path_, "kind: Pod\nmetadata: {name: not-a-database, namespace: but-long-enough-to-be-one}\n");
  auto report = sqlite::check_database(path_, check_value, should_continue);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text(), HasSubstr("not a Spillway database"));
  report = sqlite::check_database(directory_.file("none.db"), check_value, should_continue);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
  std::filesystem::remove(path_);
  open();
  write_some();
  close();
  tamper("PRAGMA user_version=3");
  report = sqlite::check_database(path_, check_value, should_continue);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text(), HasSubstr("written by a newer version of Spillway"));
  tamper("PRAGMA user_version=1; PRAGMA application_id=7");
  report = sqlite::check_database(path_, check_value, should_continue);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text(), HasSubstr("the database of another program"));
}

TEST_F(StoreCheck, RefusesWhatSpillwayDidNotMake) {
  std::filesystem::create_directories(directory_.file("restored"));
  for (const std::string foreign :
       {"CREATE TRIGGER spy AFTER UPDATE ON current BEGIN DELETE FROM log; END",
        "CREATE VIEW spy AS SELECT key, value FROM current", "CREATE TABLE spy(x)", "CREATE INDEX spy ON log(key)",
        "DROP TABLE log; CREATE VIEW log AS SELECT * FROM current",
        "DROP TABLE without_history; CREATE TABLE without_history(prefix TEXT PRIMARY KEY, more TEXT) WITHOUT ROWID"}) {
    std::filesystem::remove(path_);
    open();
    write_some();
    close();
    tamper(foreign);
    const auto report = sqlite::check_database(path_, check_value, should_continue);
    ASSERT_FALSE(report) << foreign;
    EXPECT_EQ(report.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(report.error().text(), HasSubstr("that Spillway did not make")) << foreign;
    const auto restored = sqlite::restore_database(path_, directory_.file("restored/spillway.db"), {}, should_continue);
    ASSERT_FALSE(restored) << foreign;
    EXPECT_THAT(restored.error().text(), HasSubstr("that Spillway did not make")) << foreign;
    EXPECT_FALSE(std::filesystem::exists(directory_.file("restored/spillway.db")));
    EXPECT_FALSE(SqliteStore::open(path_, loop_.poster())) << "put in place by hand: " << foreign;
  }
}

TEST_F(StoreCheck, ChangesNothing) {
  open();
  write_some();
  close();
  const std::string before = read_file(path_);
  EXPECT_THAT(problems(path_), IsEmpty());
  EXPECT_TRUE(read_file(path_) == before);
}

}  // namespace
}  // namespace spillway::store
