#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

namespace spillway::cli {
namespace {

/// "node" and "controller" of a directory, else a node's name, "node/NAME" or "controller".
void choose_whose(const std::string& whose, RecordCommand& record) {
  constexpr std::string_view kNode = "node/";
  const auto wrong = [](const std::string& why) { throw CLI::ValidationError("record", why); };
  record.of = whose == "controller" ? RecordCommand::Of::kController : RecordCommand::Of::kNode;
  if (!record.directory.empty()) {
    if (!whose.empty() && whose != "node" && whose != "controller")
      wrong("--dir DIR needs node or controller before it, got \"" + whose + "\"");
    return;
  }
  if (whose.empty()) wrong("expected a node's name or \"controller\"; or --dir DIR on the machine itself");
  if (record.of == RecordCommand::Of::kController) return;
  if (!record.target.controller.empty())
    wrong("--controller is the address of a controller: use `record controller`, not a node");
  record.node = whose.starts_with(kNode) ? whose.substr(kNode.size()) : whose;
  if (whose == "node") wrong("expected a node's name (node/node if that is \"node\"), or --dir DIR on the node itself");
  if (record.node.empty() || record.node.contains('/')) wrong("\"" + whose + "\" is no node's name");
}

void define_record(Commands& commands) {
  const auto record = std::make_shared<RecordCommand>();
  const auto whose = std::make_shared<std::string>();
  CLI::App& app = commands.add(
      "record", "Fetch the recording of a node's evictions, or of the node lifecycle controllers, as one file");
  app.add_option("OF", *whose,
                 "Source of the recording: a node's name, or controller; with --dir: node (the default) or controller")
      ->type_name("NODE|controller");
  auto* const directory = app.add_option("--dir", record->directory,
                                         "Read it on this machine, without a server: the node's state directory "
                                         "(STATE_DIR/NODE), or the controller's --recording-dir")
                              ->type_name("DIR");
  auto* const kept =
      app.add_option("--kept", record->kept, "Name of a kept copy to fetch, in place of the latest recording")
          ->type_name("NAME");
  auto* const list = app.add_flag("--list", record->list, "List the kept copies only");
  auto* const file =
      app.add_option("-o,--output-file", record->file, "File to write; it appears when it is complete")
          ->type_name("FILE")
          ->check([](const std::string& text) {
            const bool is_format = text == "json" || text == "yaml" || text == "text" || text == "wide";
            return is_format ? fmt::format(
                                   "expected a file: a recording has no formats; write ./{} if that is its name", text)
                             : std::string();
          });
  add_controller_target(app, record->target);
  for (const char* const flag : {"--kubeconfig", "--context", "--cluster", "--user", "--controller", "--lease"})
    directory->excludes(app.get_option(flag));
  kept->excludes(list);
  file->excludes(list);
  app.footer(
      "A node's recording is fetched through the API server, with the right to get its nodes/proxy. A controller's\n"
      "recording needs the right to get /debug/spillway/recording and the paths below it.\n"
      "Exit codes: 0 done, 1 there is no recording, or it cannot be fetched or written, 2 wrong command line.");
  app.callback([&commands, record, whose, file, list] {
    choose_whose(*whose, *record);
    if (file->count() == 0 && list->count() == 0)
      throw CLI::ValidationError("record", "-o FILE is missing: the file to write");
    commands.choose([record]() -> Command { return *record; });
  });
}

void define_replay(Commands& commands) {
  const auto replay = std::make_shared<ReplayCommand>();
  CLI::App& app = commands.add(
      "replay", "Show the decisions of a node or a controller, and those that another configuration would have made");
  app.add_option("FILE", replay->file, "Recording written by `spillway record`")->type_name("FILE")->required();
  app.add_option(
         "--config", replay->config,
         "KubeletConfiguration to use in place of the node's own; for a controller a file as for simulate --config-a")
      ->type_name("FILE");
  add_output(app, replay->output);
  app.footer(
      "Exit codes: 0 no decision differs, 2 wrong command line or file, 3 the other configuration differs,\n"
      "5 the recorded configuration differs. Then another version of the program made the recording.");
  commands.choose(app, replay);
}

}  // namespace

void define_recording_commands(Commands& commands) {
  define_record(commands);
  define_replay(commands);
}

}  // namespace spillway::cli
