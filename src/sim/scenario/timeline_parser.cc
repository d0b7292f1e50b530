#include "sim/scenario/timeline_parser.h"

#include "base/edit_distance.h"
#include "sim/scenario/config_parser.h"
#include "sim/scenario/fault_parser.h"
#include "sim/scenario/known_names.h"
#include "sim/scenario/reading.h"
#include "sim/sim_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {
namespace {

using yaml::Place;

constexpr std::size_t kEventsMax = 1000;
constexpr std::int64_t kRepeatsMax = 1000;
using Machines = std::vector<MachineSpec>;

Error no_such_part(const Place& place, std::string_view what, const std::string& wanted,
                   const std::set<std::string>& known) {
  const std::vector<std::string> names(known.begin(), known.end());
  return place.wrong(fmt::format("there is no {} \"{}\"{}; this cluster has {}", what, wanted,
                                 nearest_word(wanted, names).suggestion(), list_names(names)));
}

std::set<std::string> values_of(std::string_view label, const Machines& machines) {
  std::set<std::string> values;
  for (const MachineSpec& each : machines) {
    if (const auto found = each.labels.find(std::string(label)); found != each.labels.end())
      values.insert(found->second);
  }
  return values;
}

Outcome read_only(const Place& place, const Machines& machines, NodeChoice& choice) {
  return place.for_each("only", [&](const Place& each) -> Outcome {
    const auto number = each.value().if_int64();
    if (!number || *number < 0) return each.wrong("expected the number of a node, from 0");
    if (static_cast<std::size_t>(*number) >= machines.size()) {
      return each.wrong(fmt::format("there is no node {}; this cluster has 0 to {}", *number, machines.size() - 1));
    }
    choice.only.push_back(static_cast<std::size_t>(*number));
    return {};
  });
}

/// Checks that each name matches at least one node.
Outcome check_node_names(const Place& place, const Machines& machines) {
  return place.for_each("names", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(name, each.text());
    if (std::ranges::any_of(machines, [&name](const auto& node) { return matches_glob(name, node.name); })) return {};
    std::vector<std::string> known;
    for (const MachineSpec& node : machines) known.push_back(node.name);
    return each.wrong(fmt::format("there is no node \"{}\"{}; this cluster has {}", name,
                                  nearest_word(name, known).suggestion(), list_names(known)));
  });
}

/// Reads the members that choose nodes; the caller has checked that there are no others.
Result<NodeChoice> read_choice(const Place& place, const Machines& machines) {
  NodeChoice choice;
  SPILLWAY_TRY(zone, place.optional_text("zone"));
  if (!zone.empty()) {
    const auto zones = values_of("topology.kubernetes.io/zone", machines);
    if (!zones.contains(zone)) return no_such_part(place.member("zone"), "zone", zone, zones);
    choice.zone = zone;
  }
  SPILLWAY_TRY(rack, place.optional_text("rack"));
  if (!rack.empty()) {
    const auto racks = values_of("rack", machines);
    if (!racks.contains(rack)) return no_such_part(place.member("rack"), "rack", rack, racks);
    choice.label = std::pair(std::string("rack"), rack);
  }
  SPILLWAY_TRY(label, read_label(place, "label"));
  if (label && choice.label) return place.member("label").wrong("expected either rack or label");
  if (label) choice.label = label;
  SPILLWAY_TRY(names, place.words("names"));
  SPILLWAY_TRY_VOID(check_node_names(place, machines));
  choice.names = std::move(names);
  SPILLWAY_TRY(skip, place.number("skip", 0, kGeneratedNodesMax));
  SPILLWAY_TRY(every, place.number("every", 1, kGeneratedNodesMax));
  choice.skip = static_cast<std::size_t>(skip.value_or(0));
  choice.every = static_cast<std::size_t>(every.value_or(1));
  SPILLWAY_TRY_VOID(read_only(place, machines, choice));
  if (chosen_nodes(choice, machines).empty()) return place.wrong("no node of this cluster is meant by that");
  return choice;
}

