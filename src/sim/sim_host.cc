#include "sim/sim_host.h"

#include "agent/contract/container_end.h"
#include "api/text/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

namespace spillway::sim {
namespace {

constexpr Bytes kMachineOverhead = mebibytes(8);  // memory that the node uses besides pods
constexpr Bytes kDiskOverhead = gibibytes(2);
constexpr std::int64_t kProcessesOfTheMachine = 100;
constexpr std::uint64_t kInodes = 6'000'000;
constexpr std::uint64_t kInodesUsed = 200'000;
constexpr std::uint8_t kFirstPodAddress = 2;  // 1 is the node's
constexpr std::uint8_t kLastPodAddress = 254;
constexpr Duration kStallWakeInterval = seconds(1);

/// The quantity after `flag` in argv, nullopt if absent or malformed. "60Mi/s" counts as 60Mi.
std::optional<Bytes> amount_after(const std::vector<std::string>& argv, std::string_view flag) {
  for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
    if (argv[i] != flag) continue;
    std::string_view text = argv[i + 1];
    if (text.ends_with("/s")) text.remove_suffix(2);
    const auto quantity = api::parse_quantity(text);
    return quantity ? std::optional(quantity->bytes()) : std::nullopt;
  }
  return std::nullopt;
}

/// The words that a container runs. A machine with images gets them with the definition.
std::vector<std::string> container_words(const agent::StartContainer& command) {
  std::vector<std::string> words = command.argv;
  if (!words.empty() || command.definition == nullptr) return words;
  for (const api::Container& each : command.definition->spec.containers) {
    if (each.name != command.name) continue;
    words = each.command;
    words.insert(words.end(), each.args.begin(), each.args.end());
  }
  return words;
}

std::uint64_t to_unsigned(Bytes bytes) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes.count(), 0));
}

}  // namespace

SimHost::SimHost(VirtualTime& time, Rng rng, Size size, Deliver deliver)
    : time_(time), rng_(rng), size_(size), deliver_(std::move(deliver)) {}

SimHost::~SimHost() {
  alive_.end();
  if (oom_check_) time_.cancel(*oom_check_);
}

void SimHost::send(Duration delay, agent::HostEvent event) {
  send(delay, std::make_shared<const agent::HostEvent>(std::move(event)));
}

void SimHost::send(Duration delay, std::shared_ptr<const agent::HostEvent> event) {
  time_.after(delay, alive_.guard([this, listener = listeners_, event = std::move(event)]() mutable {
    if (listener == listeners_) deliver_(std::move(event));
  }));
}

void SimHost::attach(Deliver deliver) {
  deliver_ = std::move(deliver);
  ++listeners_;
  send(milliseconds(1), found());
}

agent::PodsFound SimHost::found() const {
  agent::PodsFound all;
  for (const auto& [uid, pod] : pods_) {
    agent::FoundPod& there = all.pods.emplace_back();
    there.uid = uid;
    there.has_sandbox = pod.has_sandbox;
    there.ips = pod.addresses(pod_network_);
    for (const auto& [name, container] : pod.containers) {
      agent::FoundContainer& each = there.containers.emplace_back();
      each.name = name;
      each.attempt = container.attempt;
      each.image = container.image;
      each.started_at = container.started_wall;
      if (container.ended) each.ended = agent::terminated_by(*container.ended);
    }
  }
  return all;
}

