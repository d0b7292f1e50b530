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
  CLI::Option* data_dir = app.add_option("--data-dir", args->data_dir, "The directory of the API server")
                              ->default_str("/var/lib/spillway for root, else ~/.local/share/spillway");
  add_output(app, args->output);
  commands.choose(app, args);
  return {app, args, data_dir};
}

void define_backup(Commands& commands, CLI::App& group) {
  const Upkeep it = define(commands, group, Act::kBackup, "backup",
                           "Copy the store, as it stands at one revision, to a file; a server may run");
  it.app.add_option("--to", it.args->file, "The file to make")->required();
  it.app.add_flag("--force", it.args->force, "Replace the file if it is there");
  it.app.footer(
      "Exit codes: 0 done, 1 not done, 2 wrong command line, 128 + N ended by signal N.\n"
      "The keys below DATA_DIR/pki are not part of the store: copy them as well.");
}

void define_restore(Commands& commands, CLI::App& group) {
  const Upkeep it =
      define(commands, group, Act::kRestore, "restore", "Put a backup in place of the store; no server may run");
  it.app.add_option("--from", it.args->file, "The backup")->required();
  it.app.add_flag("--force", it.args->force, "Replace the store that is there; it is kept beside under another name");
  it.app.footer(
      "Revisions go on far ahead of the backup's: whoever watched before is told to list again.\n"
      "Exit codes: 0 done, 1 not done, 2 wrong command line or a file that cannot be read, 128 + N ended by "
      "signal N.");
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
  app.add_option("--from", ends->first, "sqlite:DIR, the data directory of an API server, or etcd:URL,URL")->required();
  app.add_option("--to", ends->second, "The other one")->required();
  app.add_flag("--overwrite", args->force,
               "Replace what is there: a store in a file is kept beside under another name, keys in etcd are removed");
  add_etcd_access(app, args->etcd);
  refuse_etcd_overrides(app,
                        "a copy has two ends: copy the whole store into each etcd, a server takes from each what lives "
                        "there (docs/store.md)");
  add_output(app, args->output);
  app.parse_complete_callback([args, ends] { take_ends(ends->first, ends->second, *args); });
  app.footer(
      "Revisions never fall: a store in a file goes on far ahead, and an etcd that is behind is refused.\n"
      "Exit codes: 0 done and compared, 1 not done, 2 wrong command line, 128 + N ended by signal N. A copy into etcd\n"
      "that did not end is marked, and no server starts on it.");
  commands.choose(app, args);
}

void define_check(Commands& commands, CLI::App& group) {
  const Upkeep it = define(commands, group, Act::kCheck, "check",
                           "Look at every page, revision and object of the store; a server may run");
  CLI::Option* file = it.app.add_option("--file", it.args->file, "Look at this backup instead")->excludes(it.data_dir);
  add_etcd(it.app, it.args->etcd);
  refuse_etcd_overrides(it.app, "one etcd is looked at in one run: give the URLs of each to --etcd-servers");
  it.app.get_option("--etcd-servers")->excludes(it.data_dir)->excludes(file);
  it.app.parse_complete_callback([args = it.args] { check_etcd(args->etcd); });
  it.app.footer(
      "Exit codes: 0 sound, 1 problems, one line each, 2 cannot be read or wrong command line, 128 + N ended "
      "by signal N.");
}

void define_defrag(Commands& commands, CLI::App& group) {
  const Upkeep it =
      define(commands, group, Act::kDefrag, "defrag", "Write the store anew, without unused pages; no server may run");
  it.app.footer(
      "Needs free space for a second copy while it works.\n"
      "Exit codes: 0 done, 1 not done, 2 wrong command line, 128 + N ended by signal N.");
}

}  // namespace

void define_store_commands(Commands& commands) {
  CLI::App& group =
      commands.add("store", "Look after the store of an API server: backup, restore, check, defrag, copy");
  group.require_subcommand(1);
  define_backup(commands, group);
  define_restore(commands, group);
  define_check(commands, group);
  define_defrag(commands, group);
  define_copy(commands, group);
}

}  // namespace spillway::cli
