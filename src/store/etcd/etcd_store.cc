#include "store/etcd/etcd_store.h"

#include "store/too_old.h"

#include <algorithm>
#include <utility>

namespace spillway::store {
namespace {

constexpr std::size_t kFirstPage = 500;
constexpr std::size_t kLargestPage = 10'000;
constexpr std::size_t kPageBytes = std::size_t{16} * 1024 * 1024;
constexpr int kCreateAttempts = 3;  // for a key that other servers create and delete in turn

Error too_busy(std::size_t waiting) {
  return make_error(ErrorCode::kTooManyRequests, "the store is busy: {} operations are waiting", waiting);
}

EtcdRange key_alone(std::string key) {
  return {.key = std::move(key), .range_end = {}, .limit = 0, .at = {}, .count_only = false};
}

}  // namespace

struct EtcdStore::WriteJob {
  Write write;
  EtcdTxn txn;
  Completion<WriteResult> done;
  std::size_t bytes = 0;
  Revision asked_at;  // a lower bound: every effect of the write has a later revision
  int attempts = 0;
  bool uncertain = false;  // an attempt may have been carried out without an answer
  bool leased_again = false;

  bool creates() const { return write.value && write.expected == Revision(); }
};

struct EtcdStore::RangeJob {
  Range range;
  std::string end;
  Completion<RangeResult> done;
  RangeResult result;
  std::string first;  // key in etcd
  std::string next;   // first key of the next page
  std::optional<Revision> at;
  std::size_t page = kFirstPage;
  std::size_t bytes = 0;
  bool again = false;
};

EtcdStore::EtcdStore(std::unique_ptr<EtcdTransport> transport, Poster post, EtcdOptions options)
    : transport_(std::move(transport)),
      post_(std::move(post)),
      options_(std::move(options)),
      keys_(options_.root, options_.prefix),
      metrics_(options_.metrics, options_.name),
      rng_(options_.seed),
      calls_(*transport_, metrics_, options_.log, rng_.fork("calls")),
      leases_(*transport_, calls_, options_.lease_reuse) {}

EtcdStore::~EtcdStore() {
  for (const auto& [id, watch] : watches_) watch->close();
}

Revision EtcdStore::revision() const {
  Revision least = seen_;  // a watch may begin behind it
  for (const auto& [id, watch] : watches_) least = std::min(least, watch->delivered());
  return least;
}

template <typename T>
void EtcdStore::complete(Result<T> result, Completion<T> done) {
  post_(alive_.guard([done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); }));
}

// Answers wait until the revisions in them are delivered.

void EtcdStore::record_revision(Revision present) {
  seen_ = std::max(seen_, present);
  metrics_.revision.set(static_cast<double>(seen_.number()));
}

/// Runs `act` once everything up to `until` has been delivered, or after kHeldMax.
void EtcdStore::hold(Revision until, std::move_only_function<void()> act) {
  if (watches_.empty() || revision() >= until) return act();
  const std::uint64_t id = ++last_held_;
  held_.emplace(until, Held{id, std::move(act)});
  transport_->after(kHeldMax, alive_.guard([this, id, until] {
    const auto [first, last] = held_.equal_range(until);
    const auto late = std::find_if(first, last, [id](const auto& each) { return each.second.id == id; });
    if (late == last) return;
    Held held = std::move(late->second);
    held_.erase(late);
    held.act();
  }));
}

void EtcdStore::release() {
  while (!held_.empty() && (watches_.empty() || held_.begin()->first <= revision())) {
    Held held = std::move(held_.begin()->second);
    held_.erase(held_.begin());
    held.act();
  }
}

void EtcdStore::on_watch_delivered(Revision revision) {
  record_revision(revision);
  release();
}

