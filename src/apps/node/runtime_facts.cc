#include "apps/node/runtime_facts.h"

#include "base/file.h"
#include "base/unique_fd.h"

#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apps {
namespace {

constexpr std::array<std::string_view, 6> kProgramDirectories = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                                                 "/usr/bin",        "/sbin",          "/bin"};
constexpr std::array<std::string_view, 2> kPluginDirectories = {kUsualPluginsDirectory, "/opt/cni/bin"};
constexpr std::array<std::string_view, 3> kPluginsNeeded = {"host-local", "loopback", "ptp"};
constexpr std::array<std::string_view, 3> kUsualSockets = {"/run/containerd/containerd.sock", "/run/crio/crio.sock",
                                                           "/run/k3s/containerd/containerd.sock"};
constexpr std::string_view kShim = "containerd-shim-runc-v2";

bool is_program(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

/// Directories in the order of a search: PATH, then the usual ones, which a user's PATH may lack.
std::vector<std::string> program_directories() {
  std::vector<std::string> made;
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? std::string_view() : std::string_view(path);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (rest.starts_with('/')) made.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  made.insert(made.end(), kProgramDirectories.begin(), kProgramDirectories.end());
  return made;
}

std::string find_program(const std::vector<std::string>& directories, std::string_view name) {
  for (const std::string& each : directories) {
    std::string path = each + "/" + std::string(name);
    if (is_program(path)) return path;
  }
  return {};
}

/// True if a process listens on the socket.
bool is_listening(std::string_view path) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!fd || path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::string find_plugins() {
  for (const std::string_view each : kPluginDirectories) {
    const auto has = [each](std::string_view name) { return is_program(std::string(each) + "/" + std::string(name)); };
    if (std::ranges::all_of(kPluginsNeeded, has)) return std::string(each);
  }
  return {};
}

checkup::RuntimeWish wish_of(const cli::RuntimeArgs& args) {
  if (args.wanted == "auto") return checkup::RuntimeWish::kAuto;
  if (args.wanted == "containerd") return checkup::RuntimeWish::kContainerd;
  return args.wanted == "process" ? checkup::RuntimeWish::kProcess : checkup::RuntimeWish::kSocket;
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

/// True if a layer of a container cannot be stacked on others there: overlayfs is no base of another one.
bool is_on_overlay(std::filesystem::path path) {
  std::error_code gone;
  while (!std::filesystem::exists(path, gone) && path.has_relative_path()) path = path.parent_path();
  struct statfs fs{};
  return ::statfs(path.c_str(), &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/// Without CAP_SYS_RESOURCE a process cannot have a lower OOM score than its parent.
bool may_lower_oom_scores() {
  const auto status = read_file("/proc/self/status");
  if (!status) return true;
  constexpr std::string_view kKey = "CapEff:\t";
  const std::size_t at = status->find(kKey);
  if (at == std::string::npos) return true;
  std::uint64_t bits = 0;
  const char* const begin = status->data() + at + kKey.size();
  std::from_chars(begin, status->data() + status->size(), bits, 16);
  return (bits >> CAP_SYS_RESOURCE & 1U) != 0;
}

}  // namespace

host::DaemonSettings read_daemon_settings(const checkup::RuntimeFacts& facts, const std::string& data_dir,
                                          std::string cni_configuration) {
  return {.containerd = facts.containerd,
          .shim = facts.shim,
          .low_level = facts.low_level,
          .cni_configuration = std::move(cni_configuration),
          .cni_programs = facts.plugins_directory.empty() ? kUsualPluginsDirectory : facts.plugins_directory,
          .sandbox_image = {},
          .snapshotter = is_on_overlay(data_dir) ? "native" : "overlayfs",
          .lowers_oom_scores = may_lower_oom_scores()};
}

checkup::RuntimeFacts read_runtime_facts(const cli::RuntimeArgs& args, std::string configured) {
  const std::vector<std::string> directories = program_directories();
  checkup::RuntimeFacts facts;
  facts.wish = wish_of(args);
  if (facts.wish == checkup::RuntimeWish::kSocket) facts.wished_socket = args.wanted;
  facts.configured = std::move(configured);
  facts.is_root = ::geteuid() == 0;
  facts.containerd = args.containerd.empty() ? find_program(directories, "containerd") : absolute(args.containerd);
  facts.low_level = args.runc.empty() ? find_program(directories, "runc") : absolute(args.runc);
  if (!facts.containerd.empty()) {
    const std::string beside = std::filesystem::path(facts.containerd).parent_path().string();
    facts.shim = find_program({beside}, kShim);
    if (facts.shim.empty()) facts.shim = find_program(directories, kShim);
  }
  facts.plugins_directory = find_plugins();
  const auto running = std::ranges::find_if(kUsualSockets, is_listening);
  if (running != kUsualSockets.end()) facts.running_socket = *running;
  return facts;
}

}  // namespace spillway::apps
