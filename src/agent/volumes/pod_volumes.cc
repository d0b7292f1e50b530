#include "agent/volumes/pod_volumes.h"

#include "agent/volumes/claimed_volume.h"
#include "client/event_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::string_view kMemoryResource = "memory";

}  // namespace

PodVolumes::PodVolumes(AgentContext& context, Rng rng, api::ResourceList allocatable)
    : context_(context),
      allocatable_(std::move(allocatable)),
      data_(context, rng.fork("data")),
      tokens_(context, rng.fork("tokens")),
      claims_(context) {
  data_.when_read([this](const DataReader::Key& key, Now now) {
    std::vector<std::string> users;
    for (const auto& [uid, record] : records_)
      if (record.references.contains(key)) users.push_back(uid);
    for (const std::string& uid : users) {
      const auto found = records_.find(uid);
      if (found != records_.end()) advance(found->second, now);
    }
  });
  const auto advance_pod = [this](const std::string& uid, Now now) {
    const auto found = records_.find(uid);
    if (found != records_.end()) advance(found->second, now);
  };
  tokens_.when_answered(advance_pod);
  claims_.when_answered(advance_pod);
}

void PodVolumes::add(const std::shared_ptr<const api::Pod>& pod, std::optional<Bytes> memory_limit, Now now) {
  const auto [entry, added] = records_.try_emplace(pod->metadata.uid);
  if (!added) return;
  Record& record = entry->second;
  record.pod = pod;
  record.spec_source = pod;
  record.memory_limit = memory_limit;
  record.ready = !add_mounted(record, now);
  if (!record.ready) advance(record, now);
}

bool PodVolumes::add_mounted(Record& record, Now now) {
  const api::Pod& pod = *record.spec_source;
  const auto memory = allocatable_.find(kMemoryResource);
  const VolumeFacts facts{
      .pod_memory_limit = record.memory_limit,
      .allocatable_memory = memory == allocatable_.end() ? std::nullopt : std::optional(memory->second.bytes())};
  const std::size_t before = record.volumes.size();
  for (const api::Volume* spec : mounted_volumes(pod)) {
    if (std::ranges::any_of(record.volumes, [&](const Volume& each) { return each.spec->name == spec->name; }))
      continue;
    Volume& volume = record.volumes.emplace_back();
    volume.spec = spec;
    volume.has_payload = has_payload(*spec);
    volume.claim = claim_name_of(*spec);
    if (volume.claim) {
      volume.setup.name = spec->name;
      claims_.hold(pod, *volume.claim);
      continue;
    }
    Result<VolumeSetup> setup = setup_of(pod, *spec, facts);
    if (setup) {
      volume.setup = *std::move(setup);
    } else {
      volume.error = setup.error();
    }
    for (const DataReference& each : references_of(*spec)) {
      if (record.references.insert({pod.metadata.ns, each}).second) data_.hold({pod.metadata.ns, each});
    }
    for (const TokenWish& each : tokens_of(*spec)) tokens_.hold(record.pod, each);
  }
  for (std::size_t i = before; i < record.volumes.size(); ++i)
    if (record.volumes[i].error) fail(record, record.volumes[i], *record.volumes[i].error, now);
  return record.volumes.size() > before;
}

void PodVolumes::update(const std::shared_ptr<const api::Pod>& pod, Now now) {
  const auto found = records_.find(pod->metadata.uid);
  if (found == records_.end()) return;
  Record& record = found->second;
  const bool same = pod->metadata.labels == record.pod->metadata.labels &&
                    pod->metadata.annotations == record.pod->metadata.annotations;
  const bool debugged = pod->spec.ephemeral_containers.size() > record.pod->spec.ephemeral_containers.size();
  record.pod = pod;
  const bool more = debugged && follow_spec(record) && add_mounted(record, now);
  if (more) record.ready = false;
  if (!same || more) advance(record, now);
}

/// The volumes of a pod never change. False: they differ, so this is another pod.
bool PodVolumes::follow_spec(Record& record) {
  const std::vector<api::Volume>& now = record.pod->spec.volumes;
  std::vector<const api::Volume*> specs;
  for (const Volume& volume : record.volumes) {
    const auto found = std::ranges::find(now, volume.spec->name, &api::Volume::name);
    if (found == now.end() || !(*found == *volume.spec)) return false;
    specs.push_back(&*found);
  }
  for (std::size_t i = 0; i < specs.size(); ++i) record.volumes[i].spec = specs[i];
  record.spec_source = record.pod;
  return true;
}

