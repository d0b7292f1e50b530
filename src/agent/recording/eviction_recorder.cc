#include "agent/recording/eviction_recorder.h"

#include "recording/frame.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

/// The wait after a segment could not be begun.
constexpr Duration kRecordingRetry = seconds(10);

}  // namespace

bool EvictionRecorder::wants_snapshot() const {
  if (depth_ > 0) return false;
  if (!open_) return !retry_ || now_ >= *retry_;
  return segment_bytes_ >= sink_.segment_bytes();
}

void EvictionRecorder::on_snapshot(const EvictionSnapshot& snapshot, std::span<const api::Pod* const> pods, Now now) {
  if (!run_) run_ = static_cast<std::uint64_t>(now.wall.time_since_epoch().count());
  RunState state{.run = *run_,
                 .segment = next_segment_,
                 .after_gap = after_gap_,
                 .at = now,
                 .node = node_,
                 .snapshot = snapshot,
                 .pods = {}};
  order_.clear();
  pods_.clear();
  for (const api::Pod* pod : pods) {
    state.pods.push_back(stripped(*pod));
    order_.push_back(pod->metadata.uid);
    pods_[pod->metadata.uid] = {.version = pod->metadata.resource_version, .bytes = encode_pod(state.pods.back())};
  }
  std::string bytes(recording::kAgentKind.header);
  open_ = recording::append_frame(bytes, encode_record(std::move(state)));
  segment_bytes_ = bytes.size();
  open_ = open_ && sink_.begin_segment(std::move(bytes));
  if (!open_) return lose();
  ++next_segment_;
  after_gap_ = false;
  retry_.reset();
}

void EvictionRecorder::lose() {
  open_ = false;
  after_gap_ = true;
  retry_ = now_ + kRecordingRetry;
}

void EvictionRecorder::on_input(const EngineInputRef& input, Now now) {
  now_ = now.mono;
  const bool nested = depth_++ > 0;
  if (open_) write(encode_input(input, nested, now));
}

void EvictionRecorder::on_end() {
  if (--depth_ > 0 || batch_.empty()) return;
  segment_bytes_ += batch_.size();
  if (!sink_.append(std::exchange(batch_, {}))) lose();
}

void EvictionRecorder::write(const std::string& record) {
  if (recording::append_frame(batch_, record)) return;
  batch_.clear();  // the input as a whole, or nothing of it
  lose();
}

void EvictionRecorder::on_pods(std::span<const api::Pod* const> pods) {
  if (!open_ || depth_ == 0) return;
  PodsSeen seen;
  for (const api::Pod* pod : pods) {
    seen.uids.push_back(pod->metadata.uid);
    KnownPod& known = pods_[pod->metadata.uid];
    const std::string& version = pod->metadata.resource_version;
    if (!known.bytes.empty() && !version.empty() && version == known.version) continue;
    known.version = version;
    api::Pod kept = stripped(*pod);
    std::string bytes = encode_pod(kept);
    if (bytes == known.bytes) continue;
    known.bytes = std::move(bytes);
    seen.changed.push_back(std::move(kept));
  }
  if (seen.changed.empty() && seen.uids == order_) return;
  order_ = seen.uids;
  std::erase_if(pods_, [this](const auto& each) { return std::ranges::find(order_, each.first) == order_.end(); });
  write(encode_record(std::move(seen)));
}

void EvictionRecorder::on_claim(bool claimed) {
  if (open_ && depth_ > 0) write(encode_record(Claimed{claimed}));
}

void EvictionRecorder::on_decision(const JournalEntry& entry) {
  if (open_ && depth_ > 0) write(encode_record(Decided{to_line(entry)}));
}

void EvictionRecorder::on_conditions(const eviction::ConditionSet& conditions) {
  if (open_ && depth_ > 0) write(encode_record(ConditionsChanged{conditions}));
}

void EvictionRecorder::on_ending() {
  if (open_ && depth_ > 0) write(encode_record(Ending{}));
}

}  // namespace spillway::agent
