#include "host/pods/machine_resources.h"

#include "host/cgroup/memory_stat.h"
#include "host/kernel/kernel_file.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPageFolders = "/sys/kernel/mm/hugepages";
constexpr std::string_view kPageFilePrefix = "hugepages-";

std::vector<std::string> huge_page_files() {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator each(kPageFolders, error), end; !error && each != end; each.increment(error))
    files.push_back(each->path().filename().string());
  std::ranges::sort(files);
  return files;
}

}  // namespace

void read_machine_resources(const CgroupDir& kubepods, agent::ResourceFacts& facts) {
  const std::vector<std::string> files = huge_page_files();
  facts.huge_page_sizes = agent::huge_page_sizes(files);
  if (kubepods.has(Controller::kHugetlb)) {
    for (const std::string& file : files) {
      std::int64_t kibibytes = 0;
      const char* begin = file.data() + std::min(file.size(), kPageFilePrefix.size());
      if (std::from_chars(begin, file.data() + file.size(), kibibytes).ec == std::errc() && kibibytes > 0)
        facts.huge_page_bytes.push_back(kibibytes * 1024);
    }
  }
  const bool v2 = kubepods.version() == CgroupVersion::kV2;
  facts.swap_controller =
      kubepods.read(Controller::kMemory, v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes").has_value();
  if (const auto text = read_file("/proc/meminfo")) {
    const auto machine = parse_meminfo(*text);
    if (machine && machine->swap_total_bytes)
      facts.machine_swap = Bytes{static_cast<std::int64_t>(*machine->swap_total_bytes)};
  }
}

}  // namespace spillway::host
