// A store in a directory of its own that is opened, written, closed and tampered with: for tests of its upkeep.
// Thread: the test's.
#pragma once

#include "store/scratch_directory.h"
#include "store/sqlite/database.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/upkeep/backup.h"
#include "store/sqlite/upkeep/check.h"
#include "store/store_client.h"
#include "store/test_loop.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::store {

class UpkeepTest : public ::testing::Test {
 protected:
  static bool should_continue(double) { return true; }

  void open() { open_at(path_); }

  void open_at(const std::string& path) {
    close();
    auto opened = SqliteStore::open(path, loop_.poster());
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
  }

  /// Keys k0, k1 … at once, with `bytes` of value behind "KEY is ".
  void put_many(int count, std::size_t bytes) {
    int stored = 0;
    for (int i = 0; i < count; ++i) {
      const std::string key = fmt::format("k{}", i);
      store_->write(Write{key, value_of(key + " is " + std::string(bytes, 'x')), std::nullopt},
                    [&stored](const Result<WriteResult>& done) { stored += done ? 1 : 0; });
    }
    ASSERT_TRUE(loop_.run_until([&] { return stored == count; }));
  }

  std::vector<std::string> list() {
    const Result<RangeResult> result = client_->range({});
    EXPECT_TRUE(result) << result.error().text();
    return result ? describe(result->entries) : std::vector<std::string>();
  }

  /// a: twice; b: created and deleted; c: once. Revision 5.
  void write_some() {
    put("a", "a is 1");
    put("b", "b is 1");
    put("a", "a is 2");
    ASSERT_TRUE(client_->remove("b"));
    put("c", "c is 1");
  }

  /// Runs statements on a closed file, to damage it.
  void tamper(const std::string& sql) {
    auto connection = sqlite::Connection::open(path_, sqlite::Access::kReadWrite);
    ASSERT_TRUE(connection);
    const Outcome outcome = connection->exec(sql.c_str());
    ASSERT_TRUE(outcome) << outcome.error().text();
  }

  /// Values of these tests begin with their key.
  static sqlite::CheckedValue check_value(std::string_view key, std::string_view value) {
    const bool sound = value.starts_with(std::string(key) + " is ");
    return {std::string(key.substr(0, 1)), sound ? "" : "is no value, expected one"};
  }

  static sqlite::CheckReport check(const std::string& path) {
    auto report = sqlite::check_database(path, check_value, should_continue);
    EXPECT_TRUE(report) << report.error().text();
    return report ? *std::move(report) : sqlite::CheckReport();
  }

  static std::vector<std::string> problems(const std::string& path) { return check(path).findings.lines(); }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  static std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }

  TestLoop loop_;
  ScratchDirectory directory_;
  std::string path_ = directory_.file("test.db");
  std::string copy_ = directory_.file("copy.db");
  std::unique_ptr<SqliteStore> store_;
  std::optional<StoreClient> client_;
};

}  // namespace spillway::store