/// The error for the caller; also records why the store refuses, for its health checks.
Error EtcdStore::failed(const Failure& failure) {
  const EtcdVerdict verdict = classify(failure);
  full_ = full_ || verdict == EtcdVerdict::kNoSpace;
  if (full_)
    refusing_ = called() + " is out of space: compact it, defragment each member, then disarm the alarm";
  else if (verdict == EtcdVerdict::kNotDone || verdict == EtcdVerdict::kUnknown || verdict == EtcdVerdict::kDenied ||
           verdict == EtcdVerdict::kCorrupt)
    refusing_ = called() + " does not answer: " + failure.message;
  Error error = error_of(failure);
  if (!options_.name.empty()) error.message = fmt::format("{}: {}", called(), error.message);
  return error;
}

/// Name of this etcd in messages.
std::string EtcdStore::called() const {
  return options_.name.empty() ? "etcd" : "the etcd of " + options_.name;
}

// Writes

void EtcdStore::write(Write write, Completion<WriteResult> done) {
  if (std::optional<Error> error = refuse_write(write, options_.limits))
    return complete<WriteResult>(std::move(*error), std::move(done));
  const std::size_t bytes = write.key.size() + (write.value ? write.value->size() : 0);
  if (pending_ >= options_.limits.pending_operations_max || pending_bytes_ + bytes > options_.limits.pending_bytes_max)
    return complete<WriteResult>(too_busy(pending_), std::move(done));
  ++pending_;
  pending_bytes_ += bytes;
  if (write.value) written_.emplace(write.key, Written{write.value, {}});
  auto job = std::make_shared<WriteJob>(WriteJob{std::move(write), {}, std::move(done), bytes, seen_});
  const Write& asked = job->write;
  job->txn = {.key = keys_.in_etcd(asked.key), .put = asked.value};
  if (asked.expected) {
    job->txn.compare = EtcdTxn::Compare::kModRevision;
    job->txn.compared = asked.expected->number();
    job->txn.read_otherwise = !job->creates();  // upstream's shape of a creation has no other branch
  }
  begin_write(job);
}

/// Begins a write; first gets a lease, if the key is to expire.
void EtcdStore::begin_write(const std::shared_ptr<WriteJob>& job) {
  if (!job->write.ttl || !job->write.value) return try_write(job);
  leases_.take(*job->write.ttl, [this, job](std::expected<std::int64_t, Failure> lease) {
    if (!lease) return answer(job, failed(lease.error()));
    job->txn.lease = *lease;
    try_write(job);
  });
}

void EtcdStore::try_write(std::shared_ptr<WriteJob> job) {
  ++job->attempts;
  // A write that expects a revision cannot succeed twice. One that expects an absent key can: another client may delete
  // the key that the first attempt created, and the second attempt would create it again.
  const bool once = !job->write.expected || job->creates();
  const auto repeat = once ? EtcdCalls::Repeat::kUnlessSent : EtcdCalls::Repeat::kAlways;
  const EtcdTxn& txn = job->txn;
  calls_.txn(txn, repeat, kCallMax,
             [this, job = std::move(job)](std::expected<EtcdTxnAnswer, Failure> done, bool uncertain) {
               job->uncertain = job->uncertain || uncertain;
               if (done) return on_txn(job, *std::move(done));
               if (is_lease_gone(done.error()) && !std::exchange(job->leased_again, true)) {
                 leases_.forget(job->txn.lease);
                 return begin_write(job);
               }
               if (job->uncertain && job->creates()) return on_exists(job);
               refuse(job, done.error());
             });
}

void EtcdStore::refuse(const std::shared_ptr<WriteJob>& job, const Failure& failure) {
  const Error error = failed(failure);
  if (!job->uncertain) return answer(job, error);
  metrics_.uncertain.add();
  answer(job, make_error(ErrorCode::kTimeout, "{}; the write may have been stored", error.text()));
}

void EtcdStore::on_txn(const std::shared_ptr<WriteJob>& job, EtcdTxnAnswer done) {
  record_revision(done.present);
  full_ = full_ && !job->write.value;  // deletions succeed in a full store, too
  if (!full_) refusing_.reset();
  // etcd finds that an absent key has mod_revision 0, and deletes none.
  const bool committed = done.succeeded && (job->write.value || done.deleted > 0);
  if (committed) {
    WriteResult result{.committed = true, .revision = done.present, .current = {}};
    if (!job->write.value) result.current = std::move(done.entry);
    if (result.current) result.current->key = job->write.key;
    return answer(job, std::move(result));
  }
  if (!done.succeeded && job->creates()) return on_exists(job);
  on_not_committed(job, std::move(done.entry), done.present);
}

