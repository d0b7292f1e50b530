#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace spillway::cli {
namespace {

void define_record(Commands& commands) {
  const auto record = std::make_shared<RecordCommand>();
  CLI::App& app =
      commands.add("record", "Fetch what a node recorded of its evictions, or a controller of nodes, as one file");
  app.add_option("OF", record->of, "Whose recording it is: node or controller")
      ->check(CLI::IsMember({"node", "controller"}))
      ->capture_default_str();
  app.add_option("--dir", record->directory,
                 "The node's state directory (STATE_DIR/NODE), or the controller's --recording-dir")
      ->required();
  auto* const kept = app.add_option("--kept", record->kept, "A copy that was kept aside, in place of the latest");
  auto* const list = app.add_flag("--list", record->list, "Only say which copies were kept aside");
  auto* const file = app.add_option("-o,--output-file", record->file, "Where to")->type_name("FILE");
  kept->excludes(list);
  app.footer("Exit codes: 0 done, 1 there is no recording, or it cannot be written, 2 wrong command line.");
  app.callback([&commands, record, file, list] {
    if (file->count() == 0 && list->count() == 0) throw CLI::ValidationError("record", "say where to: -o FILE");
    commands.choose([record]() -> Command { return *record; });
  });
}

void define_replay(Commands& commands) {
  const auto replay = std::make_shared<ReplayCommand>();
  CLI::App& app = commands.add(
      "replay", "Show what a node or a controller decided, and what another configuration would have decided");
  app.add_option("FILE", replay->file, "A recording: what `spillway record` wrote")->type_name("FILE")->required();
  app.add_option(
         "--config", replay->config,
         "Another KubeletConfiguration, in place of the node's own; of a controller: a file as of simulate --config-a")
      ->type_name("FILE");
  add_output(app, replay->output);
  app.footer(
      "Exit codes: 0 nothing differs, 2 wrong command line or file, 3 the other configuration decides otherwise,\n"
      "4 its own configuration does: the recording is of another version of the program.");
  commands.choose(app, replay);
}

}  // namespace

void define_recording_commands(Commands& commands) {
  define_record(commands);
  define_replay(commands);
}

}  // namespace spillway::cli
