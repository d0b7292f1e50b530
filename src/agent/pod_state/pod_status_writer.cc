#include "agent/pod_state/pod_status_writer.h"

#include "agent/pod_state/pod_status.h"
#include "agent/pod_state/pod_status_merge.h"
#include "api/codec/codec.h"

#include <algorithm>
#include <charconv>

namespace spillway::agent {
namespace {

std::uint64_t version_of(std::string_view resource_version) {
  std::uint64_t version = 0;
  std::from_chars(resource_version.data(), resource_version.data() + resource_version.size(), version);
  return version;  // zero, the oldest, for anything that is no number
}

}  // namespace

PodStatusWriter::PodStatusWriter(AgentContext& context, std::function<void(const std::string&, Now)> on_written)
    : context_(context), on_written_(std::move(on_written)) {}

void PodStatusWriter::observe(const std::string& uid, const api::Pod& copy) {
  const auto [at, fresh] = entries_.try_emplace(uid);
  Entry& entry = at->second;
  if (fresh || entry.copy_uid.empty()) entry.inherited = !copy.status.container_statuses.empty();
  const std::uint64_t version = version_of(copy.metadata.resource_version);
  if (entry.copy_uid == copy.metadata.uid && version < entry.version)
    return;  // the object is older than the answer to our last patch
  entry.path = client::object_path("v1", "pods", copy.metadata.ns, copy.metadata.name, "status");
  entry.copy_uid = copy.metadata.uid;
  entry.version = version;
  entry.reported = copy.status;
}

void PodStatusWriter::lose(const std::string& uid) {
  const auto it = entries_.find(uid);
  if (it != entries_.end()) it->second.copy_uid.clear();
}

void PodStatusWriter::want(const std::string& uid, const api::PodStatus& status, Now now) {
  if (!began_) began_ = now.mono;
  Entry& entry = entries_[uid];
  entry.wanted = status;
  entry.has_wanted = true;
  if (!entry.in_flight && !entry.waiting_to_retry) write(uid, now);
}

bool PodStatusWriter::is_written(const std::string& uid) const {
  const auto it = entries_.find(uid);
  if (it == entries_.end()) return false;
  const Entry& entry = it->second;
  return !entry.in_flight && !entry.waiting_to_retry && entry.has_wanted;
}

void PodStatusWriter::forget(const std::string& uid) {
  entries_.erase(uid);
}

api::Json PodStatusWriter::state() const {
  api::Json unwritten = api::Json::object();
  std::uint64_t in_flight = 0;
  for (const auto& [uid, entry] : entries_) {
    if (entry.in_flight) ++in_flight;
    if (is_written(uid)) continue;
    unwritten[uid] = entry.copy_uid.empty() ? "no copy" : entry.waiting_to_retry ? "retry" : "in flight";
  }
  return api::Json::object({{"inFlight", in_flight}, {"unwritten", std::move(unwritten)}});
}

void PodStatusWriter::write(const std::string& uid, Now now) {
  Entry& entry = entries_.at(uid);
  if (entry.copy_uid.empty()) return;
  // A terminal phase is wanted only when no process is left.
  const api::PodStatus merged = merge_status(entry.reported, entry.wanted, RunningContainers::kNone, now.wall);
  api::Json patch = status_patch(entry.copy_uid, entry.reported, merged);
  if (patch.is_null()) {
    on_written_(uid, now);
    return;
  }
  if (entry.inherited && now.mono - *began_ < kPredecessorsMax)
    patch["metadata"]["resourceVersion"] = std::to_string(entry.version);
  entry.in_flight = true;
  context_.api.patch(
      entry.path, client::PatchType::kStrategicMerge, patch,
      [this, uid, copy_uid = entry.copy_uid, sent = entry.wanted](const Result<api::Json>& outcome, Now answered) {
        on_answer(uid, copy_uid, sent, outcome, answered);
      });
}

void PodStatusWriter::on_answer(const std::string& uid, const std::string& copy_uid, const api::PodStatus& sent,
                                const Result<api::Json>& outcome, Now now) {
  const auto it = entries_.find(uid);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  entry.in_flight = false;
  if (entry.copy_uid != copy_uid) return write(uid, now);  // about another copy
  if (outcome) {
    entry.back_off.reset();
    const auto pod = api::decode<api::Pod>(*outcome);
    const std::uint64_t version = pod ? version_of(pod->metadata.resource_version) : 0;
    if (version >= entry.version) {
      entry.reported = pod ? pod->status : sent;
      entry.version = version;
    }
    // The server's form of our status is kept, even if it differs from ours: writing it again would change nothing.
    entry.wanted == sent ? on_written_(uid, now) : write(uid, now);
    return;
  }
  if (outcome.error().code == ErrorCode::kNotFound) return;  // the watch will report it too
  context_.log.warning("pod status not written", {{"pod_uid", uid}, {"error", outcome.error().text()}});
  entry.waiting_to_retry = true;
  context_.api.at(now.mono + entry.back_off.next(), [this, uid](Now later) {
    const auto again = entries_.find(uid);
    if (again == entries_.end() || !again->second.waiting_to_retry) return;
    again->second.waiting_to_retry = false;
    if (!again->second.in_flight) write(uid, later);
  });
}

}  // namespace spillway::agent
