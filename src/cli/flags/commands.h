// The commands of the command line as they are defined: what each adds, and which one was chosen. Thread: main.
#pragma once

#include "cli/flags/command_line.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

class Commands {
 public:
  explicit Commands(CLI::App& root) : root_(root) {}

  CLI::App& add(const std::string& name, const std::string& help);

  /// Set when the command's name was given, with the values of its flags.
  template <typename Args>
  void choose(CLI::App& app, const std::shared_ptr<Args>& args) {
    on_chosen(app, [args]() -> Command { return *args; });
  }

  /// A command of a command: `spillway GROUP NAME`.
  static CLI::App& add_to(CLI::App& group, const std::string& name, const std::string& help);

  void choose(std::function<Command()> chosen) { chosen_ = std::move(chosen); }

  /// Valid only after a command line was parsed without a mistake.
  Command chosen() const { return chosen_(); }

 private:
  void on_chosen(CLI::App& app, std::function<Command()> chosen);

  CLI::App& root_;
  std::function<Command()> chosen_;
};

/// up, apiserver, agent, controller, scheduler.
void define_process_commands(Commands& commands);
void define_proxy(Commands& commands);
/// Adds demo, doctor, stress, lint, simulate, advise, swarm: commands that need no cluster.
void define_offline_commands(Commands& commands);
void define_explain(Commands& commands);
/// record, replay.
void define_recording_commands(Commands& commands);
/// Adds `completion`. `shell`: the shell of the requested script; stays empty otherwise.
void define_completion(Commands& commands, std::string& shell);
/// top, watch, zones, hold, resume, dashboard.
void define_cluster_commands(Commands& commands);
/// images import | list | pull | prune.
void define_image_commands(Commands& commands);
/// store backup | restore | check | defrag.
void define_store_commands(Commands& commands);

}  // namespace spillway::cli