/// "all", or a mapping that narrows.
Result<NodeChoice> read_nodes(const Place& place, const Machines& machines) {
  if (place.value().if_string() != nullptr && *place.value().if_string() == "all") return NodeChoice();
  if (!place.value().is_object())
    return place.wrong("expected \"all\" or a mapping of zone, rack, label, names or only");
  SPILLWAY_TRY_VOID(place.check_members({"zone", "rack", "label", "names", "skip", "every", "only"}));
  return read_choice(place, machines);
}

Result<Action> read_partition(const Place& place, const Machines& machines) {
  if (!place.value().is_object()) {
    SPILLWAY_TRY(nodes, read_nodes(place, machines));
    return PartitionNodes{nodes};
  }
  SPILLWAY_TRY_VOID(place.check_members({"zone", "rack", "label", "names", "skip", "every", "only", "way"}));
  SPILLWAY_TRY(nodes, read_choice(place, machines));
  SPILLWAY_TRY(way, place.optional_text("way"));
  if (way.empty() || way == "both") return PartitionNodes{nodes};
  if (way == "toServer") return PartitionNodes{nodes, Cut::kToServer};
  if (way == "fromServer") return PartitionNodes{nodes, Cut::kFromServer};
  return place.member("way").wrong(fmt::format("expected both, toServer or fromServer, got \"{}\"", way));
}

Result<Action> read_rolling_reboot(const Place& place, const Machines& machines) {
  SPILLWAY_TRY_VOID(
      place.check_members({"zone", "rack", "label", "names", "skip", "every", "only", "away", "interval"}));
  SPILLWAY_TRY(nodes, read_choice(place, machines));
  SPILLWAY_TRY(away, read_duration(place, "away"));
  SPILLWAY_TRY(interval, read_duration(place, "interval"));
  if (!away) return place.wrong("away is missing; expected a duration, e.g. 90s");
  if (!interval) return place.wrong("interval is missing; expected a duration, e.g. 45s");
  return RollingReboot{nodes, *away, *interval};
}

Result<Action> read_api_server(const Place& place) {
  if (place.value().if_string() != nullptr && *place.value().if_string() == "away") return StopApiServer{};
  if (!place.value().is_object()) return place.wrong("expected \"away\" or {slow: 2s}");
  SPILLWAY_TRY_VOID(place.check_members({"slow"}));
  SPILLWAY_TRY(slow, read_duration(place, "slow"));
  if (!slow || *slow == Duration::zero()) return place.wrong("slow is missing; expected a duration, e.g. 2s");
  return SlowApiServer{*slow};
}

/// Parses the members that choose pods; the caller has checked that no others exist.
Result<PodChoice> read_pod_choice(const Place& place) {
  PodChoice choice;
  SPILLWAY_TRY(pods, place.optional_text("pods"));
  if (!pods.empty()) choice.pods = pods;
  SPILLWAY_TRY(label, read_label(place, "label"));
  choice.label = label;
  if (pods.empty() && !label) return place.wrong("pods is missing; expected a name like default/web-*, or a label");
  SPILLWAY_TRY(first, place.number("first", 1, 1'000'000));
  if (first) choice.first = static_cast<std::size_t>(*first);
  return choice;
}

/// Reads the pods of an event that has the members to, over and rate as well.
Result<PodChoice> read_pods(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"pods", "label", "first", "to", "over", "rate"}));
  return read_pod_choice(place);
}

Result<Action> read_hold_endings(const Place& place, SimHost::Ending ending) {
  if (!place.value().is_object()) return place.wrong("expected a mapping of pods, label or first");
  SPILLWAY_TRY_VOID(place.check_members({"pods", "label", "first"}));
  SPILLWAY_TRY(pods, read_pod_choice(place));
  return HoldEndings{std::move(pods), ending};
}

