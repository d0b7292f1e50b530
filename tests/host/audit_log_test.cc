// Goal: the audit log is its owner's alone and holds whole lines; it is renamed with the time when it has grown; what
// cannot be queued or written is counted, and the log says how much is missing.
#include "host/audit/audit_backups.h"
#include "host/audit/audit_file.h"
#include "host/audit/audit_queue.h"
#include "host/audit/audit_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr WallTime kHalfPastEight{microseconds(1'795'336'200'000'000)};  // 2026-11-22T08:30:00Z
constexpr Duration kDay = hours(24);

AuditEntry entry(std::string line) {
  return {.line = std::move(line)};
}

TEST(AuditQueueBounds, AreEventsAndBytes) {
  AuditQueue queue({.events_max = 3, .bytes_max = 10});
  AuditEntry first = entry("12345");
  AuditEntry second = entry("12345");
  AuditEntry third = entry("1");
  EXPECT_TRUE(queue.push(first));
  EXPECT_TRUE(queue.push(second));
  EXPECT_FALSE(queue.push(third)) << "too many bytes";
  EXPECT_EQ(third.line, "1") << "it is as it was";
  EXPECT_EQ(queue.take(5).size(), 1U);
  AuditEntry empty[2];
  EXPECT_TRUE(queue.push(empty[0]));
  EXPECT_TRUE(queue.push(empty[1]));
  EXPECT_FALSE(queue.push(third)) << "too many events";
  EXPECT_EQ(queue.take(100).size(), 3U);
  EXPECT_TRUE(queue.empty());
}

TEST(AuditQueueBounds, TheFirstLineIsNeverTooLong) {
  AuditQueue queue({.events_max = 3, .bytes_max = 10});
  AuditEntry large = entry(std::string(100, 'x'));
  EXPECT_TRUE(queue.push(large));
  EXPECT_EQ(queue.take(10).size(), 1U);
  EXPECT_TRUE(queue.empty());
}

TEST(AuditBackupNames, HoldTheTimeAndAreBesideTheLog) {
  EXPECT_EQ(audit_backup_path("/var/log/audit.log", kHalfPastEight), "/var/log/audit-2026-11-22T08-30-00.000.log");
  EXPECT_EQ(audit_backup_path("audit", kHalfPastEight + milliseconds(7)), "audit-2026-11-22T08-30-00.007");
}

TEST(AuditBackupPlans, OldAndTooManyGoTheRestIsPacked) {
  const std::string a = "audit-2026-11-20T08-30-00.000.log";
  const std::string b = "audit-2026-11-21T08-30-00.000.log";
  const std::string c = "audit-2026-11-22T08-29-00.000.log";
  const std::vector<std::string> names{"audit.log", a, b + ".gz", c, "audit-x.log", "audit-2026.log", "other"};
  const auto plan = [&](AuditBackupLimits limits, std::vector<std::string> more = {}) {
    more.insert(more.end(), names.begin(), names.end());
    return plan_audit_backups("audit.log", more, limits, kHalfPastEight);
  };
  EXPECT_EQ(plan({}), AuditBackupPlan{});
  EXPECT_EQ(plan({.files_max = 2}), (AuditBackupPlan{.remove = {a}, .compress = {}}));
  EXPECT_EQ(plan({.age_max = kDay - minutes(1)}), (AuditBackupPlan{.remove = {b + ".gz", a}, .compress = {}}));
  EXPECT_EQ(plan({.compress = true}), (AuditBackupPlan{.remove = {}, .compress = {c, a}}));
  EXPECT_EQ(plan({.files_max = 3}, {b, c + ".tmp"}), (AuditBackupPlan{.remove = {c + ".tmp", b}, .compress = {}}))
      << "what an earlier try left";
}

class AuditLogFiles : public ::testing::Test {
 protected:
  AuditLogFiles() : folder_(fs::path(::testing::TempDir()) / fmt::format("audit-{}", ::getpid())) {
    fs::create_directories(folder_);
  }

