#include "store/etcd/etcd_watch.h"

#include "store/too_old.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace spillway::store {
namespace {

constexpr Duration kFirstWatchPause = milliseconds(100);
constexpr Duration kLongestWatchPause = seconds(5);
constexpr std::size_t kWatchDoublings = 6;

}  // namespace

std::optional<Revision> compaction_in(const Value& value) {
  if (!value) return std::nullopt;
  std::uint64_t number = 0;
  const char* const last = value->data() + value->size();
  const auto [end, error] = std::from_chars(value->data(), last, number);
  return error == std::errc() && end == last ? std::optional(Revision(number)) : std::nullopt;
}

EtcdWatch::EtcdWatch(EtcdTransport& transport, const EtcdKeys& keys, EtcdMetrics& metrics, telemetry::Log log, Rng rng,
                     Owner& owner, Wanted wanted)
    : transport_(transport),
      keys_(keys),
      metrics_(metrics),
      log_(std::move(log)),
      rng_(rng),
      owner_(owner),
      wanted_(std::move(wanted)),
      delivered_(wanted_.after),
      member_(rng_.below(transport.members())) {}

void EtcdWatch::begin() {
  received_at_ = transport_.now();
  open();
  later(kQuietMax, &EtcdWatch::check_for_silence);
}

void EtcdWatch::close() {
  closed_ = true;
  stream_.reset();
}

void EtcdWatch::later(Duration time, void (EtcdWatch::*act)()) {
  transport_.after(time, [weak = weak_from_this(), act] {
    const auto self = weak.lock();
    if (self && !self->closed_) ((*self).*act)();
  });
}

void EtcdWatch::open() {
  fragments_.clear();
  stream_ = transport_.watch(member_, Revision(delivered_.number() + 1), wanted_.previous, *this);
}

/// Resumes the watch at the next member; the first time at once.
void EtcdWatch::resume() {
  stream_.reset();
  metrics_.watch_resumes.add();
  member_ = (member_ + 1) % transport_.members();
  const std::size_t failures = failures_++;
  if (failures == 0) return later({}, &EtcdWatch::open);
  const Duration pause =
      std::min(kFirstWatchPause * (std::int64_t{1} << std::min(failures - 1, kWatchDoublings)), kLongestWatchPause);
  later(pause / 2 + Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(pause.count())))),
        &EtcdWatch::open);
}

void EtcdWatch::on_watch_broken(const EtcdFailure& why) {
  if (closed_) return;
  log_.debug("a watch of etcd has ended", {{"member", member_}, {"error", why.message}});
  resume();
}

void EtcdWatch::on_watch_message(EtcdWatchMessage message) {
  const auto self = shared_from_this();  // the watcher may release its reference
  if (closed_) return;
  received_at_ = transport_.now();
  if (message.canceled) {
    if (message.compacted == Revision()) {
      log_.warning("etcd has ended a watch", {{"member", member_}, {"reason", message.reason}});
      return resume();
    }
    owner_.on_compaction_seen(message.compacted);
    return owner_.on_watch_over(*this, too_old(delivered_, message.compacted));
  }
  std::ranges::move(message.events, std::back_inserter(fragments_));
  if (!message.fragment) take(std::exchange(fragments_, {}));
}

void EtcdWatch::take(std::vector<EtcdEvent> events) {
  const Revision before = delivered_;
  std::vector<Change> changes;
  std::optional<Revision> behind_gap;
  for (EtcdEvent& event : events) {
    if (event.revision <= before) {
      metrics_.watch_repeats.add();
      continue;
    }
    if (event.revision.number() > delivered_.number() + 1) {
      behind_gap = event.revision;
      break;
    }
    delivered_ = event.revision;
    if (auto change = change_of(event)) changes.push_back(*std::move(change));
  }
  if (delivered_ > before) {
    failures_ = 0;
    if (!changes.empty()) wanted_.watcher.on_changes(changes);
    if (closed_) return;
    if (changes.empty() || changes.back().revision < delivered_) wanted_.watcher.on_reached(delivered_);
    if (closed_) return;
    owner_.on_watch_delivered(delivered_);
  }
  if (behind_gap && !closed_) on_gap(*behind_gap);
}

std::optional<Change> EtcdWatch::change_of(EtcdEvent& event) {
  if (event.key == kCompactionKey) {
    if (const auto revision = compaction_in(event.value)) owner_.on_compaction_seen(*revision);
  }
  auto key = keys_.in_port(event.key);
  if (!key || !key->starts_with(wanted_.prefix)) return std::nullopt;
  Value value = event.value ? owner_.as_written(*key, std::move(event.value), event.revision) : nullptr;
  return Change{*std::move(key), event.revision, event.create_revision, std::move(value), std::move(event.previous)};
}

/// Another member may have the left-out changes. If not, the cached state cannot be trusted.
void EtcdWatch::on_gap(Revision next) {
  metrics_.watch_gaps.add();
  log_.error("etcd left out revisions of a watch",
             {{"member", member_}, {"delivered", delivered_.number()}, {"next", next.number()}});
  if (gap_after_ == delivered_) {
    return owner_.on_watch_over(*this, make_error(ErrorCode::kExpired, "etcd left out the revisions {} to {}",
                                                  delivered_.number() + 1, next.number() - 1));
  }
  gap_after_ = delivered_;
  resume();
}

void EtcdWatch::check_for_silence() {
  if (transport_.now() - received_at_ >= kQuietMax) ask_whether_behind();
  later(kQuietMax, &EtcdWatch::check_for_silence);
}

void EtcdWatch::ask_whether_behind() {
  const EtcdRange nothing{
      .key = std::string(kCompactionKey), .range_end = {}, .limit = 1, .at = {}, .count_only = true};
  transport_.range(
      member_, nothing, kCatchUpMax, [weak = weak_from_this()](std::expected<EtcdRangeAnswer, EtcdFailure> answer) {
        const auto self = weak.lock();
        if (!self || self->closed_ || !answer || answer->present <= self->delivered_) return;
        self->transport_.after(kCatchUpMax, [weak, wanted = answer->present] {
          const auto late = weak.lock();
          if (!late || late->closed_ || late->delivered_ >= wanted) return;
          late->log_.warning("a watch of etcd is behind and delivers nothing", {{"member", late->member_}});
          late->resume();
        });
      });
}

}  // namespace spillway::store
