#include "sim/scenario/fault_parser.h"

#include "api/text/quantity.h"
#include "sim/scenario/reading.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

namespace spillway::sim {
namespace {

using yaml::Place;

constexpr std::int64_t kMembersMax = 9;

Outcome read_ppm(const Place& place, std::string_view name, std::uint32_t& out) {
  SPILLWAY_TRY(number, place.number(name, 0, 1'000'000));
  if (number) out = static_cast<std::uint32_t>(*number);
  return {};
}

Outcome read_etcd_faults(const Place& place, EtcdFaults& out) {
  SPILLWAY_TRY_VOID(place.check_members(
      {"late", "slow", "lost", "fragments", "repeats", "gaps", "earlyProgress", "futureShowsPast"}));
  SPILLWAY_TRY_VOID(read_ppm(place, "late", out.pace.late_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "slow", out.slow_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "lost", out.lost_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "fragments", out.fragment_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "repeats", out.repeat_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "gaps", out.gap_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "earlyProgress", out.early_progress_ppm));
  SPILLWAY_TRY(shows, place.flag("futureShowsPast"));
  out.future_shows_past = shows.value_or(false);
  return {};
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kFaultKinds = {
    {{"pod", "Pod"}, {"namespace", "Namespace"}, {"configMap", "ConfigMap"}, {"service", "Service"}, {"node", "Node"}}};

struct Named {
  std::string kind;
  std::string ns = "default";
  std::string name;
};

/// Parses the name of an object with its kind, and the namespace `in`.
Result<Named> read_named(const Place& place) {
  Named out;
  for (const auto& [member, kind] : kFaultKinds) {
    if (!place.has(member)) continue;
    if (!out.kind.empty())
      return place.member(member).wrong(fmt::format("expected one object, got a {} as well", out.kind));
    SPILLWAY_TRY(name, place.member(member).text());
    out.kind = kind;
    out.name = name;
  }
  if (out.name.empty()) return place.wrong("expected an object, e.g. {pod: hog, memory: 400Mi} or {namespace: team}");
  SPILLWAY_TRY(ns, place.optional_text("in"));
  if (!ns.empty()) out.ns = ns;
  return out;
}

/// "server-1"; nullopt: something else.
std::optional<std::size_t> server_number(const std::string& text) {
  constexpr std::string_view kPrefix = "server-";
  std::size_t number = 0;
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + kPrefix.size(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

Result<ChanceFaults> parse_faults(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"lost", "slow", "repeated", "brokenWatches", "roaming", "refusedWrites",
                                         "lateWrites", "deaths", "journalDeaths", "agentDeaths", "etcd"}));
  ChanceFaults out;
  SPILLWAY_TRY_VOID(read_ppm(place, "lost", out.network.lost_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "slow", out.network.slow_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "repeated", out.network.repeated_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "brokenWatches", out.network.watch_break_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "roaming", out.network.roam_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "refusedWrites", out.store.refused_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "lateWrites", out.store.late_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "deaths", out.death_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "journalDeaths", out.journal_death_ppm));
  SPILLWAY_TRY_VOID(read_ppm(place, "agentDeaths", out.agent_death_ppm));
  if (place.has("etcd")) SPILLWAY_TRY_VOID(read_etcd_faults(place.member("etcd"), out.etcd));
  return out;
}

Result<Action> read_create(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"pod", "namespace", "configMap", "service", "in", "memory", "growth",
                                         "memoryRequest", "priorityClass", "restarts"}));
  SPILLWAY_TRY(named, read_named(place));
  CreateObject out;
  out.kind = named.kind;
  out.ns = named.ns;
  out.name = named.name;
  SPILLWAY_TRY(memory, read_bytes(place, "memory"));
  if (memory) out.memory = *memory;
  SPILLWAY_TRY(growth, read_rate(place, "growth"));
  if (growth) out.growth_per_second = *growth;
  SPILLWAY_TRY(request, read_quantity(place, "memoryRequest"));
  out.memory_request = request;
  SPILLWAY_TRY(priority, place.optional_text("priorityClass"));
  out.priority_class = priority;
  SPILLWAY_TRY(restarts, place.flag("restarts"));
  out.restarts = restarts.value_or(true);
  return out;
}