void PodVolumes::remove(const std::string& uid) {
  const auto found = records_.find(uid);
  if (found == records_.end()) return;
  Record& record = found->second;
  if (record.timer) context_.api.cancel(*record.timer);
  for (const DataReader::Key& key : record.references) data_.release(key);
  tokens_.release(uid);
  claims_.release(uid);
  records_.erase(found);
}

bool PodVolumes::is_ready(const std::string& uid) const {
  const auto found = records_.find(uid);
  return found == records_.end() || found->second.ready;
}

bool PodVolumes::is_read(const Record& record, const api::Volume& volume) const {
  return std::ranges::all_of(
             references_of(volume),
             [&](const DataReference& each) { return data_.reading({record.pod->metadata.ns, each}).done; }) &&
         std::ranges::all_of(tokens_of(volume), [&](const TokenWish& each) {
           return tokens_.is_answered(record.pod->metadata.uid, each);
         });
}

/// Puts the files into the setup, if they are others than those there.
void PodVolumes::fill(Record& record, Volume& volume, Now now) {
  DataObjects objects;
  for (const DataReference& each : references_of(*volume.spec)) {
    const DataReader::Reading& reading = data_.reading({record.pod->metadata.ns, each});
    if (reading.document) objects.emplace(each, *reading.document);
    if (!reading.document && reading.error) return fail(record, volume, *reading.error, now);
  }
  const std::string& uid = record.pod->metadata.uid;
  const PayloadSources from{.objects = objects,
                            .allocatable = allocatable_,
                            .token = [&](const TokenWish& wish) { return tokens_.token(uid, wish, now); },
                            .fs_user = fs_user_of(*record.pod),
                            .has_fs_group = record.pod->spec.security.fs_group.has_value()};
  Result<Payload> payload = payload_of(*record.pod, *volume.spec, from);
  if (!payload) return fail(record, volume, payload.error(), now);
  if (const Outcome paths = check_payload_paths(*payload); !paths) return fail(record, volume, paths.error(), now);
  auto& files = std::get<VolumeFiles>(volume.setup.content).files;
  if (volume.made && volume.current && files == *payload) {
    volume.error.reset();
    return;
  }
  files = *std::move(payload);
  volume.error.reset();
  volume.asked = true;
}

void PodVolumes::resolve(Record& record, Volume& volume, Now now) {
  const std::string& uid = record.pod->metadata.uid;
  if (volume.error || !claims_.is_answered(uid, *volume.claim)) return;
  const auto found = claims_.volume(uid, *volume.claim);
  if (!found) return fail(record, volume, found.error(), now);
  if (const Outcome mode = check_volume_mode(**found, volume.spec->name); !mode)
    return fail(record, volume, mode.error(), now);
  Result<VolumeSetup> setup = setup_of_claimed(*record.pod, volume.spec->name, **found);
  if (!setup) return fail(record, volume, setup.error(), now);
  volume.claimed = *found;
  if (const Outcome node = check_node(**found, node_ ? node_() : api::ObjectMeta()); !node)
    return fail(record, volume, node.error(), now);
  volume.setup = *std::move(setup);
  volume.asked = true;
}

/// The error in upstream's words, which name the step that failed.
std::string PodVolumes::failure_text(const Record& record, const Volume& volume) {
  const std::string& name = volume.spec->name;
  const std::string& why = volume.error->message;
  if (!volume.claim) return fmt::format("MountVolume.SetUp failed for volume \"{}\" : {}", name, why);
  if (!volume.claimed) {
    return fmt::format(
        "Unable to attach or mount volumes: unmounted volumes=[{}], unattached volumes=[], failed to process "
        "volumes=[{}]: error processing PVC {}/{}: {}",
        name, name, record.pod->metadata.ns, *volume.claim, why);
  }
  std::string_view step = "MountVolume.SetUp failed";
  if (std::holds_alternative<LocalDirectory>(volume.setup.content))
    step = "MountVolume.NewMounter initialization failed";
  if (volume.setup.plugin.empty()) step = "MountVolume.NodeAffinity check failed";
  return fmt::format("{} for volume \"{}\" : {}", step, volume.claimed->metadata.name, why);
}