  ~AuditLogFiles() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "audit.log") const { return (folder_ / name).string(); }

  static std::string text(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static mode_t mode(const std::string& path) {
    struct stat found = {};
    EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
    return found.st_mode & 0777U;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& each : fs::directory_iterator(folder_)) found.push_back(each.path().filename().string());
    std::ranges::sort(found);
    return found;
  }

  fs::path folder_;
};

TEST_F(AuditLogFiles, AreTheirOwnersAlone) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(AuditFile::open({.path = path()}));
  ::umask(before);
  EXPECT_EQ(mode(path()), 0600U);
  fs::permissions(path(), fs::perms::all);
  std::ofstream(path()) << "what was there\n";
  auto file = AuditFile::open({.path = path()});
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(mode(path()), 0600U);
  ASSERT_TRUE(file->append("more\n", kHalfPastEight));
  EXPECT_EQ(text(path()), "what was there\nmore\n");
}

TEST_F(AuditLogFiles, WhatIsNoFileIsRefused) {
  const auto why = [&](const std::string& name) {
    const auto file = AuditFile::open({.path = path(name)});
    EXPECT_FALSE(file) << name;
    EXPECT_EQ(file ? ErrorCode::kConflict : file.error().code, ErrorCode::kInvalid);
    return file ? std::string() : file.error().message;
  };
  fs::create_symlink(path("elsewhere"), path("link"));
  fs::create_directory(path("folder"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(why("link"), "is a symbolic link");
  EXPECT_EQ(why("folder"), "Is a directory");
  EXPECT_EQ(why("pipe"), "No such device or address");
  EXPECT_EQ(why("nowhere/audit.log"), "No such file or directory");
  EXPECT_FALSE(fs::exists(path("elsewhere")));
}

TEST_F(AuditLogFiles, AreRenamedBeforeTheyAreTooLong) {
  auto file = AuditFile::open({.path = path(), .bytes_max = 10});
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->append("12345678\n", kHalfPastEight)->renamed);
  const auto second = file->append("2\n", kHalfPastEight);
  EXPECT_EQ(second->renamed, path("audit-2026-11-22T08-30-00.000.log"));
  EXPECT_EQ(text(*second->renamed), "12345678\n");
  EXPECT_EQ(text(path()), "2\n");
  const auto third = file->append("12345678901234567890\n", kHalfPastEight);
  EXPECT_EQ(third->renamed, path("audit-2026-11-22T08-30-00.001.log")) << "the name was taken";
  EXPECT_EQ(text(path()), "12345678901234567890\n") << "longer than a file may be, but a whole line";
  EXPECT_EQ(mode(path()), 0600U);
  EXPECT_EQ(mode(*third->renamed), 0600U);
}

/// Limits the length of files of this process, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &now);
  }

  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(AuditLogFiles, AFullDiskLeavesNoHalfLine) {
  auto file = AuditFile::open({.path = path()});
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("first\n", kHalfPastEight));
  {
    const FullDisk full(10);
    EXPECT_FALSE(file->append("second line\n", kHalfPastEight));
  }
  EXPECT_EQ(text(path()), "first\n");
  ASSERT_TRUE(file->append("third\n", kHalfPastEight));
  EXPECT_EQ(text(path()), "first\nthird\n");
}

class AuditWriting : public AuditLogFiles {
 protected:
  AuditWriter::Options options() {
    return {.loss_line = [](std::uint64_t lost, WallTime) { return fmt::format("lost {}", lost); },
            .log = telemetry::Log(),
            .lost = metrics_.counter("lost", "")};
  }

  void open(AuditWriter::Options options, std::int64_t bytes_max = 1'000'000) {
    auto file = AuditFile::open({.path = path(), .bytes_max = bytes_max});
    ASSERT_TRUE(file) << file.error().text();
    writer_.emplace(loop_, *std::move(file), std::move(options));
  }

  double lost() { return metrics_.counter("lost", "").value(); }

