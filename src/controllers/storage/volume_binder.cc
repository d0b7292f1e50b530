#include "controllers/storage/volume_binder.h"

#include "policy/storage/claim_rules.h"
#include "policy/storage/volume_rules.h"

#include <fmt/format.h>

#include <string_view>

namespace spillway::controllers {

namespace {

constexpr std::string_view kClaimWork = "claim/";
constexpr std::string_view kVolumeWork = "volume/";

}  // namespace

VolumeBinder::VolumeBinder(Parts parts, telemetry::Registry& metrics)
    : parts_(parts), queue_metrics_(metrics, "persistentvolume-binder") {
  parts_.storage.claims().listen(
      {[this](const auto& before, const auto& after, Now now) { on_claim(before, after, now); }});
  parts_.storage.volumes().listen(
      {[this](const auto& before, const auto& after, Now now) { on_volume(before, after, now); }});
  parts_.storage.classes().listen(
      {[this](const auto& before, const auto& after, Now now) { on_class(before, after, now); }});
  parts_.users.when_changed([this](const client::ObjectKey& claim, Now now) {
    const ClaimPtr found = parts_.storage.claims().find(claim);
    if (found && !storage::is_bind_completed(*found)) touch_claim(claim, now);
  });
}

void VolumeBinder::start(Now now) {
  started_ = true;
  for (const auto& [name, volume] : parts_.storage.volumes().all()) touch_volume(name, now);
  for (const auto& [key, claim] : parts_.storage.claims().all()) touch_claim(key, now);
}

void VolumeBinder::touch_claim(const client::ObjectKey& key, Now now) {
  if (started_) queue_.add(fmt::format("{}{}", kClaimWork, key), now.mono);
}

void VolumeBinder::touch_volume(const std::string& name, Now now) {
  if (started_) queue_.add(fmt::format("{}{}", kVolumeWork, name), now.mono);
}

void VolumeBinder::touch_waiting(const std::string& storage_class, Now now) {
  if (!started_) return;
  for (const client::ObjectKey& key : parts_.storage.waiting(storage_class)) touch_claim(key, now);
}

void VolumeBinder::on_claim(const ClaimPtr& before, const ClaimPtr& after, Now now) {
  const api::PersistentVolumeClaim& claim = after ? *after : *before;
  const client::ObjectKey key = client::key_of(claim.metadata);
  if (!after) recorded_.erase(fmt::format("{}{}", kClaimWork, key));
  touch_claim(key, now);
  for (const std::string& volume : parts_.storage.reserved_for(key)) touch_volume(volume, now);
}

void VolumeBinder::on_volume(const storage::VolumePtr& before, const storage::VolumePtr& after, Now now) {
  touch_volume((after ? after : before)->metadata.name, now);
  for (const storage::VolumePtr& volume : {before, after}) {
    if (!volume) continue;
    if (volume->claim_ref) touch_claim(claim_key(*volume->claim_ref), now);
  }
  const bool became_free = after && !after->claim_ref && after->status.phase == "Available" &&
                           (!before || before->claim_ref || before->status.phase != "Available" ||
                            before->metadata.labels != after->metadata.labels || before->capacity != after->capacity);
  const bool appeared_or_vanished = !before || !after;
  if (became_free || appeared_or_vanished) touch_waiting(storage::class_of(after ? *after : *before), now);
  if (!after && before->claim_ref == std::nullopt) return;
  if (!after) touch_claim(claim_key(*before->claim_ref), now);
}

void VolumeBinder::on_class(const ClassPtr& before, const ClassPtr& after, Now now) {
  touch_waiting((after ? after : before)->metadata.name, now);
  touch_waiting({}, now);  // perhaps the default
}

void VolumeBinder::run(Now now) {
  if (!started_) return;
  for (int syncs = 0; syncs < kSyncsMax && calls_ < kCallsMax; ++syncs) {
    const std::optional<std::string> work = queue_metrics_.take(queue_, now.mono);
    if (!work) break;
    if (work->starts_with(kClaimWork)) {
      sync_claim(work->substr(kClaimWork.size()), now);
    } else {
      sync_volume(work->substr(kVolumeWork.size()), now);
    }
  }
  queue_metrics_.show(queue_, now.mono);
  arm();
}

/// With the maximum of calls in flight, the end of one of them is the next event.
void VolumeBinder::arm() {
  const std::optional<Instant> due = calls_ < kCallsMax ? queue_.next_due() : std::nullopt;
  wake_up_.set(parts_.client, due);
}

void VolumeBinder::sync_claim(const client::ObjectKey& key, Now now) {
  const std::string work = fmt::format("{}{}", kClaimWork, key);
  const ClaimPtr claim = parts_.storage.claims().find(key);
  if (!claim) {
    queue_.done(work);
    return queue_.forget(work);
  }
  const storage::ClaimView view{
      .claim = claim.get(),
      .named = claim->volume_name.empty() ? nullptr : parts_.storage.volumes().find(claim->volume_name),
      .volumes = parts_.storage.volumes_for(*claim),
      .storage_class = parts_.storage.classes().find(storage::class_of(*claim)),
      .default_class = storage::names_no_class(*claim) ? parts_.storage.default_class() : std::string(),
      .waiting_pods = parts_.users.waiting(key)};
  const storage::StorageStep step = storage::decide_claim(view);
  if (step.event) {
    record_event(work, client::reference_to(*claim), *step.event, now);
  } else {
    recorded_.erase(work);
  }
  if (step.write) return send(work, *step.write);
  queue_.done(work);
  queue_.forget(work);
}

void VolumeBinder::sync_volume(const std::string& name, Now now) {
  const std::string work = fmt::format("{}{}", kVolumeWork, name);
  const storage::VolumePtr volume = parts_.storage.volumes().find(name);
  if (!volume) {
    queue_.done(work);
    return queue_.forget(work);
  }
  ClaimPtr claim;
  if (volume->claim_ref) claim = parts_.storage.claims().find(claim_key(*volume->claim_ref));
  if (claim && claim->metadata.uid != volume->claim_ref->uid) claim = nullptr;
  const storage::VolumeStep decided =
      storage::decide_volume({.volume = volume.get(), .claim = claim.get(), .claim_is_gone = false});
  if (decided.ask_for_claim) return ask_for_claim(work, volume);
  if (decided.step.event) {
    const storage::StorageEvent& event = *decided.step.event;
    parts_.events.record(client::reference_to(*volume),
                         event.warning ? client::EventType::kWarning : client::EventType::kNormal, event.reason,
                         event.message, now);
  }
  if (decided.step.write) return send(work, *decided.step.write);
  queue_.done(work);
  queue_.forget(work);
}

void VolumeBinder::record_event(const std::string& work, const api::ObjectReference& about,
                                const storage::StorageEvent& event, Now now) {
  std::string& last = recorded_[work];
  if (last == event.message) return;
  last = event.message;
  parts_.events.record(about, event.warning ? client::EventType::kWarning : client::EventType::kNormal, event.reason,
                       event.message, now);
}

void VolumeBinder::send(const std::string& work, const storage::StorageWrite& write) {
  ++calls_;
  parts_.client.patch(path_of(write), client::PatchType::kMerge, write.patch,
                      [this, work](const Result<api::Json>& outcome, Now now) {
                        end_call(work, outcome ? Outcome() : Outcome(outcome.error()), now);
                      });
}

void VolumeBinder::ask_for_claim(const std::string& work, const storage::VolumePtr& volume) {
  ++calls_;
  const std::string path =
      client::object_path("v1", "persistentvolumeclaims", volume->claim_ref->ns, volume->claim_ref->name);
  parts_.client.get(path, [this, work, volume](const Result<api::Json>& outcome, Now now) {
    on_claim_read(work, *volume, outcome, now);
  });
}

void VolumeBinder::on_claim_read(const std::string& work, const api::PersistentVolume& volume,
                                 const Result<api::Json>& outcome, Now now) {
  const bool missing = !outcome && outcome.error().code == ErrorCode::kNotFound;
  const bool gone = missing || (outcome && outcome->string_at({"metadata", "uid"}) != volume.claim_ref->uid);
  if (!gone) {
    // The claim exists, and the cache will show it; or its state is unknown.
    return end_call(work, outcome ? make_error(ErrorCode::kConflict, "its claim is there") : outcome.error(), now);
  }
  const storage::VolumeStep decided =
      storage::decide_volume({.volume = &volume, .claim = nullptr, .claim_is_gone = true});
  if (!decided.step.write) return end_call(work, {}, now);
  --calls_;
  send(work, *decided.step.write);
}

void VolumeBinder::end_call(const std::string& work, const Outcome& outcome, Now now) {
  --calls_;
  queue_.done(work);
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return queue_.forget(work);
  if (outcome.error().code != ErrorCode::kConflict) {
    parts_.log.warning("claims and volumes: a write failed", {{"of", work}, {"error", outcome.error().text()}});
  }
  queue_.retry(work, now.mono);
}

}  // namespace spillway::controllers
