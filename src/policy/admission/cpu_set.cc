#include "policy/admission/cpu_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

namespace spillway::admission {
namespace {

std::optional<int> parse_cpu(std::string_view text) {
  int cpu = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (failed != std::errc() || end != text.data() + text.size() || cpu < 0 || cpu >= kCpusMax) return std::nullopt;
  return cpu;
}

}  // namespace

Result<CpuSet> CpuSet::parse(std::string_view text) {
  CpuSet set;
  const auto wrong = [whole = text] {
    return Error{ErrorCode::kInvalid, fmt::format("expected a list of CPUs such as 0-3,8, got \"{}\"", whole), {}};
  };
  if (text.empty()) return set;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const auto first = parse_cpu(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_cpu(range.substr(dash + 1));
    if (!first || !last || *last < *first) return wrong();
    for (int cpu = *first; cpu <= *last; ++cpu) set.add(cpu);
    if (comma == std::string_view::npos) return set;
    text.remove_prefix(comma + 1);
  }
}

std::string CpuSet::text() const {
  std::string text;
  for (auto it = cpus_.begin(); it != cpus_.end();) {
    const int first = *it;
    int last = first;
    for (++it; it != cpus_.end() && *it == last + 1; ++it) last = *it;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

bool CpuSet::contains(const CpuSet& others) const {
  return std::ranges::includes(cpus_, others.cpus_);
}

void CpuSet::remove(const CpuSet& others) {
  for (const int cpu : others.cpus_) cpus_.erase(cpu);
}

CpuSet operator&(const CpuSet& a, const CpuSet& b) {
  CpuSet both;
  std::ranges::set_intersection(a.cpus_, b.cpus_, std::inserter(both.cpus_, both.cpus_.end()));
  return both;
}

}  // namespace spillway::admission
