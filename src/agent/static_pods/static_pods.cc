#include "agent/static_pods/static_pods.h"

#include "client/api_client.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

std::string_view hash_in(const api::Pod& mirror) {
  const auto hash = mirror.metadata.annotations.find(api::kConfigMirrorAnnotation);
  return hash == mirror.metadata.annotations.end() ? std::string_view() : std::string_view(hash->second);
}

}  // namespace

StaticPods::StaticPods(AgentContext& context, PodWorkers& workers,
                       std::function<std::shared_ptr<const api::Node>()> node)
    : context_(context), workers_(workers), node_(std::move(node)) {}

/// A file that is no pod now keeps the one it last made. The pods of an address change together or not at all.
void StaticPods::read_files(const StaticManifests& read, Source& source, Now now) const {
  Files good;
  bool all_good = true;
  for (const StaticManifest& manifest : read.files) {
    const ManifestOrigin origin{manifest.file, read.source, context_.options.static_pod_url};
    Result<StaticPod> made = manifest.document
                                 ? make_static_pod(*manifest.document, origin, context_.options.node_name, now.wall)
                                 : Result<StaticPod>(manifest.document.error());
    const auto last = source.files.find(manifest.file);
    if (!made) {
      all_good = false;
      source.problems[manifest.file] = made.error().text();
      if (last != source.files.end()) good.insert(*last);
      continue;
    }
    if (!made->warnings.empty()) source.problems[manifest.file] = manifest.file + ": " + made->warnings.front();
    const bool same = last != source.files.end() && last->second.pod.metadata.uid == made->pod.metadata.uid;
    // keeps the time at which the manifest was first seen
    good.emplace(manifest.file, same ? last->second : *std::move(made));
  }
  if (all_good || read.source == ManifestSource::kFiles) source.files = std::move(good);
}

/// The pods by name. If several manifests define the same pod, the first one counts.
std::map<api::PodKey, const StaticPod*> StaticPods::pods_of(Problems& repeated) const {
  std::map<api::PodKey, std::pair<const StaticPod*, const std::string*>> first;
  std::map<api::PodKey, const StaticPod*> pods;
  for (const Source& source : sources_) {
    for (const auto& [file, pod] : source.files) {
      const auto [known, fresh] = first.try_emplace(pod.pod.key(), &pod, &file);
      if (fresh) {
        pods.emplace(pod.pod.key(), &pod);
      } else {
        repeated[file] = file + ": pod " + pod.pod.key().text() + " is already defined in " + *known->second.second;
      }
    }
  }
  return pods;
}

bool StaticPods::delivered() const {
  return std::ranges::all_of(sources_, &Source::delivered);
}

api::Json StaticPods::state() const {
  api::Json problems = api::Json::object();
  for (const auto& [file, problem] : problems_) problems[file] = problem;
  api::Json pods = api::Json::object();
  for (const auto& [key, entry] : entries_) {
    pods[key.text()] = api::Json::object({{"mirrored", entry.mirror != nullptr},
                                          {"uid", entry.uid},
                                          {"wanted", entry.wanted.has_value()},
                                          {"writing", entry.writing}});
  }
  std::uint64_t files = 0;
  for (const Source& source : sources_) files += source.files.size();
  return api::Json::object({{"files", files},
                            {"path", context_.options.static_pod_path},
                            {"pods", std::move(pods)},
                            {"problems", std::move(problems)},
                            {"read", delivered()},
                            {"url", context_.options.static_pod_url}});
}

/// Reports each problem once, until it changes or ends.
void StaticPods::report(const Problems& repeated) {
  Problems problems = repeated;
  for (const Source& source : sources_)
    for (const auto& [file, problem] : source.problems)
      problems.insert_or_assign(file.empty() ? problem : file, problem);
  for (const auto& [file, problem] : problems) {
    const auto reported = problems_.find(file);
    if (reported == problems_.end() || reported->second != problem) {
      context_.log.warning("static pod manifest", {{"problem", problem}});
    }
  }
  problems_ = std::move(problems);
}

void StaticPods::on_manifests(const StaticManifests& read, Now now) {
  Source& source = sources_.at(static_cast<std::size_t>(read.source));
  source.delivered = source.delivered || read.problem.empty() || read.source == ManifestSource::kFiles;
  source.problems.clear();
  if (read.problem.empty()) {
    read_files(read, source, now);
  } else {
    source.problems.emplace("", read.problem);
  }
  Problems repeated;
  const std::map<api::PodKey, const StaticPod*> pods = pods_of(repeated);
  report(repeated);
  for (auto& [key, entry] : entries_) {
    if (!pods.contains(key)) entry.wanted.reset();
    dirty_.insert(key);
  }
  for (const auto& [key, pod] : pods) {
    entries_[key].wanted = *pod;
    dirty_.insert(key);
  }
  reconcile_all(now);
}