/// Reads the key of a creation that was refused, or may have been carried out. If the key is gone by then, a creation
/// that was certainly refused is tried again.
void EtcdStore::on_exists(const std::shared_ptr<WriteJob>& job) {
  calls_.range(key_alone(job->txn.key), kCallMax, [this, job](std::expected<EtcdRangeAnswer, Failure> found, bool) {
    if (!found) return refuse(job, found.error());
    record_revision(found->present);
    if (found->entries.empty() && !job->uncertain && job->attempts < kCreateAttempts) return try_write(job);
    on_not_committed(job, found->entries.empty() ? std::nullopt : std::optional(std::move(found->entries.front())),
                     found->present);
  });
}

/// Answers a write that its last attempt did not carry out. An earlier attempt without an answer may have done it.
void EtcdStore::on_not_committed(const std::shared_ptr<WriteJob>& job, std::optional<Entry> found, Revision present) {
  if (found) found->key = job->write.key;
  WriteResult result{.committed = false, .revision = present, .current = std::move(found)};
  if (!job->uncertain) return answer(job, std::move(result));
  hold(present,
       [this, job, result = std::move(result)]() mutable { answer(job, what_became_of(*job, std::move(result))); });
}

/// Finds out if an attempt without an answer, before one that was refused, was carried out: the present key shows it,
/// or the written bytes in its history. A write that expected a revision which cannot come again is certainly refused,
/// if one watch has shown all writes since the request: a watch that began later, as after a gap, has not shown earlier
/// writes. A creation may still be carried out once the key is free, and it cannot be known whose deletion
/// freed it.
Result<WriteResult> EtcdStore::what_became_of(const WriteJob& job, WriteResult refused) {
  const Write& asked = job.write;
  if (!asked.value && !refused.current) {
    refused.committed = true;
    return refused;
  }
  if (asked.value) {
    if (refused.current && *refused.current->value == *asked.value)
      return WriteResult{.committed = true, .revision = refused.current->mod_revision, .current = {}};
    const auto [first, last] = written_.equal_range(asked.key);
    const auto own = std::find_if(first, last, [&](const auto& each) { return each.second.value == asked.value; });
    if (own != last && own->second.seen != Revision())
      return WriteResult{.committed = true, .revision = own->second.seen, .current = {}};
    const auto shown = [&](const auto& watch) {
      return watch.second->has_shown(asked.key, job.asked_at, refused.revision);
    };
    if (!job.creates() && std::ranges::any_of(watches_, shown)) return refused;
  }
  metrics_.uncertain.add();
  return make_error(ErrorCode::kTimeout, "{} did not answer in time; the write may have been stored", called());
}

void EtcdStore::answer(const std::shared_ptr<WriteJob>& job, Result<WriteResult> result) {
  const Revision until = result ? result->revision : Revision();
  hold(until, [this, job, result = std::move(result)]() mutable {
    --pending_;
    pending_bytes_ -= job->bytes;
    const auto [first, last] = written_.equal_range(job->write.key);
    const auto own = std::find_if(first, last, [&](const auto& each) { return each.second.value == job->write.value; });
    if (own != last) written_.erase(own);
    job->done(std::move(result));
  });
}

Value EtcdStore::as_written(const std::string& key, Value value, Revision revision) {
  const auto [first, last] = written_.equal_range(key);
  for (auto own = first; own != last; ++own) {
    if (*own->second.value != *value) continue;
    own->second.seen = revision;
    return own->second.value;
  }
  return value;
}

// Ranges