/// "-1h" jumps all clocks, a mapping those of some machines.
Result<Action> read_jump_clock(const Place& event, const Place& place, const Machines& machines) {
  if (!place.value().is_object()) {
    SPILLWAY_TRY(by, read_duration(event, "jumpClock", Sign::kAny));
    if (!by) return place.wrong("expected a duration, e.g. -1h");
    return JumpClock{*by};
  }
  SPILLWAY_TRY_VOID(place.check_members({"zone", "rack", "label", "names", "skip", "every", "only", "by"}));
  SPILLWAY_TRY(nodes, read_choice(place, machines));
  SPILLWAY_TRY(by, read_duration(place, "by", Sign::kAny));
  if (!by) return place.wrong("by is missing; expected a duration, e.g. -1h");
  return JumpMachineClocks{nodes, *by};
}

Result<Action> read_link(const Place& place, const Machines& machines) {
  if (!place.value().is_object()) return place.wrong("expected a mapping of nodes, with latency or lost");
  SPILLWAY_TRY_VOID(
      place.check_members({"zone", "rack", "label", "names", "skip", "every", "only", "latency", "lost"}));
  SPILLWAY_TRY(nodes, read_choice(place, machines));
  SPILLWAY_TRY(latency, read_duration(place, "latency"));
  SPILLWAY_TRY(lost, place.number("lost", 1, 1'000'000));
  if (!latency && !lost) return place.wrong("expected latency (200ms), lost (messages of a million), or both");
  return WorsenLinks{nodes, {latency.value_or(Duration::zero()), static_cast<std::uint32_t>(lost.value_or(0))}};
}

Result<Action> read_slow_disk(const Place& place, const Machines& machines) {
  if (!place.value().is_object()) return place.wrong("expected a mapping of nodes, with by");
  SPILLWAY_TRY_VOID(place.check_members({"zone", "rack", "label", "names", "skip", "every", "only", "by"}));
  SPILLWAY_TRY(nodes, read_choice(place, machines));
  SPILLWAY_TRY(by, read_duration(place, "by"));
  if (!by || *by == Duration::zero()) return place.wrong("by is missing; expected a duration, e.g. 2s");
  return SlowDisks{nodes, *by};
}

Result<Action> read_images(const Place& place, const Machines& machines) {
  if (!place.value().is_object()) return place.wrong("expected a mapping of nodes, with to");
  SPILLWAY_TRY_VOID(
      place.check_members({"zone", "rack", "label", "names", "skip", "every", "only", "to", "undeletable"}));
  SPILLWAY_TRY(nodes, read_choice(place, machines));
  SPILLWAY_TRY(to, read_bytes(place, "to"));
  if (!to) return place.wrong("to is missing; expected an amount of disk, e.g. 40Gi");
  SPILLWAY_TRY(undeletable, place.flag("undeletable"));
  return KeepImages{nodes, *to, undeletable.value_or(false)};
}

/// Parses other eviction settings for some nodes, and validates them as an agent does.
Result<Action> read_thresholds(const Place& place, const Machines& machines) {
  static constexpr std::array<std::string_view, 6> kSettings = {"evictionHard",
                                                                "evictionSoft",
                                                                "evictionSoftGracePeriod",
                                                                "evictionMinimumReclaim",
                                                                "evictionMaxPodGracePeriod",
                                                                "evictionPressureTransitionPeriod"};
  if (!place.value().is_object()) return place.wrong("expected a mapping of nodes, with evictionHard: {…}");
  SPILLWAY_TRY_VOID(place.check_members({"zone", "rack", "label", "names", "skip", "every", "only", "evictionHard",
                                         "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim",
                                         "evictionMaxPodGracePeriod", "evictionPressureTransitionPeriod"}));
  ChangeThresholds action;
  SPILLWAY_TRY(nodes, read_choice(place, machines));
  action.nodes = std::move(nodes);
  action.written = api::Json::object();
  for (const std::string_view name : kSettings) {
    if (place.has(name)) action.written[name] = place.member(name).value();
  }
  if (action.written.if_object()->empty())
    return place.wrong("expected settings of evictions, e.g. evictionHard: {memory.available: 500Mi}");
  const auto options = agent_options_of(action.written);
  if (!options) return place.wrong(options.error().text());
  action.eviction = options->eviction;
  return action;
}

