// Any text as a flag of eviction thresholds: refused with a line, or thresholds that compare and print consistently.
#include "base/check.h"
#include "policy/eviction/threshold_parse.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace spillway;  // NOLINT(google-build-using-namespace): one small program

namespace {

eviction::SignalMap read(std::string_view text, eviction::PairSyntax syntax) {
  eviction::SignalFlag flag(syntax, {});
  const Outcome added = flag.add(text);
  SPILLWAY_CHECK(added || !added.error().text().empty());
  return flag.entries();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Four flags, one a line.
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto take_line = [&rest] {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    return line;
  };
  eviction::ThresholdConfig config;
  config.hard = read(take_line(), eviction::PairSyntax::kLessThan);
  config.soft = read(take_line(), eviction::PairSyntax::kLessThan);
  config.soft_grace_period = read(take_line(), eviction::PairSyntax::kEquals);
  config.minimum_reclaim = read(take_line(), eviction::PairSyntax::kEquals);
  config.enforce_pods = eviction::EnforcePods::kYes;
  const auto thresholds = eviction::parse_thresholds(config);
  if (!thresholds) {
    SPILLWAY_CHECK(!thresholds.error().text().empty());
    return 0;
  }
  eviction::Observations seen;
  for (const eviction::Signal signal : eviction::kSignals) {
    seen[signal] = eviction::Observation{.available = 1'000'000, .capacity = 2'000'000, .time = {}};
  }
  for (const eviction::Threshold& threshold : *thresholds) {
    SPILLWAY_CHECK(same_threshold(threshold, threshold) || !eviction::never_met({threshold}).empty());
    const auto amount = amount_of(threshold.value, 2'000'000);
    SPILLWAY_CHECK(!amount || !amount->to_string().empty());
    // The minimum reclaim raises the required amount, unless it is NaN.
    if (is_met(threshold, seen, eviction::Reclaim::kWithout) && threshold.min_reclaim &&
        amount_of(*threshold.min_reclaim, 2'000'000)) {
      SPILLWAY_CHECK(is_met(threshold, seen, eviction::Reclaim::kWithMinimum));
    }
  }
  return 0;
}
