#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

using Act = StoreCommand::Act;

struct Upkeep {
  CLI::App& app;
  std::shared_ptr<StoreCommand> args;
  CLI::Option* data_dir;
};

Upkeep define(Commands& commands, CLI::App& group, Act act, const std::string& name, const std::string& help) {
  const auto args = std::make_shared<StoreCommand>();
  args->act = act;
  CLI::App& app = Commands::add_to(group, name, help);
  CLI::Option* data_dir = app.add_option("--data-dir", args->data_dir, "Data directory of the API server")
                              ->type_name("DIR")
                              ->default_str("/var/lib/spillway for root, else ~/.local/share/spillway");
  add_output(app, args->output);
  commands.choose(app, args);
  return {app, args, data_dir};
}

void define_backup(Commands& commands, CLI::App& group) {
  const Upkeep it =
      define(commands, group, Act::kBackup, "backup", "Copy the store at one revision to a file; the server may run");
  it.app.add_option("--to", it.args->file, "File to write")->type_name("FILE")->required();
  it.app.add_flag("--force", it.args->force, "Replace the file if it exists");
  it.app.footer(
      "Exit codes: 0 done, 1 not done, 2 wrong command line, 128 + N ended by signal N.\n"
      "The keys below DATA_DIR/pki are not part of the store: copy them as well.");
}

void define_restore(Commands& commands, CLI::App& group) {
  const Upkeep it =
      define(commands, group, Act::kRestore, "restore", "Replace the store by a backup; no server may run");
  it.app.add_option("--from", it.args->file, "Backup file")->type_name("FILE")->required();
  it.app.add_flag("--force", it.args->force, "Replace an existing store; it is renamed and kept beside");
  it.app.footer(
      "Revisions continue far ahead of the backup's, so that earlier watches expire and clients list again.\n"
      "Exit codes: 0 done, 1 not done, 2 wrong command line or a file that cannot be read, 128 + N ended by signal N.");
}

constexpr std::string_view kSqlite = "sqlite:";
constexpr std::string_view kEtcd = "etcd:";

/// "sqlite:DIR" or "etcd:URL,URL" becomes part of the command; false: it is neither.
bool take_end(const std::string& text, StoreCommand& command) {
  if (text.starts_with(kSqlite)) {
    command.data_dir = text.substr(kSqlite.size());
    return true;
  }
  if (!text.starts_with(kEtcd)) return false;
  for (std::size_t at = kEtcd.size(); at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    command.etcd.servers.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return true;
}

/// Throws CLI::ValidationError.
void take_ends(const std::string& from, const std::string& to, StoreCommand& command) {
  command.etcd.servers.clear();
  const bool understood = take_end(from, command) && take_end(to, command);
  if (!understood || from.starts_with(kEtcd) == to.starts_with(kEtcd)) {
    throw CLI::ValidationError("copy", fmt::format("--from and --to: one is sqlite:DIR, the other etcd:URL,URL, got "
                                                   "\"{}\" and \"{}\"",
                                                   from, to));
  }
  command.into_etcd = to.starts_with(kEtcd);
  check_etcd(command.etcd);
}

void define_copy(Commands& commands, CLI::App& group) {
  const auto args = std::make_shared<StoreCommand>();
  args->act = Act::kCopy;
  CLI::App& app =
      Commands::add_to(group, "copy", "Copy everything from the embedded store to etcd, or back; no server may run");
  const auto ends = std::make_shared<std::pair<std::string, std::string>>();
  app.add_option("--from", ends->first, "Source: sqlite:DIR (the data directory of an API server) or etcd:URL,URL")
      ->type_name("STORE")
      ->required();
  app.add_option("--to", ends->second, "Destination: the other kind of store")->type_name("STORE")->required();
  app.add_flag(
      "--overwrite", args->force,
      "Replace an existing destination: an embedded store is renamed and kept beside, keys in etcd are removed");
  add_etcd_access(app, args->etcd);
  refuse_etcd_overrides(app,
                        "a copy has one target: copy the whole store into each etcd; a server reads from each its own "
                        "resources (docs/store.md)");
  add_output(app, args->output);
  app.parse_complete_callback([args, ends] { take_ends(ends->first, ends->second, *args); });
  app.footer(
      "Revisions never fall: an embedded store continues far ahead, and an etcd with lower revisions is refused.\n"
      "Exit codes: 0 done and compared, 1 not done, 2 wrong command line, 128 + N ended by signal N.\n"
      "An unfinished copy in etcd is marked, and no server starts on it.");
  commands.choose(app, args);
}

void define_check(Commands& commands, CLI::App& group) {
  const Upkeep it = define(commands, group, Act::kCheck, "check",
                           "Verify every page, revision and object of the store; the server may run");
  CLI::Option* file = it.app.add_option("--file", it.args->file, "Verify this backup instead")
                          ->type_name("FILE")
                          ->excludes(it.data_dir);
  add_etcd(it.app, it.args->etcd);
  refuse_etcd_overrides(it.app, "one run checks one etcd: give its URLs to --etcd-servers");
  it.app.get_option("--etcd-servers")->excludes(it.data_dir)->excludes(file);
  it.app.parse_complete_callback([args = it.args] { check_etcd(args->etcd); });
  it.app.footer(
      "Exit codes: 0 sound, 1 etcd did not answer, 2 wrong command line or the file cannot be read.\n"
      "3: problems, one line each. 128 + N: ended by signal N.");
}

void define_defrag(Commands& commands, CLI::App& group) {
  const Upkeep it =
      define(commands, group, Act::kDefrag, "defrag", "Rewrite the store without unused pages; no server may run");
  it.app.footer(
      "Needs free space for a second copy while it works.\n"
      "Exit codes: 0 done, 1 not done, 2 wrong command line, 128 + N ended by signal N.");
}

}  // namespace

void define_store_commands(Commands& commands) {
  CLI::App& group = commands.add("store", "Maintain the store of an API server: backup, restore, check, defrag, copy");
  group.require_subcommand(1);
  define_backup(commands, group);
  define_restore(commands, group);
  define_check(commands, group);
  define_defrag(commands, group);
  define_copy(commands, group);
}

}  // namespace spillway::cli
