#include "host/observation/machine_info.h"

#include "agent/contract/blind_zone.h"
#include "host/disk/fs_probe.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pod_namespaces.h"
#include "host/kernel/proc_files.h"
#include "host/observation/cpu_layout.h"
#include "host/reaction/memory_gauge.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

/// The first line of the first file that is not empty.
std::string first_line(std::initializer_list<const char*> paths) {
  for (const char* path : paths) {
    const Result<std::string> text = read_file(path);
    if (!text) continue;
    std::string_view rest = *text;
    const std::string_view line = take_line(rest);
    if (!line.empty()) return std::string(line);
  }
  return {};
}

/// Pages of every size the kernel has, smallest first.
std::vector<agent::HugePages> read_huge_pages() {
  constexpr std::string_view kPrefix = "hugepages-";
  constexpr std::string_view kSuffix = "kB";
  std::vector<agent::HugePages> sizes;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/sys/kernel/mm/hugepages", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const auto size =
        parse_number(std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
    const auto text = read_file(it->path().string() + "/nr_hugepages");
    const auto pages = text ? parse_number(*text) : std::nullopt;
    if (!size || !pages) continue;
    sizes.push_back({static_cast<std::int64_t>(*size), static_cast<std::int64_t>(*pages)});
  }
  std::ranges::sort(sizes, {}, &agent::HugePages::page_size_kib);
  return sizes;
}

Bytes measured_blind_zone(const NodeSlice& slice) {
  if (!slice.is_host()) return {};
  const auto text = read_file("/proc/meminfo");
  if (!text) return {};
  const auto reading = estimate_from_meminfo(*text);
  if (!reading || !reading->mem_available) return {};
  return std::max(Bytes{}, reading->available - *reading->mem_available);
}

}  // namespace

std::string architecture_name(std::string_view machine) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv6l", "arm"},         {"armv7l", "arm"},
      {"i386", "386"},     {"i686", "386"},      {"loongarch64", "loong64"}};
  for (const auto& [kernel, name] : kNames) {
    if (machine == kernel) return std::string(name);
  }
  return std::string(machine);  // riscv64, ppc64le, s390x: same name in Go
}

std::optional<std::string> parse_default_interface(std::string_view routes) {
  take_line(routes);  // the heading
  while (!routes.empty()) {
    const std::string_view line = take_line(routes);
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) continue;
    const std::string_view rest = line.substr(tab + 1);
    if (rest.starts_with("00000000\t")) return std::string(line.substr(0, tab));
  }
  return std::nullopt;
}

std::vector<std::string> machine_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, ::freeifaddrs);
  std::vector<std::string> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET6_ADDRSTRLEN> text = {};
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
    } else {
      continue;
    }
    found.emplace_back(text.data());
  }
  std::ranges::sort(found);
  const auto repeats = std::ranges::unique(found);
  found.erase(repeats.begin(), repeats.end());
  return found;
}

std::string machine_address() {
  const Result<std::string> routes = read_file("/proc/net/route");
  const std::optional<std::string> wanted = routes ? parse_default_interface(*routes) : std::nullopt;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "127.0.0.1";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, ::freeifaddrs);
  std::string found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0 || (entry->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> text = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    if (found.empty()) found = text.data();
    if (wanted && *wanted == entry->ifa_name) return text.data();
  }
  return found.empty() ? "127.0.0.1" : found;
}

Result<agent::MachineInfo> read_machine_info(const NodeSlice& slice, const std::string& state_dir) {
  agent::MachineInfo info;
  info.machine_id = first_line({"/etc/machine-id", "/var/lib/dbus/machine-id"});
  info.system_uuid = first_line({"/sys/class/dmi/id/product_uuid"});
  if (info.system_uuid.empty()) info.system_uuid = info.machine_id;
  info.boot_id = first_line({"/proc/sys/kernel/random/boot_id"});
  utsname names = {};
  if (::uname(&names) != 0) return errno_error("uname", errno);
  info.kernel_version = names.release;
  info.hostname = names.nodename;
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    const Result<std::string> text = read_file(path);
    if (text && info.os_image.empty()) info.os_image = parse_pretty_name(*text).value_or("");
  }
  info.architecture = architecture_name(names.machine);
  info.internal_ip = machine_address();
  info.addresses = machine_addresses();
  info.container_runtime_version = "process://0.2.0";
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (processors <= 0) return errno_error("sysconf", errno);
  info.cpu_milli = std::int64_t{processors} * 1000;

  info.memory = slice.memory();
  if (auto layout = read_cpu_layout("/sys/devices/system", info.memory,
                                    slice.is_host() ? std::nullopt : std::optional(info.memory))) {
    info.cpus = std::move(layout->cpus);
    info.numa = std::move(layout->numa);
  }
  info.shared_namespaces.ipc = !PodNamespaces::create({.ipc = true});
  info.network_on_request = PodNamespaces::create({.network = true}).has_value();
  SPILLWAY_TRY(limits, read_process_limits());
  info.cgroup_version = slice.measured().version() == CgroupVersion::kV1 ? 1 : 2;
  if (slice.is_host()) info.huge_pages = read_huge_pages();
  info.pids_max = slice.is_host() ? limits.max_pid : slice.options().pids_max.value_or(limits.max_pid);
  SPILLWAY_TRY(fs, read_fs(state_dir));
  info.ephemeral_storage = Bytes{static_cast<std::int64_t>(fs.capacity_bytes.value_or(0))};
  return info;
}

bool has_huge_pages() {
  return std::ranges::any_of(read_huge_pages(), [](const agent::HugePages& each) { return each.pages > 0; });
}

void set_blind_zones(const NodeSlice& slice, agent::EvictionOptions& options) {
  const bool blind = options.memory_watch.estimator != eviction::MemoryEstimator::kAvailable;
  options.blind_zone = blind ? measured_blind_zone(slice) : Bytes{};
  options.blind_zone_ahead = slice.is_host() ? agent::oom_blind_zone(slice.memory()) : Bytes{};
}

}  // namespace spillway::host
