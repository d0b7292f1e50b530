#include "agent/volumes/claim_reader.h"

#include "agent/volumes/claimed_volume.h"
#include "api/codec/codec.h"
#include "base/check.h"

#include <fmt/format.h>

namespace spillway::agent {

void ClaimReader::hold(const api::Pod& pod, const std::string& claim) {
  const auto [entry, added] = records_.try_emplace(Key{pod.metadata.uid, claim});
  if (!added) return;
  entry->second.ns = pod.metadata.ns;
  ask(entry->first, entry->second);
}

void ClaimReader::release(const std::string& uid) {
  for (auto at = records_.lower_bound(Key{uid, {}}); at != records_.end() && at->first.first == uid;)
    at = records_.erase(at);
}

void ClaimReader::ask_again(const std::string& uid) {
  for (auto at = records_.lower_bound(Key{uid, {}}); at != records_.end() && at->first.first == uid; ++at)
    if (at->second.call == 0) ask(at->first, at->second);
}

bool ClaimReader::is_answered(const std::string& uid, const std::string& claim) const {
  const auto found = records_.find(Key{uid, claim});
  return found != records_.end() && found->second.answer.has_value();
}

Result<ClaimReader::VolumePtr> ClaimReader::volume(const std::string& uid, const std::string& claim) const {
  const auto found = records_.find(Key{uid, claim});
  SPILLWAY_CHECK(found != records_.end() && found->second.answer);
  return *found->second.answer;
}

void ClaimReader::ask(const Key& key, Record& record) {
  record.answer.reset();
  record.call = ++last_call_;
  context_.api.get(
      client::object_path("v1", "persistentvolumeclaims", record.ns, key.second),
      [this, key, call = record.call](const Result<api::Json>& answer, Now now) { on_claim(key, call, answer, now); });
}

void ClaimReader::on_claim(const Key& key, std::uint64_t call, const Result<api::Json>& answer, Now now) {
  const auto fail = [&](const std::string& why) { end(key, call, make_error(ErrorCode::kConflict, "{}", why), now); };
  if (!answer) return fail(fmt::format("failed to fetch PVC from API server: {}", answer.error().message));
  Result<api::PersistentVolumeClaim> claim = api::decode<api::PersistentVolumeClaim>(*answer);
  if (!claim) return fail(fmt::format("failed to fetch PVC from API server: {}", claim.error().text()));
  const Result<std::string> name = volume_named_by(*claim);
  if (!name) return fail(name.error().message);
  ask_for_volume(key, call, *name, std::make_shared<const api::PersistentVolumeClaim>(*std::move(claim)));
}

void ClaimReader::ask_for_volume(const Key& key, std::uint64_t call, const std::string& name,
                                 const std::shared_ptr<const api::PersistentVolumeClaim>& claim) {
  context_.api.get(client::object_path("v1", "persistentvolumes", {}, name),
                   [this, key, call, name, claim](const Result<api::Json>& answer, Now now) {
                     end(key, call, claimed_volume(name, *claim, answer), now);
                   });
}

/// The volume in the API server's answer, if it is the one that the claim is bound to.
Result<ClaimReader::VolumePtr> ClaimReader::claimed_volume(const std::string& name,
                                                           const api::PersistentVolumeClaim& claim,
                                                           const Result<api::Json>& answer) {
  Result<api::PersistentVolume> volume =
      answer ? api::decode<api::PersistentVolume>(*answer) : Result<api::PersistentVolume>(answer.error());
  if (!volume) {
    return make_error(ErrorCode::kConflict, "failed to fetch PV {} from API server: {}", name, volume.error().message);
  }
  if (const Outcome claimed = check_claimed(*volume, claim); !claimed) return claimed.error();
  return VolumePtr(std::make_shared<const api::PersistentVolume>(*std::move(volume)));
}

void ClaimReader::end(const Key& key, std::uint64_t call, Result<VolumePtr> answer, Now now) {
  const auto found = records_.find(key);
  if (found == records_.end() || found->second.call != call) return;
  found->second.call = 0;
  found->second.answer = std::move(answer);
  if (listener_) listener_(key.first, now);
}

}  // namespace spillway::agent
