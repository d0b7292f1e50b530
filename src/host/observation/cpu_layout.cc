#include "host/observation/cpu_layout.h"

#include "host/kernel/kernel_file.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

using admission::CpuSet;

Result<CpuSet> read_cpus(const std::string& path) {
  SPILLWAY_TRY(text, read_file(path));
  std::string_view rest = text;
  auto cpus = CpuSet::parse(take_line(rest));
  if (!cpus) return invalid(path, "{}", cpus.error().message);
  return cpus;
}

/// The number in a file of the kernel; nullopt: there is none.
std::optional<std::int64_t> read_number(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  const auto number = parse_number(*text);
  return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

/// "Node 0 MemTotal:       16275384 kB".
std::optional<std::int64_t> parse_node_memory(std::string_view meminfo) {
  constexpr std::string_view kTotal = "MemTotal:";
  while (!meminfo.empty()) {
    std::string_view line = take_line(meminfo);
    const std::size_t at = line.find(kTotal);
    if (at == std::string_view::npos) continue;
    line.remove_prefix(at + kTotal.size());
    const std::size_t end = line.rfind(" kB");
    const auto kibibytes = parse_number(line.substr(0, end));
    if (kibibytes) return static_cast<std::int64_t>(*kibibytes) * 1024;
  }
  return std::nullopt;
}

std::optional<std::vector<std::uint64_t>> parse_distances(std::string_view text) {
  std::vector<std::uint64_t> row;
  std::string_view line = take_line(text);
  while (!line.empty()) {
    const std::size_t blank = line.find(' ');
    if (const std::string_view word = line.substr(0, blank); !word.empty()) {
      const auto distance = parse_number(word);
      if (!distance) return std::nullopt;
      row.push_back(*distance);
    }
    line.remove_prefix(blank == std::string_view::npos ? line.size() : blank + 1);
  }
  return row;
}

admission::NumaMemory read_huge_pages(const std::string& node) {
  admission::NumaMemory pages;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(node + "/hugepages", error)) {
    std::string name = entry.path().filename().string();  // "hugepages-2048kB"
    constexpr std::string_view kPrefix = "hugepages-";
    if (!name.starts_with(kPrefix) || !name.ends_with("kB")) continue;
    const auto kibibytes = parse_number(name.substr(kPrefix.size(), name.size() - kPrefix.size() - 2));
    const auto count = read_number(entry.path().string() + "/nr_hugepages");
    if (!kibibytes || !count) continue;
    const auto size = static_cast<std::int64_t>(*kibibytes) * 1024;
    const bool gibi = size % (std::int64_t{1} << 30) == 0;
    pages[fmt::format("{}{}{}", kPrefix, gibi ? size >> 30 : size >> 20, gibi ? "Gi" : "Mi")] = size * *count;
  }
  return pages;
}

void count_in_proportion(admission::NumaLayout& numa, Bytes share) {
  std::int64_t total = 0;
  for (const auto& [node, memory] : numa.memory) total += memory.at("memory");
  std::int64_t left = share.count();
  for (auto it = numa.memory.begin(); it != numa.memory.end(); ++it) {
    const double part = total == 0 ? 0 : static_cast<double>(it->second.at("memory")) / static_cast<double>(total);
    const bool last = std::next(it) == numa.memory.end();
    const std::int64_t bytes = last ? left : static_cast<std::int64_t>(part * static_cast<double>(share.count()));
    left -= bytes;
    it->second = {{"memory", bytes}};
  }
}

}  // namespace

Result<CpuLayout> read_cpu_layout(const std::string& system, Bytes memory, std::optional<Bytes> share) {
  CpuLayout layout;
  SPILLWAY_TRY(online, read_cpus(system + "/cpu/online"));
  for (const int cpu : online) {
    const std::string topology = fmt::format("{}/cpu/cpu{}/topology", system, cpu);
    const auto siblings = read_cpus(topology + "/thread_siblings_list");
    const auto socket = read_number(topology + "/physical_package_id");
    layout.cpus.places[cpu] = {.core = siblings && !siblings->empty() ? *siblings->begin() : cpu,
                               .socket = static_cast<int>(socket.value_or(0)),
                               .numa = 0};
  }
  std::vector<std::vector<std::uint64_t>> distances;
  const auto nodes = read_cpus(system + "/node/online");
  for (const int node : nodes ? *nodes : CpuSet{}) {
    const std::string folder = fmt::format("{}/node/node{}", system, node);
    if (const auto cpus = read_cpus(folder + "/cpulist")) {
      for (const int cpu : *cpus) {
        if (const auto place = layout.cpus.places.find(cpu); place != layout.cpus.places.end())
          place->second.numa = node;
      }
    }
    const auto text = read_file(folder + "/meminfo");
    const auto total = text ? parse_node_memory(*text) : std::nullopt;
    if (!total) continue;
    layout.numa.memory[node] = read_huge_pages(folder);
    layout.numa.memory[node]["memory"] = *total;
    const auto row = read_file(folder + "/distance");
    if (const auto parsed = row ? parse_distances(*row) : std::nullopt) distances.push_back(*parsed);
  }
  if (layout.numa.memory.empty()) layout.numa.memory[0] = {{"memory", memory.count()}};
  if (!distances.empty() && distances.size() == layout.numa.memory.size()) layout.numa.distances = std::move(distances);
  if (share) count_in_proportion(layout.numa, *share);
  return layout;
}

}  // namespace spillway::host