void SimHost::execute(agent::HostCommand command) {
  if (const auto* create = std::get_if<agent::CreatePod>(&command)) {
    PodEntry& pod = pods_[create->uid];
    pod.key = create->pod;
    pod.host_network = create->host_network;
  } else if (const auto* start_command = std::get_if<agent::StartContainer>(&command)) {
    start(*start_command);
  } else if (const auto* stop = std::get_if<agent::StopContainer>(&command)) {
    stop_container(*stop);
  } else if (const auto* stop_all = std::get_if<agent::StopPod>(&command)) {
    stop_pod(stop_all->uid, stop_all->grace);
  } else if (const auto* remove = std::get_if<agent::RemovePod>(&command)) {
    pods_.erase(remove->uid);
    caches_.erase(remove->uid);
  } else if (const auto* observe = std::get_if<agent::Observe>(&command)) {
    this->observe(*observe);
  } else if (const auto* limit = std::get_if<agent::LimitGroup>(&command)) {
    send(milliseconds(1), agent::GroupLimited{limit->group, {}});
  } else if (const auto* volumes = std::get_if<agent::SetUpVolumes>(&command)) {
    send(milliseconds(1) + disk_delay_, agent::VolumesSetUp{volumes->uid, volumes->id, {}});
  } else if (const auto* sandbox = std::get_if<agent::RunSandbox>(&command)) {
    run_sandbox(sandbox->uid);
  } else if (const auto* file = std::get_if<agent::ReadVolumeFile>(&command)) {
    send(milliseconds(1), agent::VolumeFileRead{file->uid, file->id,
                                                make_error(ErrorCode::kNotFound, "simulated volumes have no files")});
  } else if (const auto* run = std::get_if<agent::RunInContainer>(&command)) {
    run_inside(*run);
  } else if (const auto* ask = std::get_if<agent::AskHttp>(&command)) {
    send(milliseconds(1),
         agent::HttpAnswered{ask->id, containers::HttpAnswer{.status = 200, .location = {}, .body = {}}});
  } else if (const auto* connection = std::get_if<agent::TryTcp>(&command)) {
    send(milliseconds(1), agent::TcpTried{connection->id, {}});
  } else if (const auto* health = std::get_if<agent::AskGrpc>(&command)) {
    send(milliseconds(1),
         agent::GrpcAnswered{health->id, {.end = containers::GrpcAnswer::End::kAnswered, .status = 1, .text = {}}});
  } else if (const auto* reclaim = std::get_if<agent::ReclaimNode>(&command)) {
    agent::Reclaimed answer{reclaim->id, {}};
    for (const eviction::ReclaimAction action : reclaim->actions) {
      answer.outcomes.push_back(free(action));
    }
    send(milliseconds(1), std::move(answer));
  } else if (const auto* resize = std::get_if<agent::ResizePod>(&command)) {
    send(milliseconds(1), agent::PodResized{resize->id, resize->uid, {}});
  } else if (const auto* relieve = std::get_if<agent::RelieveMemory>(&command)) {
    agent::Relieved answer{relieve->id, {}};
    for (const eviction::CacheReclaim& order : relieve->pods)
      answer.outcomes.push_back(caches_.reclaim(order, time_.now().mono));
    send(milliseconds(20), std::move(answer));
  }
}

void SimHost::read_files(const std::string& uid, const FileReading& files) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.running() == 0) return;
  const Instant now = time_.now().mono;
  Bytes rate = files.rate_per_second;
  if (files.over > Duration::zero()) {
    const auto bytes = static_cast<double>((files.target - caches_[uid].at(now)).count());
    rate = Bytes{static_cast<std::int64_t>(bytes / std::chrono::duration<double>(files.over).count())};
  }
  caches_[uid].read(files.target, std::max(rate, Bytes{}), files.reading, now);
  expect_oom();
}

agent::ReclaimOutcome SimHost::free(eviction::ReclaimAction action) {
  agent::ReclaimOutcome outcome{.action = action, .deleted = 0, .freed = {}, .problem = {}};
  if (action != eviction::ReclaimAction::kImages || images_ == Bytes{0}) {
    outcome.problem = "nothing is kept here";
  } else if (images_stay_) {
    outcome.problem = "the images cannot be deleted";
  } else {
    outcome.deleted = 1;
    outcome.freed = std::exchange(images_, Bytes{0});
  }
  return outcome;
}

void SimHost::keep_images(Bytes bytes, bool undeletable) {
  images_ = bytes;
  images_stay_ = undeletable;
}

Now SimHost::now() const {
  Now now = time_.now();
  now.wall += std::chrono::duration_cast<microseconds>(clock_ahead_);
  return now;
}

