// `spillway images`: imports, lists, pulls and removes images of a container runtime on this machine.
#include "api/text/time_text.h"
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "apps/server/data_dir.h"
#include "base/bytes_text.h"
#include "base/utf8.h"
#include "host/containerd/content_store.h"
#include "host/containerd/daemon_config.h"
#include "host/containerd/import_plan.h"
#include "host/containerd/tar_archive.h"
#include "host/cri/image_service.h"
#include "runtime/clock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace spillway::apps {
namespace {

/// A name to read: a tag, or a digest, or the id.
std::string shown_name(const host::RuntimeImage& image) {
  if (!image.tags.empty()) return printable_line(image.tags.front());
  return printable_line(image.digests.empty() ? image.id : image.digests.front());
}

std::string size_text(std::uint64_t bytes) {
  return bytes_text(static_cast<double>(bytes));
}

Result<std::string> socket_of(const cli::ImagesCommand& command) {
  std::string socket = command.socket;
  if (socket.empty()) {
    const std::string data_dir = std::filesystem::absolute(resolve_data_dir(command.data_dir)).string();
    socket = host::DaemonPlaces{data_dir + "/containerd"}.socket();
  }
  std::error_code error;
  if (std::filesystem::exists(socket, error)) return socket;
  if (error) return Error{ErrorCode::kForbidden, error.message() + "; run it as root", socket};
  if (!command.socket.empty()) return Error{ErrorCode::kNotFound, "there is no such socket", socket};
  return Error{ErrorCode::kNotFound,
               "no containerd of `spillway up` runs here; start it, or name another runtime with --runtime SOCKET",
               socket};
}

Outcome import_images(const std::string& socket, const cli::ImagesCommand& command) {
  SPILLWAY_TRY(archive, host::TarArchive::open(command.file));
  const auto read = [&archive](const std::string& name) { return archive.read_text(name); };
  auto plan = host::plan_import(archive.files(), read, command.name);
  if (!plan) {
    const Error& error = plan.error();
    return Error{error.code, error.text(), command.file};
  }
  host::ContentStore store(socket);
  const WallTime now = runtime::RealClock::read().wall;
  SPILLWAY_TRY_VOID(store.take_lease(fmt::format("spillway-import-{}", ::getpid()), api::format_time(now + hours(1))));
  for (const host::PlannedBlob& each : plan->blobs) {
    SPILLWAY_TRY_VOID(store.write(each.blob, [&](std::uint64_t offset, std::size_t bytes_max) -> Result<std::string> {
      if (!each.file.empty()) return archive.read(each.file, offset, bytes_max);
      return each.bytes.substr(std::min<std::size_t>(offset, each.bytes.size()), bytes_max);
    }));
  }
  for (const auto& [name, target] : plan->images) {
    SPILLWAY_TRY_VOID(store.name_image(name, target));
    print_out("{}\n", name);
  }
  return {};
}

api::Json document_of(const std::vector<host::RuntimeImage>& images) {
  const auto texts = [](const std::vector<std::string>& names) {
    api::Json list = api::Json::array();
    for (const std::string& each : names) list.if_array()->push_back(each);
    return list;
  };
  api::Json list = api::Json::array();
  for (const host::RuntimeImage& each : images) {
    list.if_array()->push_back(api::Json::object({{"id", each.id},
                                                  {"repoTags", texts(each.tags)},
                                                  {"repoDigests", texts(each.digests)},
                                                  {"sizeBytes", each.size_bytes},
                                                  {"pinned", each.pinned}}));
  }
  return api::Json::object({{"images", std::move(list)}});
}

Outcome list_images(const std::string& socket, const cli::ImagesCommand& command) {
  SPILLWAY_TRY(images, host::ImageService(socket).list());
  if (cli::is_document(command.output)) {
    print_answer(document_of(images), command.output);
    return {};
  }
  std::size_t width = std::string_view("IMAGE").size();
  for (const host::RuntimeImage& each : images) width = std::max(width, shown_name(each).size());
  print_out("{:<{}}  {:<19}  {}\n", "IMAGE", width, "ID", "SIZE");
  for (const host::RuntimeImage& each : images)
    print_out("{:<{}}  {:<19}  {}\n", shown_name(each), width, each.id.substr(0, 19), size_text(each.size_bytes));
  return {};
}

Outcome pull_image(const std::string& socket, const cli::ImagesCommand& command) {
  const std::string name = host::full_image_name(command.name);
  SPILLWAY_TRY(id, host::ImageService(socket).pull(name));
  print_out("{} {}\n", name, id);
  return {};
}

Outcome prune_images(const std::string& socket) {
  host::ImageService service(socket);
  SPILLWAY_TRY(sandbox, service.sandbox_image());
  SPILLWAY_TRY(images, service.list());
  SPILLWAY_TRY(in_use, service.in_use());
  std::uint64_t freed_bytes = 0;
  for (const host::RuntimeImage& each : host::unused_images(images, in_use, {sandbox})) {
    SPILLWAY_TRY_VOID(service.remove(each.id));
    freed_bytes += each.size_bytes;
    print_out("{}\n", shown_name(each));
  }
  print_out("Freed: {}\n", size_text(freed_bytes));
  return {};
}

Outcome run(const std::string& socket, const cli::ImagesCommand& command) {
  switch (command.act) {
    case cli::ImagesCommand::Act::kImport:
      return import_images(socket, command);
    case cli::ImagesCommand::Act::kList:
      return list_images(socket, command);
    case cli::ImagesCommand::Act::kPull:
      return pull_image(socket, command);
    case cli::ImagesCommand::Act::kPrune:
      return prune_images(socket);
  }
  std::unreachable();
}

}  // namespace

int run_images(const cli::ImagesCommand& command) {
  const auto socket = socket_of(command);
  const Outcome done = socket ? run(*socket, command) : Outcome(socket.error());
  if (done) return cli::kExitOk;
  // Archives and runtimes give names that others have written.
  print_error(Error{done.error().code, printable_line(done.error().text())});
  return cli::kExitFailure;
}

}  // namespace spillway::apps
