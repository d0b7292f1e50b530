#include "agent/scripted_host.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr Duration kSoon = milliseconds(1);
constexpr std::int32_t kTerminated = 143;
constexpr std::int32_t kKilled = 137;

}  // namespace

bool ScriptedHost::is_running(const std::string& uid, const std::string& container) const {
  return running_.contains({uid, container});
}

HostEvent ScriptedHost::exit(const std::string& uid, const std::string& container, std::int32_t code, Now now) {
  const auto it = running_.find({uid, container});
  ContainerExited event{.uid = uid, .name = container, .exit_code = code, .finished_at = now.wall};
  if (it != running_.end()) {
    event.attempt = it->second.attempt;
    event.started_at = it->second.started;
    running_.erase(it);
  }
  return event;
}

ScriptedHost::Delayed ScriptedHost::execute(const HostCommand& command, Now now) {
  if (silent_) return {};
  commands_.push_back(command);
  Delayed events;
  if (const auto* start = std::get_if<StartContainer>(&command)) {
    if (!start_failure_.empty()) {
      events.emplace_back(
          kSoon, ContainerStartFailed{start->uid, start->name, start->attempt, start_failure_, "no such file"});
    } else {
      running_[{start->uid, start->name}] = {start->attempt, now.wall};
      events.emplace_back(kSoon, ContainerStarted{start->uid, start->name, start->attempt, 4711, now.wall});
    }
  } else if (const auto* stop_one = std::get_if<StopContainer>(&command)) {
    if (is_running(stop_one->uid, stop_one->name)) {
      events.emplace_back(stubborn_ ? stop_one->grace + kSoon : kSoon,
                          exit(stop_one->uid, stop_one->name, stubborn_ ? kKilled : kTerminated, now));
    }
  } else if (const auto* stop = std::get_if<StopPod>(&command)) {
    const Duration lasts = stubborn_ ? stop->grace + kSoon : kSoon;
    const bool killed = stubborn_ || stop->grace == Duration{};
    std::vector<std::string> names;
    for (const auto& [key, process] : running_) {
      if (key.first == stop->uid) names.push_back(key.second);
    }
    for (const std::string& name : names) {
      events.emplace_back(lasts, exit(stop->uid, name, killed ? kKilled : kTerminated, now));
      if (stubborn_) running_[{stop->uid, name}] = {};  // the container still runs until then
    }
    if (stubborn_) {
      for (const std::string& name : names) running_.erase({stop->uid, name});
    }
    if (immortal_.contains(stop->uid)) return {};
    releases_.push_back({now.mono + lasts, stop->uid});
    events.emplace_back(lasts, PodStopped{stop->uid});
  } else if (const auto* observe = std::get_if<Observe>(&command)) {
    const ObserveDepth depth = light_ ? observe->depth : ObserveDepth::kWhole;
    Observed answer{observe->id, summary(depth, now), depth, layout_};
    if (unreadable_) answer.summary = make_error(ErrorCode::kInternalError, "memory.stat cannot be read");
    events.emplace_back(kSoon, std::move(answer));
  } else if (const auto* limit = std::get_if<LimitGroup>(&command)) {
    const Outcome outcome = limits_fail_ ? Outcome(make_error(ErrorCode::kConflict, "busy")) : Outcome();
    events.emplace_back(kSoon, GroupLimited{limit->group, outcome});
  } else if (const auto* volumes = std::get_if<SetUpVolumes>(&command)) {
    events.emplace_back(kSoon, VolumesSetUp{volumes->uid, volumes->id, volume_failures_});
  } else if (const auto* resize = std::get_if<ResizePod>(&command)) {
    if (!silent_resize_) events.emplace_back(kSoon, PodResized{resize->id, resize->uid, resize_problem_});
  } else if (const auto* save = std::get_if<SaveCheckpoint>(&command)) {
    saved_.insert_or_assign(save->file, save->text);
  } else if (const auto* sandbox = std::get_if<RunSandbox>(&command)) {
    SandboxRan answer{sandbox->uid, {}, sandbox_problem_};
    if (sandbox_problem_.empty()) answer.ips.push_back("10.0.0." + std::to_string(++sandboxes_));
    events.emplace_back(kSoon, std::move(answer));
  } else if (const auto* ask = std::get_if<AskHttp>(&command)) {
    const int status = http_.contains(ask->ask.port) ? http_[ask->ask.port] : 200;
    const auto refused = make_error(ErrorCode::kServiceUnavailable, "connection refused");
    events.emplace_back(kSoon, HttpAnswered{ask->id, status == 0 ? Result<containers::HttpAnswer>(refused)
                                                                 : containers::HttpAnswer{status, {}, "body"}});
  } else if (const auto* run = std::get_if<RunInContainer>(&command)) {
    RanInContainer answer{.id = run->id, .exit_code = command_code_, .output = "said", .timed_out = false};
    events.emplace_back(kSoon, std::move(answer));
  } else if (const auto* tcp = std::get_if<TryTcp>(&command)) {
    const bool open = !http_.contains(tcp->port) || http_[tcp->port] != 0;
    const Outcome refused = make_error(ErrorCode::kServiceUnavailable, "connection refused");
    events.emplace_back(kSoon, TcpTried{tcp->id, open ? Outcome() : refused});
  } else if (const auto* health = std::get_if<AskGrpc>(&command)) {
    using End = containers::GrpcAnswer::End;
    const int status = http_.contains(health->port) ? http_[health->port] : 1;
    events.emplace_back(
        kSoon, GrpcAnswered{health->id,
                            {.end = status == 0 ? End::kNotConnected : End::kAnswered, .status = status, .text = {}}});
  } else if (const auto* reclaim = std::get_if<ReclaimNode>(&command)) {
    Reclaimed answer{reclaim->id, {}};
    for (const eviction::ReclaimAction action : reclaim->actions) {
      const bool images = action == eviction::ReclaimAction::kImages;
      answer.outcomes.push_back({.action = action,
                                 .deleted = images || reclaimable_ == Bytes{} ? 0 : 1,
                                 .freed = images ? Bytes{} : reclaimable_,
                                 .problem = images ? "no images here" : ""});
    }
    disk_available_ += reclaimable_;
    reclaimable_ = {};
    if (!silent_reclaim_) events.emplace_back(kSoon, std::move(answer));
  } else if (const auto* relief = std::get_if<RelieveMemory>(&command); relief != nullptr && !silent_relief_) {
    Relieved answer{relief->id, {}};
    for (const eviction::CacheReclaim& order : relief->pods) answer.outcomes.push_back(relieve(order));
    events.emplace_back(kSoon, std::move(answer));
  }
  return events;
}

