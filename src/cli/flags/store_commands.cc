#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

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

void define_check(Commands& commands, CLI::App& group) {
  const Upkeep it = define(commands, group, Act::kCheck, "check",
                           "Look at every page, revision and object of the store; a server may run");
  it.app.add_option("--file", it.args->file, "Look at this backup instead")->excludes(it.data_dir);
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
      commands.add("store", "Look after the embedded store of an API server: backup, restore, check, defrag");
  group.require_subcommand(1);
  define_backup(commands, group);
  define_restore(commands, group);
  define_check(commands, group);
  define_defrag(commands, group);
}

}  // namespace spillway::cli
