#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace spillway::cli {
namespace {

using ImagesAct = ImagesCommand::Act;

Result<std::string> parse_runtime_socket(const std::string& text) {
  const std::string path = text.starts_with("unix://") ? text.substr(7) : text;
  if (path.starts_with('/')) return path;
  return invalid({}, "expected the path of a socket, got \"{}\"", text);
}

std::shared_ptr<ImagesCommand> define_images(Commands& commands, CLI::App& group, ImagesAct act,
                                             const std::string& name, const std::string& help, CLI::App** made) {
  const auto args = std::make_shared<ImagesCommand>();
  args->act = act;
  CLI::App& app = Commands::add_to(group, name, help);
  app.add_option("--data-dir", args->data_dir, "Data directory of the `spillway up` whose containerd is used")
      ->type_name("DIR")
      ->default_str("/var/lib/spillway for root, else ~/.local/share/spillway");
  add_parsed(app, "--runtime", args->socket, parse_runtime_socket, "Socket of another container runtime", "SOCKET", "");
  app.footer("Exit codes: 0 done, 1 not done, 2 wrong command line.");
  commands.choose(app, args);
  *made = &app;
  return args;
}

}  // namespace

void define_image_commands(Commands& commands) {
  CLI::App& group = commands.add("images", "Manage container images on this machine");
  group.require_subcommand(1);
  CLI::App* app = nullptr;
  const auto import = define_images(commands, group, ImagesAct::kImport, "import",
                                    "Load images from a tar archive, as written by docker save or podman save", &app);
  app->add_option("FILE", import->file, "Archive file")->type_name("FILE")->required();
  app->add_option("--name", import->name, "Name of the image, in place of the one in the archive")->type_name("IMAGE");
  const auto list = define_images(commands, group, ImagesAct::kList, "list", "List images with their sizes", &app);
  add_output(*app, list->output);
  const auto pull = define_images(commands, group, ImagesAct::kPull, "pull", "Pull an image from its registry", &app);
  app->add_option("IMAGE", pull->name, "Its name")->type_name("IMAGE")->required();
  define_images(commands, group, ImagesAct::kPrune, "prune", "Remove the images that no container uses", &app);
}

}  // namespace spillway::cli
