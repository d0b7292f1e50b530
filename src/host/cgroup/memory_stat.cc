#include "host/cgroup/memory_stat.h"

#include "host/kernel/kernel_file.h"

#include <unistd.h>

#include <array>
#include <span>

namespace spillway::host {
namespace {

constexpr std::string_view kOomKillKey = "oom_kill ";
constexpr std::uint64_t kUnlimitedBytes = std::uint64_t{1} << 62;

/// Parses a number; negative ones count as 0, as in upstream's parser of cgroup files.
Result<std::uint64_t> parse_clamped(std::string_view at, std::string_view text) {
  if (const std::optional<std::uint64_t> value = parse_number(text)) return *value;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '-' && parse_number(text.substr(first + 1))) return 0;
  return invalid(at, "\"{}\" is not a number", text.substr(0, 64));
}

/// Parses a limit; "max" is the largest number.
Result<std::uint64_t> parse_limit(std::string_view at, std::string_view text) {
  if (text.starts_with("max")) return ~std::uint64_t{0};
  return parse_clamped(at, text);
}

constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};  // larger than any counter of a kernel

struct Wanted {
  std::string_view key;
  std::uint64_t* slot;
};

Outcome parse_stat_lines(std::string_view text, std::span<const Wanted> wanted) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos || line.find(' ', blank + 1) != std::string_view::npos)
      return invalid("memory.stat", "line \"{}\" is not in key value format", line.substr(0, 64));
    SPILLWAY_TRY(value, parse_clamped("memory.stat", line.substr(blank + 1)));
    for (const Wanted& entry : wanted)
      if (line.substr(0, blank) == entry.key) *entry.slot = value;
  }
  return {};
}

Result<std::uint64_t> must_parse(std::string_view at, const std::optional<std::string>& text) {
  if (!text) return Error{ErrorCode::kNotFound, "no such file", std::string(at)};
  return parse_limit(at, *text);
}

Outcome parse_v1_limits(const MemoryFiles& files, CgroupMemory& memory) {
  SPILLWAY_TRY(limit, must_parse("memory.limit_in_bytes", files.limit));
  memory.limit_bytes = limit;
  if (files.swap_limit) {
    SPILLWAY_TRY(swap_limit, parse_limit("memory.memsw.limit_in_bytes", *files.swap_limit));
    memory.swap_limit_bytes = swap_limit;
  }
  return {};
}

Result<CgroupMemory> compute_v1(const MemoryFiles& files) {
  CgroupMemory memory;
  std::uint64_t rss = 0;
  std::uint64_t total_rss = 0;
  std::uint64_t swap = 0;
  std::uint64_t total_swap = 0;
  std::uint64_t refaults = kNotCounted;
  const std::array<Wanted, 9> wanted = {{{"rss", &rss},
                                         {"total_rss", &total_rss},
                                         {"swap", &swap},
                                         {"total_swap", &total_swap},
                                         {"pgfault", &memory.page_faults},
                                         {"pgmajfault", &memory.major_page_faults},
                                         {"total_inactive_file", &memory.inactive_file_bytes},
                                         {"total_active_file", &memory.active_file_bytes},
                                         {"total_workingset_refault_file", &refaults}}};
  if (!files.stat) {  // upstream takes a cgroup without memory.stat for an empty one
    SPILLWAY_TRY_VOID(parse_v1_limits(files, memory));
    return memory;
  }
  SPILLWAY_TRY_VOID(parse_stat_lines(*files.stat, wanted));
  SPILLWAY_TRY(hierarchy, must_parse("memory.use_hierarchy", files.use_hierarchy));
  SPILLWAY_TRY(usage, must_parse("memory.usage_in_bytes", files.usage));
  memory.usage_bytes = usage;
  memory.rss_bytes = hierarchy == 1 ? total_rss : rss;
  memory.swap_bytes = hierarchy == 1 ? total_swap : swap;
  if (refaults != kNotCounted) memory.refaulted_file_pages = refaults;
  SPILLWAY_TRY_VOID(parse_v1_limits(files, memory));
  return memory;
}

Result<CgroupMemory> compute_v2(const MemoryFiles& files, const MemInfo* machine) {
  CgroupMemory memory;
  std::uint64_t file = 0;
  std::uint64_t refaults = kNotCounted;
  const std::array<Wanted, 7> wanted = {{{"anon", &memory.rss_bytes},
                                         {"file", &file},
                                         {"inactive_file", &memory.inactive_file_bytes},
                                         {"active_file", &memory.active_file_bytes},
                                         {"workingset_refault_file", &refaults},
                                         {"pgfault", &memory.page_faults},
                                         {"pgmajfault", &memory.major_page_faults}}};
  const Outcome parsed = parse_stat_lines(files.stat.value_or(std::string()), wanted);
  if (machine != nullptr && !files.usage) {  // the root has neither memory.current nor memory.swap.current
    if (!parsed) return memory;              // as upstream: the figures read so far, without usage
    memory.usage_bytes = memory.rss_bytes + file;
    if (machine->swap_total_bytes && machine->swap_free_bytes)
      memory.swap_bytes = *machine->swap_total_bytes - *machine->swap_free_bytes;
    return memory;
  }
  if (!parsed) return parsed.error();
  if (refaults != kNotCounted) memory.refaulted_file_pages = refaults;
  SPILLWAY_TRY(usage, must_parse("memory.current", files.usage));
  SPILLWAY_TRY(limit, must_parse("memory.max", files.limit));
  memory.usage_bytes = usage;
  memory.limit_bytes = limit;
  if (files.swap_usage) {
    SPILLWAY_TRY(swap, parse_clamped("memory.swap.current", *files.swap_usage));
    memory.swap_bytes = swap;
  }
  if (files.swap_limit) {
    SPILLWAY_TRY(swap_limit, parse_limit("memory.swap.max", *files.swap_limit));
    memory.swap_limit_bytes = swap_limit;
  }
  return memory;
}

