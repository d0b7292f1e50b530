// The durable store beside its peers, interleaved in one run: what group commit, the table of present state and
// compaction are worth. Every figure that counts is a ratio; absolute ones depend on the disk.
#include "base/check.h"
#include "store/durable_load.h"
#include "store/memory_store.h"
#include "store/sqlite/database.h"
#include "store/sqlite/sqlite_store.h"
#include "store/version_table.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <string_view>

namespace spillway::store {
namespace {

class BenchDirectory {
 public:
  explicit BenchDirectory(const std::string& parent) : path_(parent + "/spillway-bench-XXXXXX") {
    SPILLWAY_CHECK(::mkdtemp(path_.data()) != nullptr);
  }

  ~BenchDirectory() { std::filesystem::remove_all(path_); }

  BenchDirectory(const BenchDirectory&) = delete;
  BenchDirectory& operator=(const BenchDirectory&) = delete;

  std::string file(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

 private:
  std::string path_;
};

std::unique_ptr<SqliteStore> open(const std::string& path, BenchLoop& loop, SqliteOptions options = {}) {
  auto opened = SqliteStore::open(path, loop.poster(), std::move(options));
  if (!opened) check_failed(opened.error().text(), __FILE__, __LINE__);
  return *std::move(opened);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Follows everything, as the API server's cache does.
class CountingWatcher final : public Watcher {
 public:
  void on_changes(const std::vector<Change>& changes) override { seen += changes.size(); }

  void on_watch_end(const Error& error) override { check_failed(error.text(), __FILE__, __LINE__); }

  std::size_t seen = 0;
};

void compare_commits(const std::string& parent, int scale) {
  fmt::print("durable writes of 800 bytes, 2,000 leases, one watcher (median of 3 interleaved runs)\n");
  fmt::print("  {:>8} {:>14} {:>10} {:>10} {:>16} {:>8}\n", "writers", "group commit/s", "p50 ms", "p99 ms",
             "one per commit/s", "ratio");
  for (const int writers : {1, 16, 64, 256}) {
    std::vector<double> group_rates, single_rates, p50, p99;
    for (int run = 0; run < 3; ++run) {
      for (const bool grouped : {true, false}) {
        BenchDirectory directory(parent);
        BenchLoop loop;
        SqliteOptions options;
        if (!grouped) options.group_writes_max = 1;
        const auto store = open(directory.file("store.db"), loop, options);
        CountingWatcher watcher;
        store->watch("/registry/", Revision(), watcher);
        Load load;
        load.writers = writers;
        load.writes = scale * (grouped ? 250 * std::min(writers, 64) : 1'000);
        create_leases(*store, loop, load);
        const LoadResult result = renew_leases(*store, loop, load);
        SPILLWAY_CHECK(watcher.seen == static_cast<std::size_t>(load.leases + load.writes));
        (grouped ? group_rates : single_rates).push_back(result.writes_per_second);
        if (grouped) {
          p50.push_back(result.p50_milliseconds);
          p99.push_back(result.p99_milliseconds);
        }
      }
    }
    fmt::print("  {:>8} {:>14.0f} {:>10.2f} {:>10.2f} {:>16.0f} {:>7.1f}x\n", writers, median(group_rates), median(p50),
               median(p99), median(single_rates), median(group_rates) / median(single_rates));
  }
}

void compare_lists(const std::string& parent, int scale) {
  const int renewals = 20'000 * scale;
  BenchDirectory directory(parent);
  BenchLoop loop;
  SqliteOptions options;
  // no compaction, because the size of the history is what slows the other store down
  options.history.bytes_max = gibibytes(1);
  const auto store = open(directory.file("store.db"), loop, options);
  Load load;
  load.writers = 500;
  load.writes = renewals;
  create_leases(*store, loop, load);
  renew_leases(*store, loop, load);

  VersionTable peer(directory.file("versions.db"));
  for (int done = 0; done < load.leases + renewals;) {
    peer.begin();
    for (int i = 0; i < 500; ++i, ++done) {
      const auto lease = static_cast<int>(static_cast<std::int64_t>(done) * 7'919 % load.leases);
      peer.put(lease_key(lease), *lease_value(load.value_bytes, done));
    }
    peer.commit();
  }

  std::vector<double> ours, theirs;
  const auto timed = [](auto&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  for (int run = 0; run < 15; ++run) {
    ours.push_back(timed([&] {
      std::size_t count = 0;
      store->range({.prefix = "/registry/leases/"}, [&](Result<RangeResult> result) {
        SPILLWAY_CHECK(result.has_value());
        count = result->entries.size();
      });
      loop.run_until([&] { return count != 0; });
      SPILLWAY_CHECK(count == 2'000);
    }));
    theirs.push_back(timed([&] { SPILLWAY_CHECK(peer.list("/registry/leases/", "/registry/leases0") == 2'000); }));
  }
  fmt::print("list of 2,000 leases after {} renewals, nothing compacted (median of 15, interleaved)\n", renewals);
  fmt::print("  present state {:.2f} ms, table of versions {:.2f} ms: {:.1f}x faster\n", median(ours), median(theirs),
             median(theirs) / median(ours));
}

/// Until compacted history is deleted and its pages are given back, but for the few that the store keeps.
void wait_until_tidy(const std::string& path) {
  auto connection = sqlite::Connection::open(path, sqlite::Access::kReadOnly);
  SPILLWAY_CHECK(connection.has_value());
  for (;;) {
    const auto rows = connection->number("SELECT count(*) FROM log");
    const auto free_pages = connection->number("PRAGMA freelist_count");
    const auto pages = connection->number("PRAGMA page_count");
    SPILLWAY_CHECK(rows && free_pages && pages);
    if (*rows == 0 && *free_pages * 4 < *pages) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void measure_growth(const std::string& parent, int scale) {
  BenchDirectory directory(parent);
  BenchLoop loop;
  const std::string path = directory.file("store.db");
  auto store = open(path, loop);
  Load load;
  load.writers = 2'000;
  load.leases = 50'000;
  load.writes = 200'000 * scale;
  create_leases(*store, loop, load);
  const auto size_now = [&] {
    std::error_code absent;
    const auto journal = std::filesystem::file_size(path + "-wal", absent);
    return static_cast<double>(std::filesystem::file_size(path) + (absent ? 0 : journal));
  };
  double largest = 0;
  constexpr int kParts = 20;
  load.writes /= kParts;
  for (int part = 0; part < kParts; ++part) {
    renew_leases(*store, loop, load);
    largest = std::max(largest, size_now());
  }
  const double live = static_cast<double>(load.leases) * static_cast<double>(load.value_bytes + lease_key(0).size());
  const double written = static_cast<double>(load.writes) * kParts * static_cast<double>(load.value_bytes);
  bool compacted = false;
  store->compact(store->revision(), [&](Result<Revision> result) { compacted = result.has_value(); });
  loop.run_until([&] { return compacted; });
  wait_until_tidy(path);
  store.reset();
  const double stopped = size_now();
  fmt::print("size after {} renewals of {} leases ({:.0f} MB live, {:.0f} MB written)\n", load.writes * kParts,
             load.leases, live / 1e6, written / 1e6);
  fmt::print("  largest, with journal: {:.0f} MB = {:.2f}x live; compacted and stopped: {:.0f} MB = {:.2f}x live\n",
             largest / 1e6, largest / live, stopped / 1e6, stopped / live);
}

void measure_cluster(const std::string& parent, int scale) {
  BenchDirectory directory(parent);
  BenchLoop loop;
  const std::string path = directory.file("store.db");
  auto store = open(path, loop);
  CountingWatcher watcher;
  store->watch("/registry/", Revision(), watcher);
  Load load;
  load.leases = 130'000;
  create_leases(*store, loop, load);
  load.offered_per_second = 13'000;
  load.writes = 13'000 * 6 * scale;
  const LoadResult result = renew_leases(*store, loop, load);
  const double live = static_cast<double>(load.leases) * static_cast<double>(load.value_bytes + lease_key(0).size());
  const auto size = static_cast<double>(std::filesystem::file_size(path));
  fmt::print("130,000 leases, 13,000 renewals/s offered for {} s, one watcher\n", 6 * scale);
  fmt::print(
      "  {:.0f}/s durable, p50 {:.1f} ms, p99 {:.1f} ms, max {:.1f} ms, {} refused; file {:.0f} MB = {:.2f}x live\n",
      result.writes_per_second, result.p50_milliseconds, result.p99_milliseconds, result.max_milliseconds,
      result.refused, size / 1e6, size / live);
}

/// The simulator's store: 5,000 nodes renew leases and post status, one watcher follows. One thread, no disk.
void measure_memory(int scale) {
  std::deque<BenchLoop::Task> tasks;
  MemoryStore store([&tasks](BenchLoop::Task task) { tasks.push_back(std::move(task)); });
  const auto run = [&tasks] {
    while (!tasks.empty()) {
      BenchLoop::Task task = std::move(tasks.front());
      tasks.pop_front();
      task();
    }
  };
  CountingWatcher watcher;
  store.watch("/registry/", Revision(), watcher);
  const int writes = 400'000 * scale;
  const Value value = lease_value(800, 0);
  std::vector<std::string> keys;
  for (int lease = 0; lease < 5'000; ++lease) keys.push_back(lease_key(lease));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < writes; ++i) {
    store.write(Write{keys[static_cast<std::size_t>(i) * 7'919 % keys.size()], value, std::nullopt},
                [](Result<WriteResult>) {});
    run();  // one write at a time, the worst case
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  SPILLWAY_CHECK(watcher.seen == static_cast<std::size_t>(writes));
  // 5,000 nodes: 500 lease renewals/s and 17 status updates/s.
  fmt::print("memory: {:.0f} writes/s one at a time = {:.0f}x what 5,000 nodes need\n", writes / seconds,
             writes / seconds / 517);
}

}  // namespace
}  // namespace spillway::store

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::string parent = std::filesystem::temp_directory_path().string();
  int scale = 5;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--short") {
      scale = 1;
    } else if (argument == "--dir" && i + 1 < argc) {
      parent = argv[++i];
    } else if (argument == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else {
      fmt::print(stderr, "usage: {} [--short] [--dir DIRECTORY] [--only commits|lists|growth|cluster|memory]\n",
                 argv[0]);
      return 2;
    }
  }
  const auto wanted = [&](std::string_view part) { return only.empty() || only == part; };
  if (wanted("commits")) spillway::store::compare_commits(parent, scale);
  if (wanted("lists")) spillway::store::compare_lists(parent, scale);
  if (wanted("growth")) spillway::store::measure_growth(parent, scale);
  if (wanted("cluster")) spillway::store::measure_cluster(parent, scale);
  if (wanted("memory")) spillway::store::measure_memory(scale);
  return 0;
}
