#include "store/memory_store.h"

#include "base/check.h"
#include "store/too_old.h"

#include <algorithm>
#include <utility>

namespace spillway::store {

MemoryStore::MemoryStore(Poster post, StoreLimits limits, std::uint64_t history_revisions_max)
    : post_(std::move(post)), limits_(limits), history_revisions_max_(history_revisions_max) {}

MemoryStore::~MemoryStore() = default;

void MemoryStore::write(Write write, Completion<WriteResult> done) {
  if (std::optional<Error> error = refuse_write(write, limits_)) return refuse(std::move(*error), std::move(done));
  const std::size_t bytes = write.key.size() + (write.value ? write.value->size() : 0);
  enqueue(std::move(write), std::move(done), bytes);
}

void MemoryStore::range(Range range, Completion<RangeResult> done) {
  enqueue(std::move(range), std::move(done), 0);
}

void MemoryStore::compact(Revision revision, Completion<Revision> done) {
  enqueue(revision, std::move(done), 0);
}

WatchId MemoryStore::watch(std::string prefix, Revision after, Watcher& watcher) {
  const WatchId id = watches_.add(std::move(prefix), after, watcher);
  new_watches_.push_back(id);
  schedule();
  return id;
}

void MemoryStore::unwatch(WatchId id) {
  watches_.remove(id);
}

template <typename Request, typename Answer>
void MemoryStore::enqueue(Request request, Completion<Answer> done, std::size_t bytes) {
  if (pending_.size() >= limits_.pending_operations_max || pending_bytes_ + bytes > limits_.pending_bytes_max) {
    return refuse(
        make_error(ErrorCode::kTooManyRequests, "the store is busy: {} operations are waiting", pending_.size()),
        std::move(done));
  }
  pending_bytes_ += bytes;
  pending_.emplace_back(Operation<Request, Answer>{std::move(request), std::move(done)});
  schedule();
}

template <typename Answer>
void MemoryStore::refuse(Error error, Completion<Answer> done) {
  post_(alive_.guard([done = std::move(done), error = std::move(error)]() mutable { done(std::move(error)); }));
}

void MemoryStore::schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  post_(alive_.guard([this] { run_pending(); }));
}

void MemoryStore::run_pending() {
  scheduled_ = false;
  pending_bytes_ = 0;
  std::vector<Pending> operations = std::exchange(pending_, {});
  start_new_watches();
  std::vector<Change> changes;
  for (Pending& operation : operations) {
    std::visit([&](auto& one) { apply(one, changes); }, operation);
  }
  bound_history();
  watches_.publish(changes);
  delivered_ = head_;
  for (Pending& operation : operations) {
    std::visit([](auto& one) { one.done(std::move(one.answer)); }, operation);
  }
}

/// Replays what a new watch missed. Runs before anything new is applied, so that nothing is missed in between.
void MemoryStore::start_new_watches() {
  for (const WatchId id : std::exchange(new_watches_, {})) {
    if (!watches_.has(id)) continue;
    const Revision after = watches_.delivered_to(id);
    if (after < compacted_) {
      watches_.end(id, too_old(after, compacted_));
      continue;
    }
    watches_.go_live(id);
    std::vector<Change> missed;
    for (std::uint64_t number = after.number() + 1; number <= head_.number(); ++number) {
      const Keys::iterator key = log_[number - compacted_.number() - 1];
      if (key->first.starts_with(watches_.prefix(id))) missed.push_back(change_at(Revision(number)));
    }
    watches_.deliver(id, missed);
  }
}

void MemoryStore::apply(WriteOperation& operation, std::vector<Change>& changes) {
  operation.answer = commit(std::move(operation.request), changes);
}

void MemoryStore::apply(RangeOperation& operation, std::vector<Change>&) {
  operation.answer = read(operation.request);
}

void MemoryStore::apply(CompactOperation& operation, std::vector<Change>&) {
  const Revision wanted = operation.request;
  if (wanted > head_) {
    operation.answer = make_error(ErrorCode::kTimeout, "cannot compact to revision {}: the store is at {}",
                                  wanted.number(), head_.number());
    return;
  }
  if (wanted > compacted_) forget_before(wanted);
  operation.answer = compacted_;
}

