#include "apiserver/kinds/batch/index_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

std::optional<std::int64_t> number_in(std::string_view part) {
  std::int64_t value = 0;
  const auto [end, ec] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (ec != std::errc{} || end != part.data() + part.size() || value < 0) return std::nullopt;
  return value;
}

Result<IndexRun> parse_run(std::string_view part, std::int64_t completions) {
  const auto wrong = [](std::string message) { return Error{ErrorCode::kInvalid, std::move(message), {}}; };
  if (std::ranges::count(part, '-') > 1) {
    return wrong(
        fmt::format("the fragment \"{}\" violates the requirement that an index interval can have at most two "
                    "parts separated by '-'",
                    part));
  }
  const std::size_t dash = part.find('-');
  const std::string_view texts[] = {part.substr(0, dash),
                                    dash == std::string_view::npos ? part : part.substr(dash + 1)};
  std::int64_t ends[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto value = number_in(texts[i]);
    if (!value) return wrong(fmt::format("cannot convert string to integer for index: \"{}\"", texts[i]));
    if (*value >= completions) return wrong(fmt::format("too large index: \"{}\"", texts[i]));
    ends[i] = *value;
  }
  if (dash != std::string_view::npos && ends[0] >= ends[1]) {
    return wrong(fmt::format("non-increasing order, previous: {}, current: {}", ends[0], ends[1]));
  }
  return IndexRun{ends[0], ends[1]};
}

}  // namespace

Result<std::vector<IndexRun>> parse_runs(std::string_view written, std::int64_t completions) {
  std::vector<IndexRun> runs;
  for (std::size_t start = 0; !written.empty() && start <= written.size();) {
    const std::size_t comma = std::min(written.find(',', start), written.size());
    const auto run = parse_run(written.substr(start, comma - start), completions);
    if (!run) return run.error();
    if (!runs.empty() && runs.back().last >= run->first) {
      return Error{ErrorCode::kInvalid,
                   fmt::format("non-increasing order, previous: {}, current: {}", runs.back().last, run->first),
                   {}};
    }
    runs.push_back(*run);
    start = comma + 1;
  }
  return runs;
}

std::int64_t total_of(const std::vector<IndexRun>& runs) {
  std::int64_t total = 0;
  for (const IndexRun& run : runs) total += run.last - run.first + 1;
  return total;
}

bool overlap(const std::vector<IndexRun>& a, const std::vector<IndexRun>& b) {
  auto one = a.begin();
  auto other = b.begin();
  while (one != a.end() && other != b.end()) {
    if (one->first <= other->last && other->first <= one->last) return true;
    one->last < other->last ? void(++one) : void(++other);
  }
  return false;
}

}  // namespace spillway::apiserver::kinds