void EtcdStore::range(Range range, Completion<RangeResult> done) {
  if (pending_ >= options_.limits.pending_operations_max)
    return complete<RangeResult>(too_busy(pending_), std::move(done));
  if (range.at && (*range.at == Revision() || *range.at < compacted_))
    return complete<RangeResult>(make_error(ErrorCode::kExpired, "revision {} is compacted, the oldest is {}",
                                            range.at->number(), compacted_.number()),
                                 std::move(done));
  ++pending_;
  auto job = std::make_shared<RangeJob>();
  job->at = range.at;
  job->next = keys_.in_etcd(range.prefix);
  job->end = end_of_prefix(job->next);
  if (job->next.empty()) job->next = std::string(1, '\0');
  if (!range.start_after.empty() && range.start_after.starts_with(options_.root))
    job->next = std::max(job->next, keys_.in_etcd(range.start_after) + '\0');
  job->first = job->next;
  job->range = std::move(range);
  job->done = [this, done = std::move(done)](Result<RangeResult> result) mutable {
    --pending_;
    done(std::move(result));
  };
  next_page(job);
}

void EtcdStore::next_page(const std::shared_ptr<RangeJob>& job) {
  const bool beyond = job->end != std::string(1, '\0') && job->next >= job->end;  // only the revision is wanted
  EtcdRange page{.key = job->next,
                 .range_end = beyond ? std::string() : job->end,
                 .limit = job->range.limit != 0 ? job->range.limit : job->page,
                 .at = job->at.value_or(Revision()),
                 .count_only = beyond};
  calls_.range(std::move(page), kCallMax, [this, job, beyond](std::expected<EtcdRangeAnswer, Failure> answer, bool) {
    if (answer) {
      if (beyond) answer->count = 0;
      return on_page(job, *std::move(answer));
    }
    const bool compacted = classify(answer.error()) == EtcdVerdict::kCompacted;
    if (compacted && !job->range.at && !std::exchange(job->again, true)) {  // took too long: from the beginning
      job->at.reset();
      job->next = job->first;
      job->result.entries.clear();
      return next_page(job);
    }
    if (compacted)
      return learn_compacted([job, error = error_of(answer.error())]() mutable { job->done(std::move(error)); });
    job->done(failed(answer.error()));
  });
}

/// Reads the compacted revision, so that a caller that read at too old a revision can choose one that is left.
void EtcdStore::learn_compacted(std::move_only_function<void()> then) {
  calls_.range(key_alone(std::string(kCompactionKey)), kCallMax,
               [this, then = std::move(then)](std::expected<EtcdRangeAnswer, Failure> found, bool) mutable {
                 if (found && !found->entries.empty()) {
                   if (const auto revision = compaction_in(found->entries.front().value)) on_compaction_seen(*revision);
                 }
                 then();
               });
}

void EtcdStore::on_page(const std::shared_ptr<RangeJob>& job, EtcdRangeAnswer page) {
  record_revision(page.present);
  if (!full_) refusing_.reset();
  if (!job->at) job->at = page.present;
  const std::size_t got = page.entries.size();
  for (Entry& entry : page.entries) {
    job->bytes += entry.value->size();
    job->next = entry.key + '\0';
    entry.key = keys_.in_port(entry.key).value_or(std::string());
    job->result.entries.push_back(std::move(entry));
  }
  const std::size_t behind = page.count > got ? page.count - got : 0;
  if (behind > 0 && got > 0 && job->range.limit == 0) {
    const std::size_t mean = std::max<std::size_t>(job->bytes / job->result.entries.size(), 1);
    job->page = std::clamp<std::size_t>(kPageBytes / mean, 1, std::min(job->page * 2, kLargestPage));
    return next_page(job);
  }
  job->result.revision = *job->at;
  job->result.remaining = behind;
  hold(*job->at, [job] { job->done(std::move(job->result)); });
}

// Watches

WatchId EtcdStore::watch(std::string prefix, Revision after, Watcher& watcher) {
  const WatchId id = ++last_watch_;
  auto watch = std::make_shared<EtcdWatch>(
      *transport_, keys_, metrics_, options_.log, rng_.fork(fmt::format("watch {}", id)), *this,
      EtcdWatch::Wanted{std::move(prefix), after, watcher, options_.carries_previous});
  watches_.emplace(id, watch);
  if (after >= compacted_) {
    watch->begin();
    return id;
  }
  post_([weak = std::weak_ptr(watch), error = too_old(after, compacted_), this] {
    if (const auto alive = weak.lock()) on_watch_over(*alive, error);
  });
  return id;
}

