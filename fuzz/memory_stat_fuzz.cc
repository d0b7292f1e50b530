// Any contents of memory.stat, its neighbours and /proc/meminfo: refused with a line, or figures without surprise.
#include "base/check.h"
#include "host/cgroup/memory_stat.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace spillway;  // NOLINT(google-build-using-namespace): one small program

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // The first byte says which files exist; they are cut at NUL.
  const std::uint8_t present = data[0];
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto take = [&rest](bool exists) -> std::optional<std::string> {
    if (!exists) return std::nullopt;
    const std::string_view file = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), file.size() + 1));
    return std::string(file);
  };
  host::MemoryFiles files;
  files.stat = take((present & 1) != 0);
  files.usage = take((present & 2) != 0);
  files.limit = take((present & 4) != 0);
  files.use_hierarchy = take((present & 8) != 0);
  files.swap_usage = take((present & 16) != 0);
  files.swap_limit = take((present & 32) != 0);
  const auto machine = host::parse_meminfo(rest);
  SPILLWAY_CHECK(machine || !machine.error().text().empty());
  static_cast<void>(host::parse_oom_kills(rest));
  for (const auto version : {host::CgroupVersion::kV1, host::CgroupVersion::kV2}) {
    const auto memory = host::compute_memory(version, files, machine ? &*machine : nullptr);
    if (!memory) {
      SPILLWAY_CHECK(!memory.error().text().empty());
      continue;
    }
    SPILLWAY_CHECK(memory->working_set_bytes <= memory->usage_bytes);
    const api::MemoryStats stats = host::to_memory_stats(*memory, WallTime{});
    SPILLWAY_CHECK(!stats.working_set_bytes || *stats.working_set_bytes == memory->working_set_bytes);
  }
  return 0;
}