/// UseMemory, FillDisk or ReadFiles. `what`: for the message.
template <typename Use>
Result<Action> read_use(const Place& place, std::string_view what) {
  Use action;
  if constexpr (requires { action.again; }) {
    SPILLWAY_TRY_VOID(place.check_members({"pods", "label", "first", "to", "over", "rate", "again"}));
    SPILLWAY_TRY(pods, read_pod_choice(place));
    action.pods = std::move(pods);
    SPILLWAY_TRY(again, place.flag("again"));
    action.again = again.value_or(false);
  } else {
    SPILLWAY_TRY(pods, read_pods(place));
    action.pods = std::move(pods);
  }
  SPILLWAY_TRY(to, read_bytes(place, "to"));
  if (!to) return place.wrong(fmt::format("to is missing; expected an amount of {}, e.g. 500Mi", what));
  SPILLWAY_TRY(over, read_duration(place, "over"));
  SPILLWAY_TRY(rate, read_rate(place, "rate"));
  if (over && rate) return place.member("over").wrong("expected either over or rate");
  action.to = *to;
  action.over = over.value_or(Duration::zero());
  action.rate_per_second = rate.value_or(Bytes{0});
  return action;
}

Result<Action> read_fork(const Place& place) {
  ForkProcesses action;
  SPILLWAY_TRY(pods, read_pods(place));
  action.pods = std::move(pods);
  SPILLWAY_TRY(to, place.number("to", 0, SimHost::kPidsMax));
  if (!to) return place.wrong("to is missing; expected a number of processes, e.g. 2000");
  SPILLWAY_TRY(over, read_duration(place, "over"));
  SPILLWAY_TRY(rate, place.number("rate", 1, SimHost::kPidsMax));
  if (over && rate) return place.member("over").wrong("expected either over or rate");
  action.to = *to;
  action.over = over.value_or(Duration::zero());
  action.rate_per_second = rate.value_or(0);
  return action;
}

/// "default/web" as the two.
std::optional<std::pair<std::string, std::string>> split_name(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == name.size()) return std::nullopt;
  return std::pair(name.substr(0, slash), name.substr(slash + 1));
}

Result<Action> read_scale(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"replicaSet", "deployment", "replicas"}));
  const bool of_deployment = place.has("deployment");
  if (of_deployment == place.has("replicaSet")) return place.wrong("expected either replicaSet or deployment");
  SPILLWAY_TRY(name, place.optional_text(of_deployment ? "deployment" : "replicaSet"));
  const auto named = split_name(name);
  if (!named) {
    return place.wrong(
        fmt::format("{}: expected namespace/name, e.g. default/web", of_deployment ? "deployment" : "replicaSet"));
  }
  SPILLWAY_TRY(replicas, place.number("replicas", 0, 1'000'000));
  if (!replicas) return place.wrong("replicas is missing; expected a whole number");
  return ScaleWorkload{named->first, named->second, *replicas, of_deployment ? "Deployment" : "ReplicaSet"};
}

Result<DeploymentChoice> read_deployment(const Place& place) {
  SPILLWAY_TRY(name, place.text());
  const auto named = split_name(name);
  if (!named) return place.wrong("expected namespace/name of a deployment, e.g. default/web");
  return DeploymentChoice{named->first, named->second};
}

Result<Action> read_rollout(const Place& place) {
  if (!place.value().is_object()) return place.wrong("expected a mapping of deployment, memory or memoryRequest");
  SPILLWAY_TRY_VOID(place.check_members({"deployment", "memory", "memoryRequest"}));
  if (!place.has("deployment")) return place.wrong("deployment is missing; expected namespace/name, e.g. default/web");
  RollOut out;
  SPILLWAY_TRY(deployment, read_deployment(place.member("deployment")));
  out.deployment = deployment;
  SPILLWAY_TRY(memory, read_bytes(place, "memory"));
  out.memory = memory;
  SPILLWAY_TRY(request, read_quantity(place, "memoryRequest"));
  out.memory_request = request;
  return out;
}