Result<Action> read_delete(const Place& place) {
  SPILLWAY_TRY_VOID(
      place.check_members({"pod", "namespace", "configMap", "service", "node", "anyPod", "in", "atOnce"}));
  DeleteObject out;
  SPILLWAY_TRY(any, place.number("anyPod", 0, 1'000'000));
  if (any) {
    out.kind = "Pod";
    out.place = static_cast<std::size_t>(*any);
  } else {
    SPILLWAY_TRY(named, read_named(place));
    out.kind = named.kind;
    out.ns = named.ns;
    out.name = named.name;
  }
  SPILLWAY_TRY(at_once, place.flag("atOnce"));
  out.at_once = at_once.value_or(false);
  return out;
}

Result<Action> read_etcd(const Place& place) {
  if (const std::string* const text = place.value().if_string()) {
    if (*text == "depose") return DeposeEtcd{};
    if (*text == "compact") return CompactEtcd{};
  }
  if (!place.value().is_object()) return place.wrong("expected depose, compact, {stop: 0}, {part: 0} or {cutOff: 0}");
  SPILLWAY_TRY_VOID(place.check_members({"stop", "part", "cutOff"}));
  using What = BreakEtcd::What;
  std::optional<BreakEtcd> out;
  for (const auto& [name, what] : {std::pair("stop", What::kStop), {"part", What::kPart}, {"cutOff", What::kCutOff}}) {
    SPILLWAY_TRY(number, place.number(name, 0, kMembersMax));
    if (!number) continue;
    if (out) return place.wrong("expected one of stop, part and cutOff");
    out = BreakEtcd{what, static_cast<std::size_t>(*number)};
  }
  if (!out) return place.wrong("expected depose, compact, {stop: 0}, {part: 0} or {cutOff: 0}");
  return *out;
}

Result<Action> read_crash_of_process(const Place& place) {
  SPILLWAY_TRY(text, place.text());
  if (text == "controllers") return CrashControllers{};
  if (text == "scheduler") return CrashScheduler{};
  if (const auto server = server_number(text)) return StopApiServer{*server};
  return place.wrong(fmt::format("expected nodes, controllers, scheduler or server-0, got \"{}\"", text));
}

Result<Action> read_restart_of_process(const Place& place) {
  SPILLWAY_TRY(text, place.text());
  if (text == "controllers") return RestartControllers{};
  if (text == "scheduler") return RestartScheduler{};
  if (const auto server = server_number(text)) return StartApiServer{*server};
  return place.wrong(fmt::format("expected nodes, controllers, scheduler or server-0, got \"{}\"", text));
}

Outcome check_servers(const Place& scenario, const ServerPlan& plan, const std::vector<TimelineEvent>& timeline) {
  if (plan.servers > 1 && plan.etcd == 0) {
    return scenario.wrong("cluster: several servers share an etcd; expected etcd: 1 or more beside servers");
  }
  for (const TimelineEvent& event : timeline) {
    std::size_t server = 0;
    if (const auto* const stop = std::get_if<StopApiServer>(&event.action)) server = stop->server;
    if (const auto* const start = std::get_if<StartApiServer>(&event.action)) server = start->server;
    if (const auto* const broken = std::get_if<BreakEtcd>(&event.action)) {
      if (plan.etcd == 0) return scenario.wrong("timeline: there is no etcd; expected cluster: {etcd: 1}");
      if (broken->what == BreakEtcd::What::kCutOff) server = broken->number;
      if (broken->what != BreakEtcd::What::kCutOff && broken->number >= plan.etcd) {
        return scenario.wrong(
            fmt::format("timeline: there is no member {} of etcd; it has {}", broken->number, plan.etcd));
      }
    }
    if (server >= plan.servers) {
      return scenario.wrong(fmt::format("timeline: there is no server-{}; the cluster has {}", server, plan.servers));
    }
  }
  return {};
}

}  // namespace spillway::sim
