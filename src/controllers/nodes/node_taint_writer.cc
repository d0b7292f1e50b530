#include "controllers/nodes/node_taint_writer.h"

#include "api/codec/codec.h"
#include "controllers/shared/paths.h"

#include <utility>

namespace spillway::controllers {

namespace {

/// Attempts to write one batch of edits; then the edits fail, and the next pass over the nodes makes them again. A node
/// has a handful of writers, so five conflicts in a row are rare.
constexpr int kAttemptsMax = 5;
/// The least wait before another attempt; up to as much is added at random, so that two writers do not conflict again.
constexpr Duration kRetryWait = milliseconds(100);

api::Json taints_patch(const api::Node& node) {
  api::Json::Array taints;
  for (const api::Taint& taint : node.spec.taints) taints.push_back(api::encode(taint));
  return api::Json::object({{"metadata", api::Json::object({{"resourceVersion", node.metadata.resource_version},
                                                            {"uid", node.metadata.uid}})},
                            {"spec", api::Json::object({{"taints", api::Json(std::move(taints))}})}});
}

}  // namespace

NodeTaintWriter::NodeTaintWriter(client::ApiClient& client, client::Informer<api::Node>& nodes, Rng rng,
                                 const telemetry::Log& log, Retry which)
    : client_(client), nodes_(nodes), rng_(rng), log_(log), which_(which) {
  nodes_.cache().listen({[this](const NodePtr& before, const NodePtr& after, Now) {
    const NodePtr& node = after ? after : before;
    const auto it = written_.find(node->metadata.name);
    if (it != written_.end() && (!after || after->metadata.resource_version != it->second.based_on)) written_.erase(it);
  }});
}

NodeTaintWriter::NodePtr NodeTaintWriter::newest(const std::string& name) const {
  const auto written = written_.find(name);
  return written != written_.end() ? written->second.node : nodes_.cache().find(name);
}

void NodeTaintWriter::apply(const std::string& node, Edit edit, Done done, Now now) {
  const auto [it, idle] = work_.try_emplace(node);
  it->second.waiting.push_back({std::move(edit), std::move(done)});
  if (idle) begin(node, now);
}

void NodeTaintWriter::begin(const std::string& name, Now now) {
  Work& work = work_.at(name);
  work.in_flight = std::exchange(work.waiting, {});
  work.attempts = 0;
  const NodePtr base = newest(name);
  if (!base) return finish(name, Outcome::kGone, now);
  attempt(name, base, now);
}

void NodeTaintWriter::attempt(const std::string& name, const NodePtr& base, Now now) {
  Work& work = work_.at(name);
  api::Node node = *base;
  bool changed = false;
  for (const Request& request : work.in_flight) changed = request.edit(node, now) || changed;
  if (!changed) return finish(name, Outcome::kUnchanged, now);
  ++work.attempts;
  client_.patch(
      node_path(name), client::PatchType::kMerge, taints_patch(node),
      [this, name, base](const Result<api::Json>& outcome, Now then) { on_patched(name, base, outcome, then); });
}

void NodeTaintWriter::on_patched(const std::string& name, const NodePtr& base, const Result<api::Json>& outcome,
                                 Now now) {
  if (!outcome) {
    if (outcome.error().code == ErrorCode::kNotFound) return finish(name, Outcome::kGone, now);
    return retry(name, outcome.error(), now);
  }
  const NodePtr cached = nodes_.cache().find(name);
  if (cached && cached->metadata.resource_version == base->metadata.resource_version) {
    if (auto node = api::decode<api::Node>(*outcome)) {
      written_[name] = {base->metadata.resource_version, std::make_shared<const api::Node>(*std::move(node))};
    }
  }
  finish(name, Outcome::kWritten, now);
}

void NodeTaintWriter::retry(const std::string& name, const Error& error, Now now) {
  written_.erase(name);
  const bool worth = which_ == Retry::kAll || error.code == ErrorCode::kConflict;
  if (!worth || work_.at(name).attempts >= kAttemptsMax) {
    log_.warning("node taints were not written", {{"node", name}, {"error", error.text()}});
    return finish(name, Outcome::kFailed, now);
  }
  const Duration jitter = nanoseconds(static_cast<std::int64_t>(rng_.below(kRetryWait.count())));
  client_.at(now.mono + kRetryWait + jitter, [this, name](Now) { reread(name); });
}

void NodeTaintWriter::reread(const std::string& name) {
  client_.get(node_path(name),
              [this, name](const Result<api::Json>& outcome, Now now) { on_reread(name, outcome, now); });
}

void NodeTaintWriter::on_reread(const std::string& name, const Result<api::Json>& outcome, Now now) {
  if (!outcome && outcome.error().code == ErrorCode::kNotFound) return finish(name, Outcome::kGone, now);
  if (outcome) {
    if (auto node = api::decode<api::Node>(*outcome)) {
      return attempt(name, std::make_shared<const api::Node>(*std::move(node)), now);
    }
  }
  ++work_.at(name).attempts;
  retry(name, outcome ? Error{ErrorCode::kInternalError, "node does not decode", {}} : outcome.error(), now);
}

void NodeTaintWriter::finish(const std::string& name, Outcome outcome, Now now) {
  std::vector<Request> done = std::exchange(work_.at(name).in_flight, {});
  for (const Request& request : done) {
    if (request.done) request.done(outcome, now);
  }
  // The continuations may have left more to do for this node.
  if (work_.at(name).waiting.empty()) {
    work_.erase(name);
  } else {
    begin(name, now);
  }
}

}  // namespace spillway::controllers