const std::initializer_list<std::string_view> kMembers = {
    "at",        "after",  "for",   "repeat",   "partition", "heal",      "crash",     "restart",    "rollingReboot",
    "apiServer", "memory", "drain", "uncordon", "scale",     "jumpClock", "muteWatch", "create",     "delete",
    "etcd",      "disk",   "fork",  "link",     "slowStop",  "stuck",     "images",    "thresholds", "rollout",
    "pause",     "resume", "undo",  "cache",    "slowDisk"};
constexpr std::array<std::string_view, 4> kTimes = {"at", "after", "for", "repeat"};

Result<Action> read_action(std::string_view kind, const Place& event, const Machines& machines) {
  const Place place = event.member(kind);
  if (kind == "create") return read_create(place);
  if (kind == "delete") return read_delete(place);
  if (kind == "etcd") return read_etcd(place);
  if (kind == "partition") return read_partition(place, machines);
  if (kind == "rollingReboot") return read_rolling_reboot(place, machines);
  if (kind == "apiServer") return read_api_server(place);
  if (kind == "memory") return read_use<UseMemory>(place, "memory");
  if (kind == "disk") return read_use<FillDisk>(place, "disk");
  if (kind == "cache") return read_use<ReadFiles>(place, "page cache");
  if (kind == "fork") return read_fork(place);
  if (kind == "scale") return read_scale(place);
  if (kind == "rollout") return read_rollout(place);
  if (kind == "pause" || kind == "resume" || kind == "undo") {
    SPILLWAY_TRY(deployment, read_deployment(place));
    if (kind == "pause") return PauseRollout{deployment};
    if (kind == "resume") return ResumeRollout{deployment};
    return UndoRollout{deployment};
  }
  if (kind == "muteWatch") {
    SPILLWAY_TRY(path, place.text());
    return MuteWatch{path};
  }
  if (kind == "jumpClock") return read_jump_clock(event, place, machines);
  if (kind == "link") return read_link(place, machines);
  if (kind == "slowDisk") return read_slow_disk(place, machines);
  if (kind == "slowStop") return read_hold_endings(place, SimHost::Ending::kAtGrace);
  if (kind == "stuck") return read_hold_endings(place, SimHost::Ending::kNever);
  if (kind == "images") return read_images(place, machines);
  if (kind == "thresholds") return read_thresholds(place, machines);
  const std::string* const process = place.value().if_string();
  if (process != nullptr && *process != "all" && kind == "crash") return read_crash_of_process(place);
  if (process != nullptr && *process != "all" && kind == "restart") return read_restart_of_process(place);
  SPILLWAY_TRY(nodes, read_nodes(place, machines));
  if (kind == "heal") return HealNodes{nodes};
  if (kind == "crash") return CrashNodes{nodes};
  if (kind == "restart") return RestartNodes{nodes};
  if (kind == "drain") return DrainNodes{nodes};
  return UncordonNodes{nodes};
}

bool can_be_taken_back(const Action& action) {
  return std::holds_alternative<PartitionNodes>(action) || std::holds_alternative<CrashNodes>(action) ||
         std::holds_alternative<CrashControllers>(action) || std::holds_alternative<CrashScheduler>(action) ||
         std::holds_alternative<BreakEtcd>(action) || std::holds_alternative<StopApiServer>(action) ||
         std::holds_alternative<SlowApiServer>(action) || std::holds_alternative<UseMemory>(action) ||
         std::holds_alternative<FillDisk>(action) || std::holds_alternative<ReadFiles>(action) ||
         std::holds_alternative<ForkProcesses>(action) || std::holds_alternative<DrainNodes>(action) ||
         std::holds_alternative<MuteWatch>(action) || std::holds_alternative<JumpMachineClocks>(action) ||
         std::holds_alternative<WorsenLinks>(action) || std::holds_alternative<HoldEndings>(action) ||
         std::holds_alternative<KeepImages>(action) || std::holds_alternative<PauseRollout>(action) ||
         std::holds_alternative<SlowDisks>(action);
}

