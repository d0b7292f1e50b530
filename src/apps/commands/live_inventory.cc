#include "apps/commands/live_inventory.h"

#include "apps/view/cluster_view.h"
#include "apps/view/remote.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "runtime/loop.h"
#include "sim/scenario/cluster_import.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apps {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

Outcome add_line(sim::ClusterLists& lists, const std::string& at, const std::string& line) {
  if (line.empty()) return {};
  auto list = api::parse_json(line);
  if (!list) return invalid(at, "{}", list.error().text());
  const Outcome added = add_list(lists, *std::move(list));
  return added ? added : invalid(at, "{}", added.error().message);
}

}  // namespace

Result<sim::Inventory> read_live_inventory(const cli::ClusterArgs& api) {
  runtime::Loop loop;
  SPILLWAY_TRY(remote, connect_remote(loop, api));
  ClusterView view(loop, std::move(remote.transport));
  sim::ClusterLists lists;
  for (const std::string_view path : sim::cluster_lists()) {
    auto list = view.get(std::string(path));
    if (!list && (list.error().code == ErrorCode::kNotFound || path == sim::kMeasuredList)) continue;
    if (!list) return list.error();
    SPILLWAY_TRY_VOID(add_list(lists, *std::move(list)));
  }
  return import_cluster(std::move(lists));
}

Result<sim::Inventory> read_listed_inventory(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(file, errno);
  sim::ClusterLists lists;
  std::string rest;
  std::size_t bytes = 0;
  int number = 1;
  for (;;) {
    const std::size_t before = rest.size();
    rest.resize(before + kReadBytes);
    const ssize_t got = ::read(fd.get(), rest.data() + before, kReadBytes);
    if (got < 0) return errno_error(file, errno);
    rest.resize(before + static_cast<std::size_t>(got));
    bytes += static_cast<std::size_t>(got);
    if (bytes > kListsBytesMax) return invalid(file, "expected {} bytes at most", kListsBytesMax);
    std::size_t from = 0;
    for (std::size_t end = rest.find('\n', before); end != std::string::npos; end = rest.find('\n', from)) {
      SPILLWAY_TRY_VOID(add_line(lists, fmt::format("{}:{}", file, number++), rest.substr(from, end - from)));
      from = end + 1;
    }
    rest.erase(0, from);
    if (got > 0) continue;
    SPILLWAY_TRY_VOID(add_line(lists, fmt::format("{}:{}", file, number), rest));
    return import_cluster(std::move(lists));
  }
}

}  // namespace spillway::apps