WriteResult MemoryStore::commit(Write write, std::vector<Change>& changes) {
  const auto found = keys_.find(write.key);
  const Version* before = found == keys_.end() ? nullptr : &found->second.back();
  if (before != nullptr && !before->value) before = nullptr;

  WriteResult result;
  if (before != nullptr) {
    result.current = Entry{write.key, before->value, before->create_revision, before->mod_revision, before->version};
  }
  const Revision present = before == nullptr ? Revision() : before->mod_revision;
  const bool holds = !write.expected || *write.expected == present;
  const bool deletes_nothing = !write.value && before == nullptr;
  if (!holds || deletes_nothing) {
    result.revision = head_;
    return result;
  }

  head_ = Revision(head_.number() + 1);
  result.committed = true;
  result.revision = head_;
  const Version next{head_, before == nullptr ? head_ : before->create_revision,
                     write.value && before != nullptr ? before->version + 1 : 1, write.value};
  const Value previous = before == nullptr ? nullptr : before->value;
  const auto key = found == keys_.end() ? keys_.emplace(write.key).first : found;
  key->second.push_back(next);
  log_.push_back(key);
  changes.push_back(Change{key->first, head_, next.create_revision, next.value, previous});
  if (next.value) result.current.reset();
  return result;
}

Result<RangeResult> MemoryStore::read(const Range& range) const {
  const Revision at = range.at.value_or(head_);
  if (at > head_) {
    return make_error(ErrorCode::kTimeout, "revision {} is not reached yet, the store is at {}", at.number(),
                      head_.number());
  }
  if (at < compacted_) {
    return make_error(ErrorCode::kExpired, "revision {} is compacted, the oldest is {}", at.number(),
                      compacted_.number());
  }
  RangeResult result;
  result.revision = at;
  const auto& keys = keys_.ordered();
  auto key = range.start_after < range.prefix ? keys.lower_bound(range.prefix) : keys.upper_bound(range.start_after);
  for (; key != keys.end() && key->first.starts_with(range.prefix); ++key) {
    const Version* shown = version_at(key->second, at);
    if (shown == nullptr || !shown->value) continue;
    if (range.limit != 0 && result.entries.size() == range.limit) {
      ++result.remaining;
      continue;
    }
    result.entries.push_back(
        Entry{key->first, shown->value, shown->create_revision, shown->mod_revision, shown->version});
  }
  return result;
}

void MemoryStore::forget_before(Revision revision) {
  while (compacted_ < revision) {
    const Keys::iterator key = log_.front();
    log_.pop_front();
    compacted_ = Revision(compacted_.number() + 1);
    std::vector<Version>& versions = key->second;
    const Version* kept = version_at(versions, revision);
    if (kept->mod_revision != compacted_) continue;  // a later write of the key is compacted, too
    const auto first = versions.begin() + (kept - versions.data());
    if (first->value) {
      versions.erase(versions.begin(), first);
    } else {
      versions.erase(versions.begin(), first + 1);
      if (versions.empty()) keys_.erase(key);
    }
  }
}

/// Forgets in batches, so that a key that changes often is not gone through at each of its changes.
void MemoryStore::bound_history() {
  const std::uint64_t kept = head_.number() - compacted_.number();
  if (kept > history_revisions_max_ + history_revisions_max_ / 8) {
    forget_before(Revision(head_.number() - history_revisions_max_));
  }
}

Change MemoryStore::change_at(Revision revision) const {
  const Keys::iterator key = log_[revision.number() - compacted_.number() - 1];
  const Version* now = version_at(key->second, revision);
  SPILLWAY_CHECK(now != nullptr && now->mod_revision == revision);
  const bool first = now == key->second.data();
  return Change{key->first, revision, now->create_revision, now->value, first ? nullptr : (now - 1)->value};
}

const MemoryStore::Version* MemoryStore::version_at(const std::vector<Version>& versions, Revision revision) {
  const auto after = std::ranges::upper_bound(versions, revision, {}, &Version::mod_revision);
  return after == versions.begin() ? nullptr : &*(after - 1);
}

}  // namespace spillway::store
