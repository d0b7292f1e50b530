#include "store/server_lease.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::store {
namespace {

constexpr const char* kNotInTime = "the store did not renew the lease of this server in time";

/// "HOLDER NUMBER": the number makes each write a different one.
std::string_view holder_in(const Entry& lease) {
  const std::string_view text = *lease.value;
  return text.substr(0, text.find(' '));
}

}  // namespace

ServerLease::ServerLease(Store& store, std::string holder, Ports ports, Listener listener)
    : store_(store), holder_(std::move(holder)), ports_(std::move(ports)), listener_(std::move(listener)) {}

void ServerLease::start() {
  read();
}

void ServerLease::later() {
  ports_.after(kCheckEvery, alive_.guard([this] {
    if (over_) return;
    if (!held_) return read();
    if (ports_.now() < renewed_ + kActsFor) return write(written_);
    lose(kNotInTime);
    read();
  }));
}

/// A write that is not answered may take longer than the lease: the time ends meanwhile.
void ServerLease::watch_own_time() {
  if (std::exchange(is_watched_, true)) return;
  ports_.after(renewed_ + kActsFor - ports_.now(), alive_.guard([this] {
    if (over_) return;
    is_watched_ = false;
    if (!held_) return;
    if (ports_.now() < renewed_ + kActsFor) return watch_own_time();
    lose(kNotInTime);
  }));
}

void ServerLease::read() {
  store_.range({.prefix = std::string(kKey), .start_after = {}, .limit = 1, .at = {}},
               alive_.guard([this](Result<RangeResult> found) {
                 if (over_) return;
                 if (!found) {
                   listener_.on_failure(found.error());
                   return later();
                 }
                 const bool is_there = !found->entries.empty() && found->entries.front().key == kKey;
                 on_seen(is_there ? std::optional(std::move(found->entries.front())) : std::nullopt);
               }));
}

void ServerLease::on_seen(const std::optional<Entry>& lease) {
  if (!lease) return write(Revision());
  if (holder_in(*lease) == holder_) return write(lease->mod_revision);
  const Instant now = ports_.now();
  if (lease->mod_revision != seen_) {
    seen_ = lease->mod_revision;
    seen_at_ = now;
  } else if (now - seen_at_ >= kHeldFor) {
    return write(lease->mod_revision);
  }
  if (const std::string holder(holder_in(*lease)); holder != waits_for_) {
    waits_for_ = holder;
    listener_.on_waiting(holder);
  }
  later();
}

void ServerLease::write(Revision expected) {
  asked_ = ports_.now();
  auto value = std::make_shared<const std::string>(fmt::format("{} {}", holder_, ++writes_));
  store_.write({.key = std::string(kKey), .value = std::move(value), .expected = expected},
               alive_.guard([this](const Result<WriteResult>& result) {
                 if (!over_) on_written(result);
               }));
}

void ServerLease::on_written(const Result<WriteResult>& result) {
  if (!result) {
    if (!held_) listener_.on_failure(result.error());
    if (store_.is_full()) renewed_ = asked_;  // no other server could take the lease either
    return later();
  }
  if (!result->committed) {
    if (held_) {
      lose(result->current ? fmt::format("server {} has taken the lease", holder_in(*result->current))
                           : "the lease of this server has been deleted");
    }
    return later();
  }
  if (ports_.now() >= asked_ + kActsFor) return later();  // another server may hold the lease since
  written_ = result->revision;
  renewed_ = asked_;
  if (!std::exchange(held_, true)) listener_.on_taken();
  if (over_) return;
  watch_own_time();
  later();
}

void ServerLease::lose(const std::string& why) {
  held_ = false;
  waits_for_.clear();
  seen_ = {};
  listener_.on_lost(why);
}

void ServerLease::give_back(std::function<void()> done) {
  over_ = true;
  if (!std::exchange(held_, false)) return done();
  store_.write({.key = std::string(kKey), .value = nullptr, .expected = written_},
               [done = std::move(done)](const Result<WriteResult>&) { done(); });
}

}  // namespace spillway::store