void SimHost::start(const agent::StartContainer& command) {
  PodEntry& pod = pods_[command.uid];
  if (pod.running() == 0) pod.processes = Growth();
  Container& container = pod.containers[command.name];
  container.attempt = command.attempt;
  const std::vector<std::string> words = container_words(command);
  container.usage_max = amount_after(words, "--memory").value_or(mebibytes(10));
  container.rate_per_second = amount_after(words, "--rate").value_or(Bytes{0});
  container.grows_since = time_.now().mono;
  container.usage_before = Bytes{0};
  container.started_wall = now().wall;
  container.image = command.image;
  container.running = true;
  container.ended.reset();
  const auto delay = disk_delay_ + milliseconds(5) + microseconds(static_cast<std::int64_t>(rng_.below(20'000)));
  send(delay, agent::ContainerStarted{command.uid, command.name, command.attempt, ++last_pid_, now().wall});
  expect_oom();
}

void SimHost::exit_after(const std::string& uid, const std::string& container, Duration after, std::int32_t code) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return;
  const auto found = pod->second.containers.find(container);
  if (found == pod->second.containers.end() || !found->second.running) return;
  time_.after(after, alive_.guard([this, uid, container, code, attempt = found->second.attempt] {
    const auto later = pods_.find(uid);
    if (later == pods_.end()) return;
    const auto one = later->second.containers.find(container);
    if (one != later->second.containers.end() && one->second.attempt == attempt) exit(uid, container, code, 0, false);
  }));
}

void SimHost::run_sandbox(const std::string& uid) {
  PodEntry& pod = pods_[uid];
  pod.has_sandbox = true;
  if (!pod_network_.empty() && !pod.host_network && pod.address == 0) {
    std::array<bool, kLastPodAddress + 1> taken{};
    for (const auto& [other, entry] : pods_) taken.at(entry.address) = true;
    pod.address = kFirstPodAddress;
    while (taken.at(pod.address) && pod.address < kLastPodAddress) ++pod.address;
  }
  send(milliseconds(1) + disk_delay_, agent::SandboxRan{.uid = uid, .ips = pod.addresses(pod_network_), .problem = {}});
}

std::vector<std::string> SimHost::PodEntry::addresses(const std::string& network) const {
  if (address == 0) return {};
  return {fmt::format("{}{}", network, address)};
}

/// "false" fails, "sleep SECONDS" takes that long, everything else works at once.
void SimHost::run_inside(const agent::RunInContainer& command) {
  agent::RanInContainer answer{.id = command.id, .exit_code = 0, .output = {}, .timed_out = false};
  const auto pod = pods_.find(command.uid);
  const auto running = [&] {
    const auto found = pod->second.containers.find(command.container);
    return found != pod->second.containers.end() && found->second.running;
  };
  if (pod == pods_.end() || !running()) {
    answer.exit_code = make_error(ErrorCode::kNotFound, "container not found (\"{}\")", command.container);
    return send(milliseconds(1), std::move(answer));
  }
  const std::string program = command.argv.empty() ? std::string() : command.argv.front();
  if (program == "false") answer.exit_code = 1;
  Duration takes = milliseconds(2);
  if (program == "sleep") takes = seconds(amount_after(command.argv, "sleep").value_or(Bytes{0}).count());
  if (command.timeout > Duration::zero() && takes > command.timeout) {
    takes = command.timeout;
    answer.timed_out = true;
  }
  send(takes, std::move(answer));
}

void SimHost::exit(const std::string& uid, const std::string& name, std::int32_t code, std::int32_t signal, bool oom) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return;
  const auto found = pod->second.containers.find(name);
  if (found == pod->second.containers.end() || !found->second.running) return;
  Container& container = found->second;
  container.running = false;
  if (pod->second.running() == 0) caches_.erase(uid);
  container.ended = agent::ContainerExited{.uid = uid,
                                           .name = name,
                                           .attempt = container.attempt,
                                           .exit_code = code,
                                           .signal = signal,
                                           .oom_killed = oom,
                                           .started_at = container.started_wall,
                                           .finished_at = now().wall};
  send(microseconds(100), *container.ended);
}

bool SimHost::ignores_term(const std::string& uid, Duration grace) const {
  const auto pod = pods_.find(uid);
  return grace > Duration::zero() && pod != pods_.end() && pod->second.ending == Ending::kAtGrace;
}

Duration SimHost::time_to_end(const std::string& uid, Duration grace, Duration prompt) const {
  return ignores_term(uid, grace) ? grace : std::min(grace, prompt);
}

void SimHost::stop_container(const agent::StopContainer& command) {
  const Stop stop{.container = command.name, .killed = ignores_term(command.uid, command.grace)};
  time_.after(time_to_end(command.uid, command.grace, milliseconds(50)),
              alive_.guard([this, uid = command.uid, stop] { end(uid, stop); }));
}

void SimHost::stop_pod(const std::string& uid, Duration grace) {
  const Duration prompt = milliseconds(10 + static_cast<std::int64_t>(rng_.below(100)));
  const Stop stop{.container = {}, .killed = grace == Duration::zero() || ignores_term(uid, grace)};
  time_.after(time_to_end(uid, grace, prompt), alive_.guard([this, uid, stop] { end(uid, stop); }));
}

void SimHost::end(const std::string& uid, const Stop& stop) {
  const auto pod = pods_.find(uid);
  if (pod != pods_.end() && pod->second.ending == Ending::kNever && pod->second.running() > 0) {
    auto& waiting = pod->second.waiting;
    if (std::ranges::find(waiting, stop) == waiting.end()) waiting.push_back(stop);
    return;
  }
  const std::int32_t code = stop.killed ? 137 : 143;
  const std::int32_t signal = stop.killed ? 9 : 15;
  if (!stop.container.empty()) return exit(uid, stop.container, code, signal, false);
  if (pod != pods_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, container] : pod->second.containers) names.push_back(name);
    for (const std::string& name : names) exit(uid, name, code, signal, false);
    pod->second.disk = Growth();
  }
  send(microseconds(200) + disk_delay_, agent::PodStopped{uid});
}

