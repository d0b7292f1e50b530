#include "agent/eviction/reaction.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "base/check.h"
#include "policy/eviction/message.h"
#include "policy/eviction/reasons.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>

namespace spillway::agent {
namespace {

constexpr std::size_t kNumberDigits = 20;
constexpr std::string_view kAvailable = "available_bytes";
constexpr std::int64_t kOpenNumber = 1'000'000'000'000'000'007;  // keeps the place of a number

/// Right-aligned in `digits` columns; JSON allows the blanks before it.
void put_number(char* at, std::size_t digits, std::int64_t number, char pad) noexcept {
  std::array<char, 24> text;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const std::size_t size = std::min(
      digits,
      static_cast<std::size_t>(std::to_chars(text.data(), text.data() + text.size(), number).ptr - text.data()));
  std::fill_n(at, digits - size, pad);
  std::copy_n(text.data(), size, at + (digits - size));
}

/// "2026-11-21T05:01:28.123456Z", in place.
void put_time(char* at, WallTime time) noexcept {
  const std::int64_t micros = time.time_since_epoch().count();
  const auto day = std::chrono::floor<std::chrono::days>(time.time_since_epoch());
  const std::chrono::year_month_day date{std::chrono::sys_days(day)};
  const std::int64_t second = micros / 1'000'000 - day.count() * 86'400;
  put_number(at, 4, static_cast<int>(date.year()), '0');
  put_number(at + 5, 2, static_cast<unsigned>(date.month()), '0');
  put_number(at + 8, 2, static_cast<unsigned>(date.day()), '0');
  put_number(at + 11, 2, second / 3600, '0');
  put_number(at + 14, 2, second / 60 % 60, '0');
  put_number(at + 17, 2, second % 60, '0');
  put_number(at + 20, 6, micros % 1'000'000, '0');
}

std::size_t place_of(const std::string& line, std::string_view text) {
  const std::size_t at = line.find(text);
  SPILLWAY_CHECK(at != std::string::npos);
  return at;
}

std::optional<std::int64_t> capacity_of(const std::optional<eviction::Observation>& seen) {
  return seen ? std::optional(seen->capacity) : std::nullopt;
}

JournalEntry open_entry(const AgentOptions& options, const api::Pod& pod, const eviction::Signal signal) {
  JournalEntry entry;
  entry.intent = true;
  entry.eviction = {.uid = pod.metadata.uid,
                    .pod = pod.key(),
                    .grace_period_seconds = eviction::kHardGraceSeconds,
                    .message = fmt::format("{}{}. ", eviction::kLowOn, eviction::resource_of(signal)),
                    .annotations = {},
                    .disruption_target = true,
                    .metric_label = std::string(to_string(signal))};
  policy::Decision& decision = entry.decision;
  decision.by = options.node_name;
  decision.area = policy::Area::kEviction;
  decision.verdict = policy::Verdict::kActs;
  decision.action = "evict";
  decision.subject = eviction::subject_of(pod);
  decision.message = entry.eviction->message;
  return entry;
}

void set_left(api::MemoryStats& stats, const MemoryLeft& left, WallTime at) {
  if (!stats.available_bytes || !stats.working_set_bytes) return;
  const std::uint64_t capacity = *stats.available_bytes + *stats.working_set_bytes;
  stats.available_bytes = static_cast<std::uint64_t>(left.available.count());
  stats.working_set_bytes = capacity - *stats.available_bytes;
  // Drop values that were not part of that reading.
  stats.mem_available_bytes.reset();
  stats.swap_left_bytes.reset();
  if (left.mem_available) stats.mem_available_bytes = static_cast<std::uint64_t>(left.mem_available->count());
  if (left.swap_left) stats.swap_left_bytes = left.swap_left->count();
  stats.time = std::max(at, stats.time.value_or(at) + microseconds(1));  // newer, whatever the wall clock did
}

/// Finds the container's entry, or adds one.
api::ContainerStats& entry_of(api::PodStats& pod, const std::string& container) {
  const auto found = std::ranges::find(pod.containers, container, &api::ContainerStats::name);
  if (found != pod.containers.end()) return *found;
  api::ContainerStats& made = pod.containers.emplace_back();
  made.name = container;
  return made;
}

void set_working_set(std::optional<api::MemoryStats>& memory, Bytes used, WallTime at) {
  if (!memory) memory.emplace();
  memory->working_set_bytes = static_cast<std::uint64_t>(used.count());
  memory->time = at;
}

}  // namespace

PreparedEntry::PreparedEntry(JournalEntry entry) {
  entry.decision.at = WallTime(microseconds(kOpenNumber / 1000));
  entry.emergency = false;
  entry.decision.reasons = {{policy::ReasonCode::kThresholdMet,
                             {{"signal", entry.eviction ? entry.eviction->metric_label : std::string()},
                              {std::string(kAvailable), kOpenNumber}}}};
  line_ = to_line(entry) + '\n';
  available_ = place_of(line_, std::to_string(kOpenNumber));
  line_.insert(available_, " ");  // room for a sign
  at_ = place_of(line_, api::format_micro_time(entry.decision.at));
  const std::string micros = "\"atMicros\":" + std::to_string(entry.decision.at.time_since_epoch().count());
  at_micros_ = place_of(line_, micros) + 11;
  const std::size_t flag = place_of(line_, "\"emergency\":false");
  emergency_ = flag + 12;
}

void PreparedEntry::fill(WallTime at, bool emergency, std::int64_t available) noexcept {
  if (line_.empty()) return;
  put_time(line_.data() + at_, at);
  put_number(line_.data() + at_micros_, 16, at.time_since_epoch().count(), ' ');
  std::copy_n(emergency ? "true " : "false", 5, line_.data() + emergency_);
  put_number(line_.data() + available_, kNumberDigits, available, ' ');
}

ReactionPlan plan_reaction(const AgentOptions& options, const eviction::PassState& state, const api::Summary& last,
                           std::span<const api::Pod* const> active) {
  ReactionPlan plan;
  plan.blind_zone = options.eviction.blind_zone;
  plan.memory_estimator = options.eviction.memory_watch.estimator;
  plan.observe = options.eviction.observe;
  const eviction::Observations seen = eviction::observe(last, options.eviction.memory_watch.estimator);
  for (const eviction::Threshold& threshold : state.thresholds) {
    if (!is_memory(threshold.signal)) continue;
    const auto capacity = capacity_of(seen[threshold.signal]);
    if (!capacity) continue;
    const auto reclaim =
        contains(state.crossed_before, threshold) ? eviction::Reclaim::kWithMinimum : eviction::Reclaim::kWithout;
    const auto below = crossed_below(threshold, *capacity, reclaim);
    if (!below) continue;
    (threshold.is_hard() ? plan.act : plan.wake).push_back({threshold.signal, Bytes{*below}});
  }
  if (plan.act.empty()) return plan;
  std::vector<const api::Pod*> order(active.begin(), active.end());
  std::ranges::sort(order, [](const api::Pod* a, const api::Pod* b) { return eviction::by_name(*a, *b) < 0; });
  std::map<std::string_view, const api::PodStats*> stats;
  for (const api::PodStats& each : last.pods) stats.insert_or_assign(each.uid, &each);
  plan.candidates.reserve(order.size());
  for (const api::Pod* pod : order) {
    ReactionPlan::Candidate candidate{
        .uid = pod->metadata.uid, .key = eviction::memory_standing_of(*pod), .inactive_file = {}, .entry = {}};
    const auto known = stats.find(candidate.uid);
    if (known != stats.end() && known->second->memory) {
      const api::MemoryStats& memory = *known->second->memory;
      if (memory.usage_bytes && memory.working_set_bytes && *memory.usage_bytes >= *memory.working_set_bytes)
        candidate.inactive_file = Bytes{static_cast<std::int64_t>(*memory.usage_bytes - *memory.working_set_bytes)};
    }
    if (!candidate.key.spared) candidate.entry = PreparedEntry(open_entry(options, *pod, plan.act.front().signal));
    plan.candidates.push_back(std::move(candidate));
  }
  return plan;
}

api::Summary summary_at(const Reacted& event, api::Summary last) {
  if (event.node && last.node.memory) set_left(*last.node.memory, *event.node, event.at);
  for (api::ContainerStats& container : last.node.system_containers) {
    if (container.name != "pods" || !container.memory || !event.pods) continue;
    set_left(*container.memory, *event.pods, event.at);
    break;
  }
  std::map<std::string, std::size_t, std::less<>> place;  // the later of two entries counts
  for (std::size_t i = 0; i < last.pods.size(); ++i) place.insert_or_assign(last.pods[i].uid, i);
  for (const auto& [uid, used] : event.working_sets) {
    const auto [known, is_new] = place.try_emplace(uid, last.pods.size());
    if (is_new) last.pods.emplace_back().uid = uid;
    set_working_set(last.pods[known->second].memory, used, event.at);
  }
  if (event.containers.empty()) return last;
  const auto [victim, is_new] = place.try_emplace(event.uid, last.pods.size());
  if (is_new) last.pods.emplace_back().uid = event.uid;
  for (const auto& [name, used] : event.containers)
    set_working_set(entry_of(last.pods[victim->second], name).memory, used, event.at);
  return last;
}

}  // namespace spillway::agent