void StaticPods::on_synced(Now now) {
  synced_ = true;
  on_node_known(now);
}

void StaticPods::on_node_known(Now now) {
  for (const auto& [key, entry] : entries_) dirty_.insert(key);
  reconcile_all(now);
}

void StaticPods::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  const api::PodKey key = (after ? *after : *before).key();
  const bool mirrored = (before && api::is_mirror(*before)) || (after && api::is_mirror(*after));
  if (!mirrored && !entries_.contains(key)) return;
  Entry& entry = entries_[key];
  entry.mirror = after && api::is_mirror(*after) ? after : nullptr;
  entry.moved = true;
  entry.retry_at.reset();
  dirty_.insert(key);
  reconcile_all(now);
}

void StaticPods::on_forgotten(const std::string& uid, Now now) {
  for (auto& [key, entry] : entries_) {
    if (entry.uid != uid) continue;
    entry.uid.clear();
    dirty_.insert(key);
  }
  reconcile_all(now);
}

/// Reconciles changed entries until none is left. A change that reconciling causes is queued, not made inside it.
void StaticPods::reconcile_all(Now now) {
  if (std::exchange(reconciling_, true)) return;
  while (!dirty_.empty()) reconcile(dirty_.extract(dirty_.begin()).value(), now);
  reconciling_ = false;
}

void StaticPods::reconcile(const api::PodKey& key, Now now) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  run_pod(it->second, now);
  write_mirror(key, it->second, now);
  const Entry& entry = it->second;
  if (!entry.wanted && entry.uid.empty() && !entry.mirror && !entry.writing) entries_.erase(it);
}

void StaticPods::run_pod(Entry& entry, Now now) {
  const std::string wanted = entry.wanted ? entry.wanted->pod.metadata.uid : std::string();
  if (!entry.uid.empty() && entry.uid != wanted) workers_.retire(std::string(entry.uid), now);
  if (!entry.uid.empty() || wanted.empty()) return;
  entry.uid = wanted;
  workers_.add_static(std::make_shared<const api::Pod>(entry.wanted->pod), now);
}

void StaticPods::write_mirror(const api::PodKey& key, Entry& entry, Now now) {
  const bool right = entry.mirror && !entry.uid.empty() && hash_in(*entry.mirror) == entry.uid &&
                     !entry.mirror->metadata.deletion_timestamp;
  if (!entry.uid.empty()) workers_.set_mirror(entry.uid, right ? entry.mirror : nullptr, now);
  if (right || entry.writing || !synced_) return;
  if (!entry.wanted && !delivered()) return;
  if (entry.retry_at && now.mono < *entry.retry_at) return;
  const auto done = [this, key](const char* what) {
    return
        [this, key, what](const Result<api::Json>& outcome, Now answered) { on_written(key, what, outcome, answered); };
  };
  if (entry.mirror) {
    entry.writing = true;
    entry.moved = false;
    const api::Json options =
        api::Json::object({{"apiVersion", "v1"},
                           {"kind", "DeleteOptions"},
                           {"gracePeriodSeconds", 0},
                           {"preconditions", api::Json::object({{"uid", entry.mirror->metadata.uid}})}});
    context_.api.remove(client::object_path("v1", "pods", key.ns, key.name), options, done("deleted"));
    return;
  }
  const bool runs = entry.wanted && entry.uid == entry.wanted->pod.metadata.uid;
  const auto node = node_();
  if (!runs || !node || node->metadata.uid.empty()) return;
  entry.writing = true;
  entry.moved = false;
  context_.api.create(client::object_path("v1", "pods", key.ns), mirror_of(*entry.wanted, *node), done("created"));
}

/// The watch reports the result; without an event, a later sync retries.
void StaticPods::on_written(const api::PodKey& key, const char* what, const Result<api::Json>& outcome, Now now) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  entry.writing = false;
  const bool failed = !outcome && outcome.error().code != ErrorCode::kNotFound;
  if (failed && entry.back_off.is_idle()) {
    context_.log.warning("mirror pod not written",
                         {{"pod", key.text()}, {"what", what}, {"error", outcome.error().text()}});
  }
  if (failed)
    entry.back_off.next();
  else
    entry.back_off.reset();
  if (failed || !entry.moved) {
    entry.retry_at = now.mono + (failed ? entry.back_off.wait() : kSourceRetryMax);
    context_.api.at(*entry.retry_at, [this, key](Now later) {
      dirty_.insert(key);
      reconcile_all(later);
    });
  }
  dirty_.insert(key);
  reconcile_all(now);
}

}  // namespace spillway::agent