void SimHost::set_ending(const std::string& uid, Ending ending) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return;
  pod->second.ending = ending;
  if (ending == Ending::kNever) return;
  for (const Stop& stop : std::exchange(pod->second.waiting, {})) end(uid, stop);
}

Bytes SimHost::usage_of(const Container& container) const {
  if (!container.running) return Bytes{0};
  if (container.rate_per_second == Bytes{0}) return container.usage_max;
  const auto grown_ms = std::chrono::duration_cast<milliseconds>(time_.now().mono - container.grows_since).count();
  const auto grown = static_cast<double>(container.rate_per_second.count()) * static_cast<double>(grown_ms) / 1000.0;
  return std::min(container.usage_before + Bytes{static_cast<std::int64_t>(grown)}, container.usage_max);
}

Bytes SimHost::usage_of_pod(const std::string& uid) const {
  Bytes total{0};
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return total;
  for (const auto& [name, container] : pod->second.containers) total += usage_of(container);
  return total;
}

void SimHost::use_memory(const std::string& uid, Bytes target, Bytes rate_per_second) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return;
  std::vector<Container*> running;
  for (auto& [name, container] : pod->second.containers) {
    if (container.running) running.push_back(&container);
  }
  const auto parts = static_cast<std::int64_t>(running.size());
  for (Container* const container : running) {
    container->usage_before = usage_of(*container);
    container->grows_since = time_.now().mono;
    container->usage_max = Bytes{target.count() / parts};
    container->rate_per_second = Bytes{rate_per_second.count() / parts};
  }
  expect_oom();
}

std::int64_t SimHost::PodEntry::running() const {
  return std::ranges::count_if(containers, [](const auto& entry) { return entry.second.running; });
}

std::int64_t SimHost::PodEntry::processes_at(Instant now) const {
  const std::int64_t own = running();
  return own == 0 ? 0 : own + processes.at(now);
}

void SimHost::use_disk(const std::string& uid, Bytes target, Bytes rate_per_second) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.running() == 0) return;
  pod->second.disk.aim(target.count(), rate_per_second.count(), time_.now().mono);
}

Bytes SimHost::disk_of_pod(const std::string& uid) const {
  const auto pod = pods_.find(uid);
  return Bytes{pod == pods_.end() ? 0 : pod->second.disk.at(time_.now().mono)};
}

void SimHost::fork_processes(const std::string& uid, std::int64_t target, std::int64_t rate_per_second) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return;
  const std::int64_t own = pod->second.running();
  if (own > 0) pod->second.processes.aim(std::max<std::int64_t>(target - own, 0), rate_per_second, time_.now().mono);
}

std::int64_t SimHost::processes_of_pod(const std::string& uid) const {
  const auto pod = pods_.find(uid);
  return pod == pods_.end() ? 0 : pod->second.processes_at(time_.now().mono);
}

Bytes SimHost::usage() const {
  Bytes total = kMachineOverhead;
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod.containers) total += usage_of(container);
  }
  return total;
}

/// The swapped bytes: usage beyond the memory, at most the size of the swap.
Bytes SimHost::swapped() const {
  if (size_.swap == Bytes{0}) return size_.swap;
  return std::clamp(usage() - size_.memory, Bytes{0}, size_.swap);
}