Outcome read_times(const Place& place, TimelineEvent& event) {
  SPILLWAY_TRY(after, place.optional_text("after"));
  if (!after.empty() && after != "firstUnknown") {
    return place.member("after").wrong(fmt::format("expected firstUnknown, got \"{}\"", after));
  }
  if (!after.empty()) event.when = TimelineEvent::When::kFirstUnknown;
  SPILLWAY_TRY(at, read_duration(place, "at"));
  if (!at && after.empty()) return place.wrong("at is missing; expected a duration since the beginning, e.g. 2m");
  event.at = at.value_or(Duration::zero());
  SPILLWAY_TRY(lasts, read_duration(place, "for"));
  if (lasts && !can_be_taken_back(event.action)) {
    return place.member("for").wrong(fmt::format("{} cannot be taken back", event.text));
  }
  event.lasts = lasts;
  if (!place.has("repeat")) return {};
  const Place repeat = place.member("repeat");
  SPILLWAY_TRY_VOID(repeat.check_members({"times", "every"}));
  SPILLWAY_TRY(times, repeat.number("times", 1, kRepeatsMax));
  SPILLWAY_TRY(every, read_duration(repeat, "every"));
  if (!times || !every) return repeat.wrong("expected {times: 6, every: 105s}");
  event.times = *times;
  event.every = *every;
  return {};
}

Result<TimelineEvent> read_event(const Place& place, const Machines& machines) {
  SPILLWAY_TRY_VOID(place.check_members(kMembers));
  std::string kind;
  for (const auto& [name, member] : place.members()) {
    if (std::ranges::find(kTimes, name) != kTimes.end()) continue;
    if (!kind.empty()) return member.wrong(fmt::format("expected one thing that happens, got {} as well", kind));
    kind = name;
  }
  if (kind.empty()) return place.wrong("expected what happens, e.g. partition, crash, memory or drain");
  SPILLWAY_TRY(action, read_action(kind, place, machines));
  TimelineEvent event{.at = {}, .action = std::move(action), .lasts = {}, .every = {}, .text = kind};
  SPILLWAY_TRY_VOID(read_times(place, event));
  return event;
}

}  // namespace

Result<std::vector<TimelineEvent>> parse_timeline(const Place& scenario, const Machines& machines) {
  std::vector<TimelineEvent> events;
  SPILLWAY_TRY_VOID(scenario.for_each("timeline", [&](const Place& place) -> Outcome {
    SPILLWAY_TRY(event, read_event(place, machines));
    if (events.size() == kEventsMax) return place.wrong(fmt::format("expected at most {} events", kEventsMax));
    events.push_back(std::move(event));
    return {};
  }));
  return events;
}

Duration end_of(const std::vector<TimelineEvent>& timeline, std::size_t nodes) {
  Duration end{};
  for (const TimelineEvent& event : timeline) {
    Duration lasts = event.lasts.value_or(Duration::zero());
    if (const auto* reboot = std::get_if<RollingReboot>(&event.action)) {
      lasts = reboot->interval * static_cast<std::int64_t>(nodes) + reboot->away;
    }
    if (const auto* memory = std::get_if<UseMemory>(&event.action)) lasts = std::max(lasts, memory->over);
    if (const auto* disk = std::get_if<FillDisk>(&event.action)) lasts = std::max(lasts, disk->over);
    if (const auto* files = std::get_if<ReadFiles>(&event.action)) lasts = std::max(lasts, files->over);
    if (const auto* fork = std::get_if<ForkProcesses>(&event.action)) lasts = std::max(lasts, fork->over);
    end = std::max(end, event.at + event.every * (event.times - 1) + lasts);
  }
  return end;
}

}  // namespace spillway::sim