void EtcdStore::unwatch(WatchId id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  found->second->close();
  watches_.erase(found);
  if (held_.empty()) return;
  post_(alive_.guard([this] { release(); }));
}

void EtcdStore::on_watch_over(EtcdWatch& watch, const Error& error) {
  const auto found = std::ranges::find_if(watches_, [&](const auto& each) { return each.second.get() == &watch; });
  if (found == watches_.end()) return;
  const std::shared_ptr<EtcdWatch> over = found->second;
  unwatch(found->first);
  over->watcher().on_watch_end(error);
}

void EtcdStore::on_compaction_seen(Revision revision) {
  compacted_ = std::max(compacted_, revision);
}

// Compaction

void EtcdStore::compact(Revision revision, Completion<Revision> done) {
  if (!options_.agrees_on_compaction) return compact_now(revision, std::move(done));
  EtcdTxn turn{.key = std::string(kCompactionKey),
               .put = std::make_shared<const std::string>(std::to_string(revision.number())),
               .compare = EtcdTxn::Compare::kVersion,
               .compared = static_cast<std::uint64_t>(compactions_),
               .read_otherwise = true};
  calls_.txn(std::move(turn), EtcdCalls::Repeat::kAlways, kCallMax,
             [this, revision, done = std::move(done)](std::expected<EtcdTxnAnswer, Failure> answer, bool) mutable {
               if (!answer) return done(failed(answer.error()));
               record_revision(answer->present);
               if (!answer->succeeded) {  // another server holds the lock
                 compactions_ = answer->entry ? static_cast<std::int64_t>(answer->entry->version) : 0;
                 return done(compacted_);
               }
               ++compactions_;
               compact_now(revision, std::move(done));
             });
}

void EtcdStore::compact_now(Revision revision, Completion<Revision> done) {
  if (revision <= compacted_) return complete<Revision>(compacted_, std::move(done));
  calls_.compact(revision, kCallMax,
                 [this, done = std::move(done)](std::expected<Revision, Failure> answer, bool) mutable {
                   if (!answer && classify(answer.error()) != EtcdVerdict::kCompacted)
                     return done(classify(answer.error()) == EtcdVerdict::kFuture ? error_of(answer.error())
                                                                                  : failed(answer.error()));
                   if (answer) on_compaction_seen(*answer);
                   done(compacted_);
                 });
}

// Barrier(): waits until the writes of all clients of etcd are visible here.

void EtcdStore::barrier(Completion<Revision> done) {
  if (barriers_.size() >= options_.limits.pending_operations_max)
    return complete<Revision>(too_busy(barriers_.size()), std::move(done));
  barriers_.push_back(std::move(done));
  if (!barrier_asked_) ask_barrier();
}

/// One request for all barriers that were added meanwhile: a later one may be about later writes.
void EtcdStore::ask_barrier() {
  barrier_asked_ = true;
  EtcdRange nothing = key_alone(keys_.in_etcd(options_.root) + "/health");
  nothing.count_only = true;
  calls_.range(
      std::move(nothing), kBarrierMax,
      [this, waiting = std::exchange(barriers_, {})](std::expected<EtcdRangeAnswer, Failure> found, bool) mutable {
        barrier_asked_ = false;
        if (!barriers_.empty()) ask_barrier();
        if (!found) {
          const Error error = failed(found.error());
          for (Completion<Revision>& done : waiting) done(error);
          return;
        }
        refusing_.reset();
        record_revision(found->present);
        hold(found->present, [this, until = found->present, waiting = std::move(waiting)]() mutable {
          const bool reached = watches_.empty() || revision() >= until;
          for (Completion<Revision>& done : waiting) {
            if (reached)
              done(until);
            else
              done(make_error(ErrorCode::kTimeout, "revision {} of {} has not arrived, the newest is {}",
                              until.number(), called(), revision().number()));
          }
        });
      });
}

}  // namespace spillway::store