eviction::ReliefOutcome ScriptedHost::relieve(const eviction::CacheReclaim& order) {
  api::FileCache& cache = page_caches_[order.uid];
  const auto take = [](std::uint64_t& from, std::uint64_t at_most) {
    const std::uint64_t taken = std::min(from, at_most);
    from -= taken;
    return taken;
  };
  const auto asked = static_cast<std::uint64_t>(order.bytes.count());
  const std::uint64_t inactive = take(cache.inactive_bytes, asked);
  const Bytes active{static_cast<std::int64_t>(take(cache.active_bytes, asked - inactive))};
  working_sets_[order.uid] -= active;
  available_ += active;
  eviction::ReliefOutcome outcome{.uid = order.uid, .asked = order.bytes, .freed = {}, .refaulted = {}};
  outcome.freed = Bytes{static_cast<std::int64_t>(inactive)} + active;
  if (cache.refaulted_bytes) outcome.refaulted = Bytes{static_cast<std::int64_t>(*cache.refaulted_bytes)};
  return outcome;
}

api::Summary ScriptedHost::summary(ObserveDepth depth, Now now) {
  for (const Release& release : releases_) {
    if (release.at > now.mono) continue;
    const auto used = working_sets_.extract(release.uid);
    if (used) available_ += used.mapped();
    const auto disk = disk_used_.extract(release.uid);
    if (disk) disk_available_ += disk.mapped();
  }
  std::erase_if(releases_, [&](const Release& release) { return release.at <= now.mono; });
  api::Summary seen;
  api::MemoryStats& memory = seen.node.memory.emplace();
  memory.time = now.wall;
  memory.available_bytes = static_cast<std::uint64_t>(available_.count());
  memory.working_set_bytes = static_cast<std::uint64_t>((kCapacity - available_).count());
  if (mem_available_) memory.mem_available_bytes = static_cast<std::uint64_t>(mem_available_->count());
  if (depth == ObserveDepth::kNodeMemory) return seen;
  api::FsStats& fs = seen.node.fs.emplace();
  fs.time = now.wall;
  fs.available_bytes = static_cast<std::uint64_t>(disk_available_.count());
  fs.capacity_bytes = static_cast<std::uint64_t>(kDiskCapacity.count());
  fs.inodes_free = 1'000'000;
  fs.inodes = 2'000'000;
  seen.node.image_fs = fs;
  seen.node.container_fs = fs;
  for (const auto& [uid, used] : working_sets_) {
    api::PodStats& pod = seen.pods.emplace_back();
    pod.uid = uid;
    pod.memory.emplace().working_set_bytes = static_cast<std::uint64_t>(used.count());
    if (const auto cache = page_caches_.find(uid); cache != page_caches_.end()) pod.file_cache = cache->second;
    if (const auto disk = disk_used_.find(uid); disk != disk_used_.end()) {
      api::ContainerStats& container = pod.containers.emplace_back();
      container.name = "c";
      container.logs.emplace().used_bytes = static_cast<std::uint64_t>(disk->second.count());
      pod.ephemeral_storage = container.logs;
    }
  }
  return seen;
}

}  // namespace spillway::agent