Bytes SimHost::in_memory(Bytes used) const {
  const Bytes out = swapped();
  if (out == Bytes{0}) return used;
  const double share = static_cast<double>(out.count()) / static_cast<double>(usage().count());
  return used - Bytes{static_cast<std::int64_t>(static_cast<double>(used.count()) * share)};
}

/// Wakes the listener for stalls as the kernel's trigger does: at most once in a while.
void SimHost::report_stall() {
  const Instant now = time_.now().mono;
  if (stall_reported_at_ && now - *stall_reported_at_ < kStallWakeInterval) return;
  stall_reported_at_ = now;
  send(microseconds(100), agent::PressureWake{"psi"});
}

void SimHost::expect_oom() {
  if (oom_check_) return;
  const bool growing = std::any_of(pods_.begin(), pods_.end(), [this](const auto& pod) {
    return std::any_of(pod.second.containers.begin(), pod.second.containers.end(), [this](const auto& entry) {
      return entry.second.running && usage_of(entry.second) < entry.second.usage_max;
    });
  });
  const Instant now = time_.now().mono;
  if (!growing && !caches_.any_grows(now) && usage() + caches_.total(now) <= size_.memory) return;
  oom_check_ = time_.after(oom_check_interval_, [this] {
    oom_check_.reset();
    const Instant now = time_.now().mono;
    caches_.give_up(usage() + caches_.total(now) - size_.memory, now);
    if (usage() > size_.memory + size_.swap) kill_largest();
    if (swapped() > Bytes{0}) report_stall();
    expect_oom();
  });
}

void SimHost::kill_largest() {
  std::pair<std::string, std::string> victim;
  Bytes most{-1};
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod.containers) {
      if (container.running && pod.ending != Ending::kNever && usage_of(container) > most) {
        most = usage_of(container);
        victim = {uid, name};
      }
    }
  }
  if (most < Bytes{0}) return;
  ++kernel_oom_kills_;
  exit(victim.first, victim.second, 137, 9, true);
}

namespace {

/// `inactive`: the part of `cache` that is no part of the working set.
api::MemoryStats memory_stats(Bytes used, Bytes cache, Bytes inactive, WallTime wall) {
  return {.time = wall,
          .available_bytes = std::nullopt,
          .usage_bytes = to_unsigned(used + cache),
          .working_set_bytes = to_unsigned(used + cache - inactive),
          .rss_bytes = to_unsigned(used)};
}

api::FsStats disk_stats(Bytes used, WallTime wall) {
  api::FsStats stats;
  stats.time = wall;
  stats.used_bytes = to_unsigned(used);
  return stats;
}

}  // namespace

void SimHost::observe(const agent::Observe& command) {
  std::shared_ptr<agent::HostEvent> event;
  if (command.depth == agent::ObserveDepth::kWhole) {
    std::swap(observations_.front(), observations_.back());
    if (observations_.front().use_count() != 1) observations_.front() = nullptr;
    if (!observations_.front()) observations_.front() = std::make_shared<agent::HostEvent>(agent::Observed());
    event = observations_.front();
  } else {
    event = std::make_shared<agent::HostEvent>(agent::Observed());
  }
  auto& seen = std::get<agent::Observed>(*event);
  seen.id = command.id;
  seen.depth = command.depth;
  seen.layout.emplace();
  summarize(command.depth, *seen.summary);
  const Duration disk = command.depth == agent::ObserveDepth::kWhole ? disk_delay_ : Duration();
  send(milliseconds(1) + disk, std::shared_ptr<const agent::HostEvent>(std::move(event)));
}

/// `summary`: empty, or an earlier one of this machine, whose memory is reused.
void SimHost::summarize(agent::ObserveDepth depth, api::Summary& summary) const {
  const WallTime wall = now().wall;
  summary.node = api::NodeStats();
  const Bytes total = usage() - swapped();
  // Between two checks of the kernel's the cache may be a little larger than the free memory.
  const Bytes cache = std::clamp(caches_.total(time_.now().mono), Bytes{}, std::max(size_.memory - total, Bytes{}));
  const Bytes inactive = std::min(caches_.inactive(time_.now().mono), cache);
  summary.node.memory = memory_stats(total, cache, inactive, wall);
  summary.node.memory->available_bytes = to_unsigned(size_.memory - total - cache + inactive);
  if (size_.swap > Bytes{0}) {
    const Bytes left = size_.swap - swapped();
    summary.node.memory->swap_left_bytes = left.count();
    summary.node.swap = api::SwapStats{wall, to_unsigned(left), to_unsigned(swapped())};
  }
  if (depth == agent::ObserveDepth::kNodeMemory) return;
  add_disk_and_processes(summary.node);
  summary.pods.resize(pods_.size());
  auto stats = summary.pods.begin();
  for (const auto& [uid, pod] : pods_) add_stats(uid, pod, *stats++);
}