  /// Writes a line and runs the loop until the result is known.
  Outcome write_line(std::string line) {
    std::optional<Outcome> outcome;
    writer_->write(std::move(line), [&](Outcome what) {
      outcome = std::move(what);
      loop_.stop();
    });
    loop_.run({});
    return *std::move(outcome);
  }

  telemetry::Registry metrics_;
  runtime::Loop loop_;
  std::optional<AuditWriter> writer_;
};

TEST_F(AuditWriting, LinesAreInOrderAndTheLastOnesAreWrittenAtTheEnd) {
  open(options());
  std::string want;
  for (int i = 0; i < 5'000; ++i) {
    writer_->write(fmt::format("line {}", i));
    want += fmt::format("line {}\n", i);
  }
  writer_.reset();
  EXPECT_EQ(text(path()), want);
  EXPECT_EQ(lost(), 0);
}

TEST_F(AuditWriting, WhatIsAnsweredIsWritten) {
  AuditWriter::Options syncing = options();
  syncing.syncs = true;
  open(std::move(syncing));
  EXPECT_TRUE(write_line("one"));
  EXPECT_EQ(text(path()), "one\n");
}

TEST_F(AuditWriting, WhatDoesNotFitIsCountedAndTheLogSaysSo) {
  AuditWriter::Options narrow = options();
  narrow.bounds = {.events_max = 1, .bytes_max = 1'000'000};
  open(std::move(narrow));
  int sent = 0;
  while (lost() < 3) writer_->write(fmt::format("{}", sent++));  // faster than any disk
  writer_.reset();
  std::istringstream lines(text(path()));
  std::uint64_t written = 0;
  std::uint64_t said = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("lost ")) {
      said += std::stoull(line.substr(5));
    } else {
      ++written;
    }
  }
  EXPECT_EQ(said, static_cast<std::uint64_t>(lost()));
  EXPECT_EQ(written + said, static_cast<std::uint64_t>(sent));
}

TEST_F(AuditWriting, WhereItBlocksNothingIsLost) {
  AuditWriter::Options patient = options();
  patient.bounds = {.events_max = 1, .bytes_max = 1'000'000};
  patient.blocks = true;
  open(std::move(patient));
  for (int i = 0; i < 2'000; ++i) writer_->write("x");
  writer_.reset();
  EXPECT_EQ(text(path()).size(), 4'000U);
  EXPECT_EQ(lost(), 0);
}

TEST_F(AuditWriting, AFullDiskIsLoggedAndAfterwardsHowMuchIsMissing) {
  open(options());
  ASSERT_TRUE(write_line("first"));
  {
    const FullDisk full(8);
    EXPECT_FALSE(write_line("second line"));
    EXPECT_FALSE(write_line("third line"));
  }
  EXPECT_EQ(lost(), 2);
  EXPECT_TRUE(write_line("fourth"));
  writer_.reset();
  // The line about the loss comes when it can: after the next event, or before it, a second after it failed.
  const std::string seen = text(path());
  EXPECT_TRUE(seen == "first\nfourth\nlost 2\n" || seen == "first\nlost 2\nfourth\n") << seen;
}

TEST_F(AuditWriting, OldLogsArePackedBeside) {
  AuditWriter::Options packing = options();
  packing.backups = {.files_max = 0, .age_max = {}, .compress = true};
  open(std::move(packing), 100);
  const std::string line(90, 'x');
  ASSERT_TRUE(write_line(line));
  ASSERT_TRUE(write_line(line));
  const auto is_packed = [&] {
    const std::vector<std::string> found = names();
    return found.size() == 2 && found.front().ends_with(".log.gz");
  };
  while (!is_packed()) ASSERT_GE(names().size(), 2U);  // takes any time; the test has a limit
  const std::string packed = path(names().front());
  EXPECT_EQ(mode(packed), 0600U);
  gzFile file = ::gzopen(packed.c_str(), "rb");
  std::string seen(200, '\0');
  seen.resize(static_cast<std::size_t>(::gzread(file, seen.data(), 200)));
  ::gzclose(file);
  EXPECT_EQ(seen, line + "\n");
}

}  // namespace
}  // namespace spillway::host
