// `spillway store backup
// restore
// check
// defrag
// copy`: the commands for an API server's data.
#include "apps/commands/commands.h"
#include "apps/process/interruption.h"
#include "apps/process/process.h"
#include "apps/process/progress_line.h"
#include "apps/process/terminal.h"
#include "apps/server/data_dir.h"
#include "apps/store/kept_name.h"
#include "apps/store/store_check.h"
#include "apps/store/store_copy.h"
#include "apps/store/store_report.h"
#include "runtime/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace spillway::apps {
namespace {

namespace sqlite = store::sqlite;
using Act = cli::StoreCommand::Act;

class StoreUpkeep {
 public:
  explicit StoreUpkeep(const cli::StoreCommand& command)
      : command_(command), data_dir_(resolve_data_dir(command.data_dir)), store_(store_file(data_dir_)) {}

  int run() {
    switch (command_.act) {
      case Act::kBackup:
        return backup();
      case Act::kRestore:
        return restore();
      case Act::kCheck:
        return check();
      case Act::kDefrag:
        return defrag();
      case Act::kCopy:
        return copy();
    }
    return cli::kExitFailure;
  }

 private:
  template <typename Work>
  auto with_progress(std::string what, Work work) {
    const bool quiet = cli::is_document(command_.output);
    ProgressLine line(std::move(what), quiet ? ProgressLine::Shown::kNever : ProgressLine::Shown::kOnTerminal);
    return work(sqlite::ShouldContinue([&line](double share) {
      line.show(share);
      return Interruption::signal() == 0;
    }));
  }

  Duration took() const { return runtime::RealClock::read_mono() - start_; }

  int failed(const Error& error, int exit_code = cli::kExitFailure) {
    if (const int signal = Interruption::signal(); signal != 0) {
      print_err("spillway: interrupted: nothing was changed\n");
      return cli::kExitSignalBase + signal;
    }
    print_error(error);
    return exit_code;
  }

  /// True for the database's own files: a backup there would destroy the data.
  bool is_of_store(const std::string& file) const {
    std::error_code problem;
    const auto plain = [&problem](const std::string& path) {
      return std::filesystem::weakly_canonical(std::filesystem::absolute(path, problem), problem);
    };
    return std::ranges::any_of(std::array<std::string_view, 6>{"", "-wal", "-shm", "-journal", ".lock", ".reserve"},
                               [&](std::string_view end) { return plain(file) == plain(store_ + std::string(end)); });
  }

  int backup() {
    if (is_of_store(command_.file)) {
      return failed(invalid(command_.file, "is a file of the store itself; choose another one"), cli::kExitUsage);
    }
    const auto existing = command_.force ? sqlite::Existing::kReplaced : sqlite::Existing::kKept;
    const auto report = with_progress("backup", [&](const sqlite::ShouldContinue& should_continue) {
      return sqlite::write_backup(store_, command_.file, existing, should_continue);
    });
    if (!report) return failed(report.error());
    print(command_.output, command_.file, *report, took());
    return cli::kExitOk;
  }

  Result<sqlite::CheckReport> check_file(const std::string& file) {
    const ValueCheck values;
    return with_progress("check", [&](const sqlite::ShouldContinue& should_continue) {
      return sqlite::check_database(file, values, should_continue);
    });
  }

  int check_etcd() {
    const auto report = with_progress("check", [&](const sqlite::ShouldContinue& should_continue) {
      return check_etcd_store(command_.etcd, should_continue);
    });
    if (!report) return failed(report.error());
    print(command_.output, "etcd" + command_.etcd.prefix, *report);
    return report->findings.count() == 0 ? cli::kExitOk : cli::kExitNegative;
  }

  int check() {
    if (!command_.etcd.servers.empty()) return check_etcd();
    const std::string& file = command_.file.empty() ? store_ : command_.file;
    const auto report = check_file(file);
    if (!report) return failed(report.error(), cli::kExitUsage);
    print(command_.output, file, *report);
    return report->findings.count() == 0 ? cli::kExitOk : cli::kExitNegative;
  }

  int restore() {
    if (const Outcome may = sqlite::may_restore(store_, command_.force); !may) return failed(may.error());
    const auto seen = check_file(command_.file);
    if (!seen) return failed(seen.error(), cli::kExitUsage);
    if (seen->findings.count() != 0) {
      print_err("{}", problem_lines(command_.file, seen->findings));
      return failed(invalid(command_.file, "has {} problems; nothing was restored", seen->findings.count()));
    }
    if (const Outcome made = make_data_dir(data_dir_); !made) return failed(made.error());
    const auto report = with_progress("restore", [&](const sqlite::ShouldContinue& should_continue) {
      return sqlite::restore_database(command_.file, store_, command_.force ? kept_name(store_) : "", should_continue);
    });
    if (!report) return failed(report.error());
    print(command_.output, store_, *report, took());
    if (std::error_code problem; !std::filesystem::exists(data_dir_ + "/pki", problem)) {
      print_err(
          "spillway: note: {}/pki does not exist: copy it from the old server, or all existing certificates and tokens "
          "become invalid\n",
          data_dir_);
    }
    return cli::kExitOk;
  }

  int copy() {
    const auto report = with_progress(
        "copy", [&](const sqlite::ShouldContinue& should_continue) { return copy_store(command_, should_continue); });
    if (!report) return copy_failed(report.error());
    print(command_.output, command_.into_etcd ? "etcd" + command_.etcd.prefix : store_, *report, took());
    return cli::kExitOk;
  }

  int copy_failed(const Error& error) {
    const int signal = Interruption::signal();
    if (signal == 0) return failed(error);
    print_err("spillway: interrupted: {}\n", command_.into_etcd
                                                 ? "the copy in etcd is incomplete; it is marked, so that no server "
                                                   "starts on it, unless nothing was written yet"
                                                 : "nothing was changed");
    return cli::kExitSignalBase + signal;
  }

  int defrag() {
    const auto begin = [this](const sqlite::DefragPlan& plan) {
      if (cli::is_document(command_.output)) return;
      print_out("{}: {}; needs {} of free space, {} are free\n", store_, size_text(plan.before), size_text(plan.needed),
                size_text(plan.free));
      std::fflush(stdout);
    };
    const auto report = with_progress("defrag", [&](const sqlite::ShouldContinue& should_continue) {
      return sqlite::defragment(store_, begin, should_continue);
    });
    if (!report) return failed(report.error());
    print(command_.output, store_, *report, took());
    return cli::kExitOk;
  }

  const cli::StoreCommand& command_;
  std::string data_dir_;
  std::string store_;
  Interruption interruption_;
  Instant start_ = runtime::RealClock::read_mono();
};

}  // namespace

int run_store(const cli::StoreCommand& command) {
  return StoreUpkeep(command).run();
}

}  // namespace spillway::apps
