#include "host/memory_gauge.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

namespace spillway::host {
namespace {

constexpr std::size_t kFileBytesMax = 16 * 1024;

std::optional<Bytes> find_stat(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!line.starts_with(key)) continue;
    const std::optional<std::uint64_t> value = parse_number(line.substr(key.size()));
    if (!value) return std::nullopt;
    return Bytes{static_cast<std::int64_t>(*value)};
  }
  return std::nullopt;
}

MemoryReading reading_of(Bytes limit, Bytes usage, Bytes inactive_file) {
  return {limit - std::max(Bytes{0}, usage - inactive_file), usage, inactive_file};
}

}  // namespace

Result<MemoryReading> estimate_from_meminfo(std::string_view text) {
  constexpr std::array<std::string_view, 6> kKeys = {
      "MemTotal:", "AnonPages:", "Cached:", "Buffers:", "SwapCached:", "Inactive(file):"};
  std::array<std::optional<std::int64_t>, kKeys.size()> found;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      if (!line.starts_with(kKeys[i])) continue;
      const std::string_view rest = line.substr(kKeys[i].size());
      const std::optional<std::uint64_t> kibibytes = parse_number(rest.substr(0, rest.rfind("kB")));
      if (kibibytes && *kibibytes < (std::uint64_t{1} << 50)) found[i] = static_cast<std::int64_t>(*kibibytes * 1024);
    }
  }
  for (std::size_t i = 0; i < kKeys.size(); ++i)
    if (!found[i]) return invalid("/proc/meminfo", "line \"{}\" is missing or malformed", kKeys[i]);
  const Bytes usage{*found[1] + *found[2] + *found[3] + *found[4]};
  return reading_of(Bytes{*found[0]}, usage, Bytes{*found[5]});
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
  const std::optional<Bytes> inactive_file = find_stat(stat, inactive_key_);
  if (!inactive_file) return invalid("memory.stat", "no line \"{}\"", inactive_key_);
  SPILLWAY_TRY(text, usage_.read(buffer.data(), buffer.size()));
  const std::optional<std::uint64_t> usage = parse_number(text);
  if (!usage) return invalid("memory usage", "\"{}\" is not a number", text);
  return reading_of(limit_, Bytes{static_cast<std::int64_t>(*usage)}, *inactive_file);
}

}  // namespace spillway::host