void PodVolumes::advance(Record& record, Now now) {
  if (record.command != 0) return;  // advance() is called again when the command is answered
  SetUpVolumes command{.uid = record.pod->metadata.uid, .id = 0, .volumes = {}};
  for (Volume& volume : record.volumes) {
    volume.asked = false;
    if (volume.held_back) continue;
    if (volume.has_payload) {
      if (is_read(record, *volume.spec)) fill(record, volume, now);
    } else if (volume.claim && !volume.claimed) {
      resolve(record, volume, now);
    } else {
      volume.asked = !volume.made && !volume.error;
    }
    if (volume.asked) command.volumes.push_back(volume.setup);
  }
  if (command.volumes.empty()) return check_ready(record, now);
  command.id = ++last_command_;
  record.command = command.id;
  context_.host_commands.emplace_back(std::move(command));
}

void PodVolumes::on_set_up(const VolumesSetUp& event, Now now) {
  const auto found = records_.find(event.uid);
  if (found == records_.end() || found->second.command != event.id) return;
  Record& record = found->second;
  record.command = 0;
  for (Volume& volume : record.volumes) {
    if (!std::exchange(volume.asked, false)) continue;
    const auto failed = std::ranges::find(event.failures, volume.spec->name, &VolumeFailure::volume);
    volume.current = failed == event.failures.end();
    volume.made = volume.made || volume.current;
    volume.held_back = !volume.current;
    if (!volume.current) fail(record, volume, make_error(ErrorCode::kInternalError, "{}", failed->message), now);
  }
  advance(record, now);
}

/// Each failure is reported; the next attempt follows after a growing wait.
void PodVolumes::fail(Record& record, Volume& volume, Error error, Now now) {
  api::ObjectReference about = client::reference_to(*record.pod);
  about.resource_version.clear();
  const bool reported = record.timer && volume.error == error;
  volume.error = std::move(error);
  if (!reported)
    context_.events.record(about, client::EventType::kWarning, "FailedMount", failure_text(record, volume), now);
  if (record.timer) return;
  record.timer = context_.api.at(now.mono + record.back_off.next(),
                                 [this, uid = record.pod->metadata.uid](Now later) { retry(uid, later); });
}

void PodVolumes::retry(const std::string& uid, Now now) {
  const auto found = records_.find(uid);
  if (found == records_.end()) return;
  Record& record = found->second;
  record.timer.reset();
  std::set<DataReader::Key> again;
  for (Volume& volume : record.volumes) {
    if (!volume.error) continue;
    volume.held_back = false;
    for (const DataReference& each : references_of(*volume.spec)) again.insert({record.pod->metadata.ns, each});
    if (volume.setup.name.empty()) fail(record, volume, *volume.error, now);  // not supported: reported again
    if (!volume.has_payload && !volume.setup.name.empty()) volume.error.reset();
    if (volume.claim && !volume.made) {
      volume.claimed.reset();  // the bound volume is read again
      volume.setup = {.name = volume.spec->name, .plugin = {}, .content = {}, .fs_group = {}};
    }
  }
  claims_.ask_again(uid);
  for (const DataReader::Key& key : again) data_.read_again(key);
  tokens_.ask_again(uid);
  advance(record, now);
}

void PodVolumes::check_ready(Record& record, Now now) {
  const bool failing = std::ranges::any_of(record.volumes, [](const Volume& each) { return each.error.has_value(); });
  if (!failing) record.back_off.reset();
  if (record.ready || !std::ranges::all_of(record.volumes, &Volume::made)) return;
  record.ready = true;
  if (on_ready_) on_ready_(record.pod->metadata.uid, now);
}

api::Json PodVolumes::state() const {
  api::Json waiting = api::Json::array();
  for (const auto& [uid, record] : records_) {
    if (record.ready) continue;
    api::Json volumes = api::Json::object();
    for (const Volume& volume : record.volumes)
      if (!volume.made) volumes[volume.spec->name] = volume.error ? volume.error->message : "is being made";
    waiting.if_array()->push_back(api::Json::object({{"pod", record.pod->key().text()}, {"volumes", volumes}}));
  }
  return api::Json::object({{"pods", static_cast<std::uint64_t>(records_.size())}, {"waiting", waiting}});
}

}  // namespace spillway::agent
