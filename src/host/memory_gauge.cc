#include "host/memory_gauge.h"

#include "host/reaction_target.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

namespace spillway::host {
namespace {

constexpr std::size_t kFileBytesMax = 16'384;

MemoryReading reading_of(Bytes limit, Bytes usage, Bytes inactive_file) {
  return {limit - std::max(Bytes{0}, usage - inactive_file), usage, inactive_file, std::nullopt};
}

}  // namespace

Result<MemoryReading> estimate_from_meminfo(std::string_view text) {
  std::optional<Bytes> total;
  std::optional<Bytes> anon;
  std::optional<Bytes> cached;
  std::optional<Bytes> buffers;
  std::optional<Bytes> swap_cached;
  std::optional<Bytes> inactive_file;
  std::optional<Bytes> available;  // kernels before 3.14 have none
  const std::array<std::pair<std::string_view, std::optional<Bytes>*>, 7> wanted = {
      {{"MemTotal:", &total},
       {"AnonPages:", &anon},
       {"Cached:", &cached},
       {"Buffers:", &buffers},
       {"SwapCached:", &swap_cached},
       {"Inactive(file):", &inactive_file},
       {"MemAvailable:", &available}}};
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    for (const auto& [key, slot] : wanted) {
      if (!line.starts_with(key)) continue;
      const std::string_view rest = line.substr(key.size());
      const std::optional<std::uint64_t> amount = parse_number(rest.substr(0, rest.rfind("kB")));
      if (amount && *amount < (std::uint64_t{1} << 50)) *slot = kibibytes(static_cast<std::int64_t>(*amount));
    }
  }
  for (const auto& [key, slot] : wanted)
    if (!*slot && slot != &available) return invalid("/proc/meminfo", "line \"{}\" is missing or malformed", key);
  const auto sum =
      anon.value_or(Bytes{}) + cached.value_or(Bytes{}) + buffers.value_or(Bytes{}) + swap_cached.value_or(Bytes{});
  MemoryReading reading = reading_of(total.value_or(Bytes{}), sum, inactive_file.value_or(Bytes{}));
  reading.mem_available = available;
  return reading;
}

Result<MemoryGauge> MemoryGauge::open(const CgroupDir& cgroup, Bytes limit) {
  MemoryGauge gauge;
  const bool v1 = cgroup.version() == CgroupVersion::kV1;
  const int directory = cgroup.fd(Controller::kMemory);
  gauge.inactive_key_ = v1 ? "total_inactive_file " : "inactive_file ";
  gauge.limit_ = limit;
  Result<HeldFile> usage = HeldFile::open_at(directory, v1 ? "memory.usage_in_bytes" : "memory.current");
  if (!usage && !v1 && cgroup.path().empty()) {
    SPILLWAY_TRY(meminfo, HeldFile::open_at(AT_FDCWD, "/proc/meminfo"));
    gauge.meminfo_ = std::move(meminfo);
    return gauge;
  }
  if (!usage) return usage.error();
  SPILLWAY_TRY(stat, HeldFile::open_at(directory, "memory.stat"));
  gauge.usage_ = *std::move(usage);
  gauge.stat_ = std::move(stat);
  return gauge;
}

Result<MemoryReading> MemoryGauge::read() const {
  std::array<char, kFileBytesMax> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  if (meminfo_) {
    SPILLWAY_TRY(text, meminfo_.read(buffer.data(), buffer.size()));
    return estimate_from_meminfo(text);
  }
  SPILLWAY_TRY(stat, stat_.read(buffer.data(), buffer.size()));
  const std::optional<Bytes> inactive_file = find_memory_stat(stat, inactive_key_);
  if (!inactive_file) return invalid("memory.stat", "no line \"{}\"", inactive_key_);
  SPILLWAY_TRY(text, usage_.read(buffer.data(), buffer.size()));
  const std::optional<std::uint64_t> usage = parse_number(text);
  if (!usage) return invalid("memory usage", "\"{}\" is not a number", text);
  return reading_of(limit_, Bytes{static_cast<std::int64_t>(*usage)}, *inactive_file);
}

Result<RootGauge> RootGauge::open(const CgroupDir& root, Bytes machine_memory) {
  RootGauge gauge;
  gauge.memory_ = machine_memory;
  SPILLWAY_TRY(stat, HeldFile::open_at(root.fd(Controller::kMemory), "memory.stat"));
  gauge.stat_ = std::move(stat);
  return gauge;
}

Result<MemoryReading> RootGauge::read() const {
  std::array<char, kFileBytesMax> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  SPILLWAY_TRY(text, stat_.read(buffer.data(), buffer.size()));
  const auto anon = find_memory_stat(text, "anon ");
  const auto file = find_memory_stat(text, "file ");
  const auto inactive_file = find_memory_stat(text, "inactive_file ");
  if (!anon || !file || !inactive_file) return invalid("memory.stat", "anon, file or inactive_file missing");
  return reading_of(memory_, *anon + *file, *inactive_file);
}

}  // namespace spillway::host
