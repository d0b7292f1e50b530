#include "recording/rows.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace spillway::recording {

Instant ReplayRow::at() const {
  if (!decided) return would_be->at.mono;
  return would_be ? std::min(decided->at.mono, would_be->at.mono) : decided->at.mono;
}

std::vector<ReplayRow> pair_rows(std::vector<ReplayOutcome> decided, std::vector<ReplayOutcome> would_be,
                                 const std::function<bool(const ReplayOutcome&, const ReplayOutcome&)>& same) {
  std::map<std::string, std::deque<std::size_t>, std::less<>> waiting;  // indices into `would_be`, by key
  for (std::size_t i = 0; i < would_be.size(); ++i) waiting[would_be[i].key].push_back(i);
  std::vector<bool> paired(would_be.size());
  std::vector<ReplayRow> rows;
  for (ReplayOutcome& each : decided) {
    ReplayRow& row = rows.emplace_back();
    if (const auto found = waiting.find(each.key); found != waiting.end() && !found->second.empty()) {
      const std::size_t place = found->second.front();
      found->second.pop_front();
      paired[place] = true;
      row.would_be = std::move(would_be[place]);
    }
    row.decided = std::move(each);
    row.same = row.would_be && same(*row.decided, *row.would_be);
  }
  for (std::size_t i = 0; i < would_be.size(); ++i) {
    if (!paired[i]) rows.push_back({.decided = {}, .would_be = std::move(would_be[i])});
  }
  std::ranges::stable_sort(rows, {}, &ReplayRow::at);
  return rows;
}

std::optional<Instant> first_difference(const std::vector<ReplayRow>& rows) {
  std::optional<Instant> first;
  for (const ReplayRow& row : rows) {
    if (!row.same) first = std::min(row.at(), first.value_or(row.at()));
  }
  return first;
}

std::uint64_t count_same(const std::vector<ReplayRow>& rows) {
  return static_cast<std::uint64_t>(std::ranges::count(rows, true, &ReplayRow::same));
}

}  // namespace spillway::recording
