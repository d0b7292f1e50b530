#include "apiserver/collect/reservation_keeper.h"

#include <memory>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr Duration kSoon = seconds(2);
constexpr std::size_t kPage = 500;
constexpr std::size_t kWantedMax = 10'000;  // the next run finds the rest

}  // namespace

void ReservationKeeper::load() {
  due_ = core_.store.is_shared();
  pending_.clear();
  wanted_.clear();
  if (due_) arm(kCheckEvery);
}

void ReservationKeeper::on_event(const ResourceCache& cache, const EventPtr& event) {
  const Resource& resource = cache.resource();
  if (resource.hooks->reserves == nullptr || event->previous == nullptr || !core_.store.is_shared()) return;
  const api::DocumentPtr before = event->previous->shared_document();
  const api::DocumentPtr now = event->object == nullptr ? nullptr : event->object->shared_document();
  static const api::Json kNothing = api::Json::object();
  const bool gives_up = !reserved_names(resource, *before, now == nullptr ? &kNothing : now.get()).empty();
  if (gives_up) arm(kSoon);
}

void ReservationKeeper::act() {
  if (!due_ || reading_ || !wanted_.empty() || writing_ != 0) return;
  due_ = false;
  reading_ = true;
  seen_.clear();
  read_page({});
}

/// Plans the next run no later than `in` from now.
void ReservationKeeper::arm(Duration in) {
  const Instant at = core_.now.mono + in;
  if (timer_ && armed_for_ <= at) return;
  if (timer_) core_.timers.cancel(*timer_);
  armed_for_ = at;
  timer_ = core_.timers.at(at, [this] {
    timer_.reset();
    if (!acts()) return;
    due_ = true;
    arm(kCheckEvery);
    run();
  });
}

/// Compares one page of reservations with the cache. The cache already holds everything older than the page.
void ReservationKeeper::read_page(const std::string& after) {
  core_.store.range({std::string(kReservationPrefix), after, kPage, std::nullopt},
                    [this](const Result<store::RangeResult>& page) { on_page(page); });
}

/// After a page that could not be read the next run is soon.
void ReservationKeeper::on_page(const Result<store::RangeResult>& page) {
  if (!page || !acts()) {
    reading_ = false;
    return;
  }
  for (const store::Entry& entry : page->entries) check(entry);
  if (page->remaining != 0) return read_page(page->entries.back().key);
  add_missing();
  reading_ = false;
  run();
}

void ReservationKeeper::check(const store::Entry& entry) {
  const std::string name = entry.key.substr(kReservationPrefix.size());
  seen_.insert(name);
  auto reservation = Reservation::read(*entry.value);
  if (!reservation) return;  // the key belongs to another sort of reservation
  const bool has = has_reserved(core_, name, *reservation);
  const bool held = reservation->state == Reservation::State::kHeld;
  if (held && has) return;
  if (has) {
    reservation->state = Reservation::State::kHeld;
    return write({entry.key, std::make_shared<const std::string>(reservation->text()), entry.mod_revision});
  }
  if (held) return write({entry.key, nullptr, entry.mod_revision});
  Pending& pending = pending_.try_emplace(name, Pending{entry.mod_revision, core_.now.mono}).first->second;
  if (pending.revision != entry.mod_revision) {
    pending = {entry.mod_revision, core_.now.mono};
  } else if (core_.now.mono - pending.since >= kPendingFor) {
    write({entry.key, nullptr, entry.mod_revision});
  }
}

/// Reserves the names of objects that were stored before the store had several servers.
void ReservationKeeper::add_missing() {
  std::erase_if(pending_, [this](const auto& each) { return !seen_.contains(each.first); });
  for (const auto& cache : core_.cache.all()) {
    const Resource& resource = cache->resource();
    if (resource.hooks->reserves == nullptr) continue;
    for (const auto& [key, object] : cache->objects()) {
      const Reservation reservation{key, object->meta.uid, Reservation::State::kHeld};
      for (const std::string& name : reserved_names(resource, *object->shared_document(), nullptr)) {
        if (seen_.contains(name)) continue;
        write({std::string(kReservationPrefix) + name, std::make_shared<const std::string>(reservation.text()),
               store::Revision(0)});
      }
    }
  }
}

void ReservationKeeper::write(store::Write write) {
  if (writing_ >= kCollectorWritesMax) {
    if (wanted_.size() < kWantedMax) wanted_.push_back(std::move(write));
    return;
  }
  ++writing_;
  core_.store.write(std::move(write), [this](const Result<store::WriteResult>&) { on_written(); });
}

/// A write that failed is repeated by the next run.
void ReservationKeeper::on_written() {
  --writing_;
  if (!acts()) return wanted_.clear();
  if (wanted_.empty()) return run();
  store::Write next = std::move(wanted_.front());
  wanted_.pop_front();
  write(std::move(next));
}

}  // namespace spillway::apiserver
