#include "host/containerd/shims.h"

#include "host/containerd/container_list.h"
#include "host/containerd/content_store.h"
#include "host/containerd/processes.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr Duration kShimEndMax = seconds(5);  // for a killed process to go

/// The word behind `word`; empty: there is none.
std::string_view word_after(const std::vector<std::string>& words, std::string_view flag) {
  const auto found = std::ranges::find(words, flag);
  if (found == words.end() || std::next(found) == words.end()) return {};
  return *std::next(found);
}

/// nullopt: the process is no shim of this containerd.
std::optional<Shim> shim_of(const DaemonPlaces& places, pid_t pid) {
  const std::vector<std::string> words = command_line(pid);
  if (words.empty() || !fs::path(words.front()).filename().string().starts_with("containerd-shim")) return std::nullopt;
  if (word_after(words, "-address") != places.socket()) return std::nullopt;
  const auto started = start_ticks(pid);
  if (!started) return std::nullopt;
  return Shim{.pid = pid, .started_ticks = *started, .container = std::string(word_after(words, "-id"))};
}

/// Shims of all namespaces.
std::vector<Shim> all_shims(const DaemonPlaces& places) {
  std::vector<Shim> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const auto pid = parse_number(entry.path().filename().string());
    if (!pid) continue;
    if (auto shim = shim_of(places, static_cast<pid_t>(*pid))) found.push_back(*std::move(shim));
  }
  return found;
}

/// The first processes of a shim's containers: its children.
void end_children(pid_t shim) {
  const auto text = read_file(fmt::format("/proc/{}/task/{}/children", shim, shim));
  if (!text) return;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const auto pid = parse_number(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const UniqueFd process = pid ? try_open_pidfd(static_cast<pid_t>(*pid)) : UniqueFd();
    if (process) ignored(send_signal(process.get(), SIGKILL), "an ended process is the aim");
  }
}

/// Ends one shim. False: it has ended already.
bool end_shim(const DaemonPlaces& places, const Shim& shim) {
  const UniqueFd process = try_open_pidfd(shim.pid);
  if (!process || shim_of(places, shim.pid) != shim) return false;
  end_children(shim.pid);
  ignored(send_signal(process.get(), SIGKILL), "an ended process is the aim");
  has_ended_within(process.get(), kShimEndMax);
  return true;
}

}  // namespace

std::vector<Shim> find_shims(const DaemonPlaces& places) {
  std::vector<Shim> found = all_shims(places);
  std::erase_if(found, [](const Shim& each) {
    return word_after(command_line(each.pid), "-namespace") != kCriNamespace || each.container.empty();
  });
  return found;
}

void end_shims(const DaemonPlaces& places) {
  for (const Shim& each : all_shims(places)) end_shim(places, each);
}

std::vector<Shim> without_container(std::vector<Shim> shims, const std::set<std::string>& containers) {
  std::erase_if(shims, [&containers](const Shim& each) { return containers.contains(each.container); });
  return shims;
}

Result<ShimSweep> sweep_shims(const DaemonPlaces& places, const std::vector<Shim>& doubted_before) {
  std::vector<Shim> shims = find_shims(places);
  SPILLWAY_TRY(containers, list_containers(places.socket()));
  ShimSweep sweep;
  for (Shim& each : without_container(std::move(shims), containers)) {
    const bool again = std::ranges::find(doubted_before, each) != doubted_before.end();
    if (!again) {
      sweep.doubted.push_back(std::move(each));
    } else if (end_shim(places, each)) {
      sweep.ended.push_back(std::move(each));
    }
  }
  return sweep;
}

}  // namespace spillway::host