void SimHost::add_disk_and_processes(api::NodeStats& node) const {
  const Now now = this->now();
  Bytes written = kDiskOverhead + images_;
  std::int64_t processes = kProcessesOfTheMachine;
  for (const auto& [uid, pod] : pods_) {
    written += Bytes{pod.disk.at(now.mono)};
    processes += pod.processes_at(now.mono);
  }
  written = std::min(written, size_.disk);
  api::FsStats& fs = node.fs.emplace(disk_stats(written, now.wall));
  fs.capacity_bytes = to_unsigned(size_.disk);
  fs.available_bytes = to_unsigned(size_.disk - written);
  fs.inodes = kInodes;
  fs.inodes_used = kInodesUsed;
  fs.inodes_free = kInodes - kInodesUsed;
  node.image_fs = fs;
  node.container_fs = fs;
  node.rlimit =
      api::RlimitStats{.time = now.wall, .max_pid = kPidsMax, .running_processes = std::min(processes, kPidsMax)};
}

/// The bytes that a pod writes are in the layers of its containers, in equal parts.
void SimHost::add_stats(const std::string& uid, const PodEntry& pod, api::PodStats& stats) const {
  const Now now = this->now();
  const Bytes written{pod.disk.at(now.mono)};
  if (stats.uid != uid) {  // the entry belonged to another pod
    stats.uid = uid;
    stats.ns = pod.key.ns;
    stats.name = pod.key.name;
  }
  stats.ephemeral_storage = disk_stats(written, now.wall);
  stats.process_count = static_cast<std::uint64_t>(pod.processes_at(now.mono));
  stats.containers.resize(pod.containers.size());
  const Bytes part{pod.containers.empty() ? 0 : written.count() / static_cast<std::int64_t>(pod.containers.size())};
  Bytes pod_usage{0};
  auto of_container = stats.containers.begin();
  const PageCache of_pod = caches_.of(uid);
  Bytes cache = of_pod.at(now.mono);
  Bytes inactive = of_pod.inactive(now.mono);
  stats.file_cache = api::FileCache{.inactive_bytes = to_unsigned(inactive),
                                    .active_bytes = to_unsigned(cache - inactive),
                                    .refaulted_bytes = to_unsigned(of_pod.refaulted(now.mono))};
  const Bytes pod_cache = cache;
  const Bytes pod_inactive = inactive;
  for (const auto& [name, container] : pod.containers) {
    const Bytes used = in_memory(usage_of(container));
    pod_usage += used;
    const bool reads = container.running;  // the first running container does the pod's reading
    api::ContainerStats& each = *of_container++;
    each.name = name;
    each.memory = memory_stats(used, reads ? std::exchange(cache, Bytes{}) : Bytes{},
                               reads ? std::exchange(inactive, Bytes{}) : Bytes{}, now.wall);
    each.rootfs = disk_stats(part, now.wall);
  }
  stats.memory = memory_stats(pod_usage, pod_cache, pod_inactive, now.wall);
}

agent::MachineInfo SimHost::machine_info(const std::string& node) const {
  return {.machine_id = node,
          .system_uuid = node,
          .boot_id = node,
          .kernel_version = "6.1.0-sim",
          .os_image = "Simulated",
          .hostname = node,
          .internal_ip = "127.0.0.1",
          .container_runtime_version = "sim://1",
          .cpu_milli = 4000,
          .memory = size_.memory,
          .ephemeral_storage = size_.disk,
          .pids_max = kPidsMax};
}

std::map<std::string, api::PodKey> SimHost::running() const {
  std::map<std::string, api::PodKey> pods;
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod.containers) {
      if (container.running) pods.emplace(uid, pod.key);
    }
  }
  return pods;
}

}  // namespace spillway::sim
