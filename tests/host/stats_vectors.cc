// Contents of cgroup files, and the figures of the Summary that follow.
#include "host/cgroup/cpu_stat.h"
#include "host/cgroup/memory_stat.h"
#include "support/vectors.h"

#include <charconv>

namespace spillway::host {
namespace {

using api::Json;
using support::Mismatch;

std::optional<std::string> file_of(const Json& row, std::string_view name) {
  const Json* text = row.at({"input", "files", name});
  return text != nullptr && text->if_string() != nullptr ? std::optional(*text->if_string()) : std::nullopt;
}

Json decimal(std::optional<std::uint64_t> value) {
  return value ? Json(fmt::format("{}", *value)) : Json(nullptr);
}

std::optional<Mismatch> check_memory(const Json& row) {
  const bool v1 = row.at({"input", "cgroupVersion"})->if_int64() == 1;
  const bool is_root = row.at({"input", "isRoot"})->if_bool().value_or(false);
  const MemoryFiles files{.usage = file_of(row, v1 ? "memory.usage_in_bytes" : "memory.current"),
                          .stat = file_of(row, "memory.stat"),
                          .limit = file_of(row, v1 ? "memory.limit_in_bytes" : "memory.max"),
                          .use_hierarchy = file_of(row, "memory.use_hierarchy"),
                          .swap_usage = file_of(row, "memory.swap.current"),
                          .swap_limit = file_of(row, v1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max")};
  std::optional<MemInfo> machine;
  if (is_root) {
    const Result<MemInfo> parsed = parse_meminfo(row.string_at({"input", "procMeminfo"}));
    if (!parsed) return Mismatch{"meminfo", parsed.error().text()};
    machine = *parsed;
  }
  const Result<CgroupMemory> memory =
      compute_memory(v1 ? CgroupVersion::kV1 : CgroupVersion::kV2, files, machine ? &*machine : nullptr);
  if (row.find("readError") != nullptr)
    return memory ? std::optional(Mismatch{to_text(*row.find("readError")), "no error"}) : std::nullopt;
  if (!memory) return Mismatch{to_text(*row.find("summary")), memory.error().text()};
  const api::MemoryStats stats = to_memory_stats(*memory, WallTime{});
  const api::SwapStats swap = to_swap_stats(*memory, WallTime{});
  const Json got = Json::object({{"availableBytes", decimal(stats.available_bytes)},
                                 {"usageBytes", decimal(stats.usage_bytes)},
                                 {"workingSetBytes", decimal(stats.working_set_bytes)},
                                 {"rssBytes", decimal(stats.rss_bytes)},
                                 {"pageFaults", decimal(stats.page_faults)},
                                 {"majorPageFaults", decimal(stats.major_page_faults)},
                                 {"swapAvailableBytes", decimal(swap.available_bytes)},
                                 {"swapUsageBytes", decimal(swap.usage_bytes)}});
  if (row.find("limit") != nullptr && *row.find("limit") != decimal(memory->limit_bytes))
    return Mismatch{to_text(*row.find("limit")), to_text(decimal(memory->limit_bytes))};
  return support::compare(*row.find("summary"), got);
}

Result<CpuSample> sample_of(const Json& row, std::string_view which, bool v1) {
  const std::string_view nanos = row.string_at({which, "timeNanos"});
  CpuSample sample;
  std::from_chars(nanos.data(), nanos.data() + nanos.size(), sample.at_nanos);
  const std::string_view text = row.string_at({which, "files", v1 ? "cpuacct.usage" : "cpu.stat"});
  SPILLWAY_TRY(usage, v1 ? parse_cpuacct_usage(text) : parse_cpu_stat(text));
  sample.usage = usage;
  return sample;
}

std::optional<Mismatch> check_cpu(const Json& row) {
  const bool v1 = row.find("cgroupVersion")->if_int64() == 1;
  const Result<CpuSample> earlier = sample_of(row, "sample1", v1);
  const Result<CpuSample> later = sample_of(row, "sample2", v1);
  if (!earlier || !later) return Mismatch{"two samples", "unreadable"};
  const Result<std::uint64_t> rate = compute_cpu_rate(*earlier, *later);
  const Json got = Json::object({{"rateError", rate ? Json(nullptr) : Json(rate.error().message)},
                                 {"usageNanoCores", decimal(rate ? *rate : 0)},
                                 {"usageCoreNanoSeconds", decimal(later->usage.total_nanos)}});
  const Json want = Json::object({{"rateError", *row.find("rateError")},
                                  {"usageNanoCores", *row.find("usageNanoCores")},
                                  {"usageCoreNanoSeconds", *row.find("usageCoreNanoSeconds")}});
  return support::compare(want, got);
}

const bool kMemory = support::add_vector_check("node-agent/memory_stats", check_memory);
const bool kCpu = support::add_vector_check("node-agent/cpu_stats", check_cpu);

}  // namespace
}  // namespace spillway::host
