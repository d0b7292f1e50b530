#include "host/reaction/memory_gauge.h"

#include "host/reaction/reaction_target.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

namespace spillway::host {
namespace {

constexpr std::size_t kFileBytesMax = 16'384;
constexpr std::size_t kMeminfoBytesMax = 4096;

MemoryReading reading_of(Bytes limit, Bytes usage, Bytes inactive_file) {
  return {.available = limit - std::max(Bytes{0}, usage - inactive_file),
          .usage = usage,
          .inactive_file = inactive_file,
          .limit = limit};
}

constexpr std::uint64_t kNoLimitBytes = std::uint64_t{1} << 62;

/// The only number in a file; nullopt: the file does not exist, or has no limit.
std::optional<Bytes> read_amount(const HeldFile& file) {
  std::array<char, 64> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  if (!file) return std::nullopt;
  const auto text = file.read(buffer.data(), buffer.size());
  const auto amount = text ? parse_number(*text) : std::nullopt;
  if (!amount || *amount > kNoLimitBytes) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(*amount)};
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
  std::optional<Bytes> swap_free;
  const std::array<std::pair<std::string_view, std::optional<Bytes>*>, 8> wanted = {
      {{"MemTotal:", &total},
       {"AnonPages:", &anon},
       {"Cached:", &cached},
       {"Buffers:", &buffers},
       {"SwapCached:", &swap_cached},
       {"Inactive(file):", &inactive_file},
       {"MemAvailable:", &available},
       {"SwapFree:", &swap_free}}};
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
    if (!*slot && slot != &available && slot != &swap_free)
      return invalid("/proc/meminfo", "line \"{}\" is missing or malformed", key);
  const auto sum =
      anon.value_or(Bytes{}) + cached.value_or(Bytes{}) + buffers.value_or(Bytes{}) + swap_cached.value_or(Bytes{});
  MemoryReading reading = reading_of(total.value_or(Bytes{}), sum, inactive_file.value_or(Bytes{}));
  reading.mem_available = available;
  reading.swap_left = swap_free;
  return reading;
}

std::optional<Bytes> MemoryReading::left_by(eviction::MemoryEstimator by) const noexcept {
  switch (by) {
    case eviction::MemoryEstimator::kWorkingSet:
      return available;
    case eviction::MemoryEstimator::kAvailable:
      return mem_available;
    case eviction::MemoryEstimator::kWorkingSetAndSwap:
      return swap_left ? std::optional(available + *swap_left) : std::nullopt;
  }
  return std::nullopt;
}

Result<MemoryGauge> MemoryGauge::open(const CgroupDir& cgroup, Bytes limit) {
  MemoryGauge gauge;
  gauge.v1_ = cgroup.version() == CgroupVersion::kV1;
  gauge.machine_ = cgroup.path().empty();
  gauge.limit_ = limit;
  const int directory = cgroup.fd(Controller::kMemory);
  SPILLWAY_TRY(meminfo, HeldFile::open_at(AT_FDCWD, "/proc/meminfo"));
  gauge.meminfo_ = std::move(meminfo);
  Result<HeldFile> usage = HeldFile::open_at(directory, gauge.v1_ ? "memory.usage_in_bytes" : "memory.current");
  if (!usage && !gauge.v1_ && gauge.machine_) return gauge;
  if (!usage) return usage.error();
  SPILLWAY_TRY(stat, HeldFile::open_at(directory, "memory.stat"));
  gauge.usage_ = *std::move(usage);
  gauge.stat_ = std::move(stat);
  // Absent where the kernel does not account swap.
  auto swap_max = HeldFile::open_at(directory, gauge.v1_ ? "memory.memsw.limit_in_bytes" : "memory.swap.max");
  if (swap_max) gauge.swap_max_ = *std::move(swap_max);
  if (gauge.v1_) return gauge;
  auto swap = HeldFile::open_at(directory, "memory.swap.current");
  if (swap) gauge.swap_ = *std::move(swap);
  return gauge;
}

Result<MemoryGauge> MemoryGauge::open_with_own_limit(const CgroupDir& cgroup, Bytes limit) {
  SPILLWAY_TRY(gauge, open(cgroup, limit));
  const bool v1 = cgroup.version() == CgroupVersion::kV1;
  SPILLWAY_TRY(own, HeldFile::open_at(cgroup.fd(Controller::kMemory), v1 ? "memory.limit_in_bytes" : "memory.max"));
  gauge.own_limit_ = std::move(own);
  return gauge;
}

Result<MemoryReading> MemoryGauge::read(Figures figures) const {
  std::array<char, kFileBytesMax> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  if (!usage_) {
    SPILLWAY_TRY(text, meminfo_.read(buffer.data(), buffer.size()));
    return estimate_from_meminfo(text);
  }
  const std::string_view key = v1_ ? "total_inactive_file " : "inactive_file ";
  SPILLWAY_TRY(stat, stat_.read(buffer.data(), buffer.size()));
  const std::optional<Bytes> inactive_file = find_memory_stat(stat, key);
  if (!inactive_file) return invalid("memory.stat", "no line \"{}\"", key);
  std::array<char, 64> number;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  SPILLWAY_TRY(text, usage_.read(number.data(), number.size()));
  const std::optional<std::uint64_t> usage = parse_number(text);
  if (!usage) return invalid("memory usage", "\"{}\" is not a number", text);
  const Bytes limit = std::min(limit_, read_amount(own_limit_).value_or(limit_));
  MemoryReading reading = reading_of(limit, Bytes{static_cast<std::int64_t>(*usage)}, *inactive_file);
  if (figures == Figures::kEverything) read_beside(reading, stat);
  return reading;
}

void MemoryGauge::read_beside(MemoryReading& reading, std::string_view stat) const {
  std::array<char, kMeminfoBytesMax> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::optional<MemoryReading> machine;
  if (const auto text = meminfo_.read(buffer.data(), buffer.size())) {
    if (const auto read = estimate_from_meminfo(*text)) machine = *read;
  }
  if (machine_) {
    if (!machine) return;
    reading.mem_available = machine->mem_available;
    reading.swap_left = machine->swap_left;
    return;
  }
  const auto active_file = find_memory_stat(stat, v1_ ? "total_active_file " : "active_file ");
  const Bytes slab = find_memory_stat(stat, "slab_reclaimable ").value_or(Bytes{});  // version 1 has no such line
  if (active_file)
    reading.mem_available =
        std::max(Bytes{}, reading.limit - reading.usage + reading.inactive_file + *active_file + slab);
  reading.swap_left = swap_left_of_cgroup(reading.limit, stat);
  if (!machine || !machine->swap_left) return;
  reading.swap_left = std::min(reading.swap_left.value_or(*machine->swap_left), *machine->swap_left);
}

/// nullopt: the cgroup has no limit of its own.
std::optional<Bytes> MemoryGauge::swap_left_of_cgroup(Bytes limit, std::string_view stat) const {
  const std::optional<Bytes> most = read_amount(swap_max_);
  if (!most) return std::nullopt;
  if (v1_) {
    const auto swapped = find_memory_stat(stat, "total_swap ");
    return swapped ? std::optional(*most - limit - *swapped) : std::nullopt;
  }
  const std::optional<Bytes> swapped = read_amount(swap_);
  return swapped ? std::optional(*most - *swapped) : std::nullopt;
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
