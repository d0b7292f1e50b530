#include "policy/workloads/job_indexes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace spillway::workloads {

namespace {

std::optional<std::int32_t> index_of(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

JobIndexes JobIndexes::parse(std::string_view text, std::int32_t completions) {
  JobIndexes out;
  for (std::size_t start = 0; !text.empty() && start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string_view part = text.substr(start, comma - start);
    start = comma + 1;
    const std::size_t dash = part.find('-');
    const auto first = index_of(part.substr(0, dash));
    if (!first) continue;
    if (*first >= completions) break;
    const auto last = dash == std::string_view::npos ? first : index_of(part.substr(dash + 1));
    if (!last) continue;
    const Run run{*first, std::min(*last, completions - 1)};
    if (!out.runs_.empty() && out.runs_.back().last == run.first - 1) {
      out.runs_.back().last = run.last;
    } else {
      out.runs_.push_back(run);
    }
  }
  return out;
}

JobIndexes JobIndexes::with(const std::set<std::int32_t>& indexes) const {
  JobIndexes singles;
  for (const std::int32_t index : indexes) singles.runs_.push_back({index, index});
  return with(singles);
}

JobIndexes JobIndexes::with(const JobIndexes& other) const {
  JobIndexes out;
  const auto add = [&out](const Run& run) {
    if (out.runs_.empty() || run.first > out.runs_.back().last + 1) {
      out.runs_.push_back(run);
    } else {
      out.runs_.back().last = std::max(out.runs_.back().last, run.last);
    }
  };
  auto mine = runs_.begin();
  auto theirs = other.runs_.begin();
  while (mine != runs_.end() || theirs != other.runs_.end()) {
    const bool take_mine = theirs == other.runs_.end() || (mine != runs_.end() && mine->first < theirs->first);
    add(take_mine ? *mine++ : *theirs++);
  }
  return out;
}

bool JobIndexes::has(std::int32_t index) const {
  const auto after = std::ranges::upper_bound(runs_, index, {}, &Run::first);
  return after != runs_.begin() && index <= std::prev(after)->last;
}

std::int64_t JobIndexes::total() const {
  std::int64_t total = 0;
  for (const Run& run : runs_) total += std::int64_t{run.last} - run.first + 1;
  return total;
}

std::string JobIndexes::text() const {
  std::string out;
  for (const Run& run : runs_) {
    if (!out.empty()) out += ',';
    out += std::to_string(run.first);
    if (run.last > run.first) out += fmt::format("{}{}", run.last == run.first + 1 ? ',' : '-', run.last);
  }
  return out;
}

std::vector<std::int32_t> JobIndexes::lowest_missing(std::int32_t completions, std::size_t count) const {
  std::vector<std::int32_t> missing;
  std::int32_t candidate = 0;
  const auto take_until = [&](std::int32_t end) {
    for (; candidate < end && missing.size() < count; ++candidate) missing.push_back(candidate);
  };
  for (const Run& run : runs_) {
    take_until(std::min(run.first, completions));
    candidate = std::max(candidate, run.last + 1);
  }
  take_until(completions);
  return missing;
}

std::int64_t JobIndexes::count_in(const JobIndexes& others) const {
  std::int64_t count = 0;
  auto from = others.runs_.begin();
  for (const Run& run : runs_) {
    while (from != others.runs_.end() && from->last < run.first) ++from;
    for (auto other = from; other != others.runs_.end() && other->first <= run.last; ++other) {
      count += std::max<std::int64_t>(
          0, std::int64_t{std::min(run.last, other->last)} - std::max(run.first, other->first) + 1);
    }
  }
  return count;
}

}  // namespace spillway::workloads