/// nullopt if the file is absent; other errors are errors.
Result<std::optional<std::string>> read_if_present(const CgroupDir& cgroup, const std::string& file) {
  Result<std::string> text = cgroup.read(Controller::kMemory, file);
  if (text) return std::optional(*std::move(text));
  if (text.error().code == ErrorCode::kNotFound) return std::optional<std::string>();
  return text.error();
}

}  // namespace

Result<MemInfo> parse_meminfo(std::string_view text) {
  MemInfo info;
  const std::array<std::pair<std::string_view, std::optional<std::uint64_t>*>, 4> wanted = {
      {{"MemTotal:", &info.total_bytes},
       {"MemAvailable:", &info.available_bytes},
       {"SwapTotal:", &info.swap_total_bytes},
       {"SwapFree:", &info.swap_free_bytes}}};
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    for (const auto& [key, slot] : wanted) {
      if (!line.starts_with(key)) continue;
      const std::string_view rest = line.substr(key.size());
      const std::optional<std::uint64_t> kibibytes = parse_number(rest.substr(0, rest.rfind("kB")));
      if (!kibibytes || *kibibytes > (~std::uint64_t{0} >> 10))
        return invalid("/proc/meminfo", "line \"{}\" is not \"{} <number> kB\"", line.substr(0, 64), key);
      *slot = *kibibytes * 1024;
    }
  }
  return info;
}

Result<CgroupMemory> compute_memory(CgroupVersion version, const MemoryFiles& files, const MemInfo* machine) {
  SPILLWAY_TRY(memory, version == CgroupVersion::kV1 ? compute_v1(files) : compute_v2(files, machine));
  memory.working_set_bytes =
      memory.usage_bytes > memory.inactive_file_bytes ? memory.usage_bytes - memory.inactive_file_bytes : 0;
  if (machine != nullptr) {
    if (!machine->total_bytes || !machine->swap_total_bytes)
      return Error{ErrorCode::kInvalid, "MemTotal or SwapTotal missing", "/proc/meminfo"};
    memory.limit_bytes = *machine->total_bytes;
    memory.swap_limit_bytes = *machine->swap_total_bytes;
  }
  return memory;
}

std::optional<std::uint64_t> available_below(std::uint64_t limit_bytes, std::uint64_t used_bytes) {
  if (limit_bytes > kUnlimitedBytes) return std::nullopt;
  return limit_bytes - used_bytes;
}

api::MemoryStats to_memory_stats(const CgroupMemory& memory, WallTime at) {
  return {.time = at,
          .available_bytes = available_below(memory.limit_bytes, memory.working_set_bytes),
          .usage_bytes = memory.usage_bytes,
          .working_set_bytes = memory.working_set_bytes,
          .rss_bytes = memory.rss_bytes,
          .page_faults = memory.page_faults,
          .major_page_faults = memory.major_page_faults};
}

api::FileCache to_file_cache(const CgroupMemory& memory) {
  api::FileCache cache{.inactive_bytes = memory.inactive_file_bytes, .active_bytes = memory.active_file_bytes};
  if (memory.refaulted_file_pages)
    cache.refaulted_bytes = *memory.refaulted_file_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return cache;
}

api::SwapStats to_swap_stats(const CgroupMemory& memory, WallTime at) {
  return {.time = at,
          .available_bytes = available_below(memory.swap_limit_bytes, memory.swap_bytes),
          .usage_bytes = memory.swap_bytes};
}

std::optional<std::uint64_t> parse_oom_kills(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with(kOomKillKey)) return parse_number(line.substr(kOomKillKey.size()));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> read_oom_kills(const CgroupDir& cgroup) {
  const bool v1 = cgroup.version() == CgroupVersion::kV1;
  const Result<std::string> text = cgroup.read(Controller::kMemory, v1 ? "memory.oom_control" : "memory.events");
  if (!text) return std::nullopt;
  return parse_oom_kills(*text);
}

Result<CgroupMemory> read_memory(const CgroupDir& cgroup, const MemInfo* machine) {
  const bool v1 = cgroup.version() == CgroupVersion::kV1;
  MemoryFiles files;
  SPILLWAY_TRY(usage, read_if_present(cgroup, v1 ? "memory.usage_in_bytes" : "memory.current"));
  SPILLWAY_TRY(stat, read_if_present(cgroup, "memory.stat"));
  SPILLWAY_TRY(limit, read_if_present(cgroup, v1 ? "memory.limit_in_bytes" : "memory.max"));
  // Stricter than upstream: a node whose usage cannot be read does not count as a node with free memory.
  if (!stat) return Error{ErrorCode::kNotFound, "no such file", cgroup.file_path(Controller::kMemory) + "/memory.stat"};
  if (!v1 && machine != nullptr) SPILLWAY_TRY_VOID(parse_stat_lines(*stat, {}));
  files.usage = std::move(usage);
  files.stat = std::move(stat);
  files.limit = std::move(limit);
  if (v1) {
    SPILLWAY_TRY(hierarchy, read_if_present(cgroup, "memory.use_hierarchy"));
    files.use_hierarchy = std::move(hierarchy);
  }
  Result<CgroupMemory> memory = compute_memory(cgroup.version(), files, machine);
  if (!memory)
    return Error{memory.error().code, memory.error().message,
                 cgroup.file_path(Controller::kMemory) + "/" + memory.error().at};
  return memory;
}

}  // namespace spillway::host
