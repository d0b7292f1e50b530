#include "controllers/storage/volume_protection.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::controllers {

namespace {

constexpr std::string_view kClaimKind = "claim/";
constexpr std::string_view kVolumeKind = "volume/";

bool has_finalizer(const api::ObjectMeta& meta, std::string_view finalizer) {
  return std::ranges::find(meta.finalizers, finalizer) != meta.finalizers.end();
}

/// A pod that has a node and whose volumes name the claim, or might: of a claim made for a volume only that name is
/// known. Reads the document without decoding it, because a namespace may hold very many pods.
bool uses_claim(const api::Json& pod, const std::string& claim) {
  if (pod.string_at({"spec", "nodeName"}).empty()) return false;
  const api::Json* volumes = pod.at({"spec", "volumes"});
  if (volumes == nullptr || volumes->if_array() == nullptr) return false;
  return std::ranges::any_of(*volumes->if_array(), [&](const api::Json& volume) {
    if (volume.string_at({"persistentVolumeClaim", "claimName"}) == claim) return true;
    return volume.find("ephemeral") != nullptr &&
           claim == fmt::format("{}-{}", pod.string_at({"metadata", "name"}), volume.string_at({"name"}));
  });
}

/// nullopt: the answer is no list, so the result is unknown. An empty list may be written as null.
std::optional<bool> names_claim(const api::Json& pods, const std::string& claim) {
  const api::Json* items = pods.find("items");
  if (items == nullptr || (!items->is_null() && items->if_array() == nullptr)) return std::nullopt;
  if (items->is_null()) return false;
  return std::ranges::any_of(*items->if_array(), [&claim](const api::Json& pod) { return uses_claim(pod, claim); });
}

}  // namespace

VolumeProtection::VolumeProtection(Parts parts) : parts_(parts) {
  parts_.storage.claims().listen({[this](const auto&, const auto& after, Now now) {
    if (after) touch(kClaimKind, client::key_of(after->metadata), now);
  }});
  parts_.storage.volumes().listen({[this](const auto&, const auto& after, Now now) {
    if (after) touch(kVolumeKind, after->metadata.name, now);
  }});
  parts_.users.when_changed([this](const client::ObjectKey& claim, Now now) {
    const StorageCache::ClaimPtr found = parts_.storage.claims().find(claim);
    if (found && found->metadata.deletion_timestamp) touch(kClaimKind, claim, now);
  });
}

void VolumeProtection::start(Now now) {
  started_ = true;
  for (const auto& [name, volume] : parts_.storage.volumes().all()) touch(kVolumeKind, name, now);
  for (const auto& [key, claim] : parts_.storage.claims().all()) touch(kClaimKind, key, now);
}

void VolumeProtection::touch(std::string_view kind, const std::string& key, Now now) {
  if (started_) queue_.add(fmt::format("{}{}", kind, key), now.mono);
}

void VolumeProtection::run(Now now) {
  if (!started_) return;
  for (int syncs = 0; syncs < kSyncsMax && calls_ < kCallsMax; ++syncs) {
    const std::optional<std::string> work = queue_.take(now.mono);
    if (!work) break;
    if (work->starts_with(kClaimKind)) {
      sync_claim(work->substr(kClaimKind.size()));
    } else {
      sync_volume(work->substr(kVolumeKind.size()));
    }
  }
  arm();
}

void VolumeProtection::arm() {
  const std::optional<Instant> due = calls_ < kCallsMax ? queue_.next_due() : std::nullopt;
  wake_up_.set(parts_.client, due);
}

void VolumeProtection::sync_claim(const client::ObjectKey& key) {
  const std::string work = fmt::format("{}{}", kClaimKind, key);
  const StorageCache::ClaimPtr claim = parts_.storage.claims().find(key);
  if (!claim) return finish(work);
  const bool held = has_finalizer(claim->metadata, api::kClaimProtection);
  if (!claim->metadata.deletion_timestamp) {
    if (held) return finish(work);
    const std::string path =
        client::object_path("v1", "persistentvolumeclaims", claim->metadata.ns, claim->metadata.name);
    return write(work, path, claim->metadata, api::kClaimProtection, true);
  }
  if (!held || parts_.users.is_used(key)) return finish(work);
  ask_for_pods(work, claim);
}

void VolumeProtection::sync_volume(const std::string& name) {
  const std::string work = fmt::format("{}{}", kVolumeKind, name);
  const storage::VolumePtr volume = parts_.storage.volumes().find(name);
  if (!volume) return finish(work);
  const bool wanted = !volume->metadata.deletion_timestamp;
  const bool held = has_finalizer(volume->metadata, api::kVolumeProtection);
  if (wanted == held || (!wanted && volume->status.phase == "Bound")) return finish(work);
  write(work, client::object_path("v1", "persistentvolumes", {}, name), volume->metadata, api::kVolumeProtection,
        wanted);
}

void VolumeProtection::ask_for_pods(const std::string& work, const StorageCache::ClaimPtr& claim) {
  ++calls_;
  parts_.client.get(
      client::object_path("v1", "pods", claim->metadata.ns),
      [this, work, claim](const Result<api::Json>& pods, Now now) { on_pods_read(work, *claim, pods, now); });
}

void VolumeProtection::on_pods_read(const std::string& work, const api::PersistentVolumeClaim& claim,
                                    const Result<api::Json>& pods, Now now) {
  if (!pods) return end_call(work, pods.error(), now);
  const std::optional<bool> used = names_claim(*pods, claim.metadata.name);
  if (!used) return end_call(work, make_error(ErrorCode::kInternalError, "the answer is no list of pods"), now);
  if (*used) return end_call(work, {}, now);  // the cache will show the end of the pod
  --calls_;
  const std::string path = client::object_path("v1", "persistentvolumeclaims", claim.metadata.ns, claim.metadata.name);
  write(work, path, claim.metadata, api::kClaimProtection, false);
}

void VolumeProtection::write(const std::string& work, const std::string& path, const api::ObjectMeta& meta,
                             std::string_view finalizer, bool wanted) {
  ++calls_;
  api::Json list = api::Json::array();
  for (const std::string& each : meta.finalizers) {
    if (each != finalizer) list.if_array()->push_back(api::Json(each));
  }
  if (wanted) list.if_array()->push_back(api::Json(finalizer));
  api::Json patch = storage::guarded_patch(meta);
  patch["metadata"]["finalizers"] = std::move(list);
  parts_.client.patch(path, client::PatchType::kMerge, patch, [this, work](const Result<api::Json>& outcome, Now now) {
    end_call(work, outcome ? Outcome() : Outcome(outcome.error()), now);
  });
}

void VolumeProtection::finish(const std::string& work) {
  queue_.done(work);
  queue_.forget(work);
}

void VolumeProtection::end_call(const std::string& work, const Outcome& outcome, Now now) {
  --calls_;
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return finish(work);
  queue_.done(work);
  if (outcome.error().code != ErrorCode::kConflict) {
    parts_.log.warning("protection of claims and volumes: a call failed",
                       {{"of", work}, {"error", outcome.error().text()}});
  }
  queue_.retry(work, now.mono);
}

}  // namespace spillway::controllers
