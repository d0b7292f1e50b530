#include "sim/etcd/checked_store.h"

#include "store/etcd/etcd_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::sim {

using store::Change;
using store::EtcdEvent;
using store::Revision;

namespace {

std::string bytes_of(const store::Value& value) {
  return value ? *value : "(deleted)";
}

bool same(const Change& change, const EtcdEvent& event) {
  return change.key == event.key && change.revision == event.revision && !change.value == !event.value &&
         bytes_of(change.value) == bytes_of(event.value);
}

bool same(const store::Entry& a, const store::Entry& b) {
  return a.key == b.key && *a.value == *b.value && a.create_revision == b.create_revision &&
         a.mod_revision == b.mod_revision && a.version == b.version;
}

}  // namespace

/// Wraps a watcher and checks the changes that it receives.
class CheckedStore::CheckedWatcher final : public store::Watcher {
 public:
  CheckedWatcher(CheckedStore& owner, std::string prefix, Revision after, store::Watcher& watcher)
      : owner_(owner), prefix_(std::move(prefix)), delivered_(after), watcher_(watcher) {}

  void on_changes(const std::vector<Change>& changes) override {
    const auto wanted = wanted_up_to(changes.back().revision);
    const bool right = std::ranges::equal(
        changes, wanted, [](const Change& change, const EtcdEvent* event) { return same(change, *event); });
    if (!right) {
      owner_.violate({Property::kWatchesWhole, collection_of(prefix_)},
                     fmt::format("a watch of \"{}\" got {} changes after {} up to {}, etcd has {}", prefix_,
                                 changes.size(), delivered_.number(), changes.back().revision.number(), wanted.size()));
    }
    delivered_ = std::max(delivered_, changes.back().revision);
    watcher_.on_changes(changes);
  }

  void on_reached(Revision revision) override {
    if (const auto missed = wanted_up_to(revision); !missed.empty())
      owner_.violate({Property::kWatchesWhole, collection_of(prefix_)},
                     fmt::format("a watch of \"{}\" was reported to have reached {} without the change of {} at {}",
                                 prefix_, revision.number(), missed.front()->key, missed.front()->revision.number()));
    delivered_ = std::max(delivered_, revision);
    watcher_.on_reached(revision);
  }

  void on_watch_end(const Error& error) override { watcher_.on_watch_end(error); }

 private:
  std::vector<const EtcdEvent*> wanted_up_to(Revision revision) const {
    std::vector<const EtcdEvent*> wanted;
    for (const EtcdEvent& event : owner_.history_.events(delivered_, revision))
      if (event.key.starts_with(prefix_)) wanted.push_back(&event);
    return wanted;
  }

  CheckedStore& owner_;
  std::string prefix_;
  Revision delivered_;
  store::Watcher& watcher_;
};

CheckedStore::CheckedStore(std::unique_ptr<store::Store> inner, const EtcdHistory& history, Acknowledged& acknowledged,
                           std::string name, Violate violate)
    : inner_(std::move(inner)),
      history_(history),
      acknowledged_(acknowledged),
      name_(std::move(name)),
      violate_(std::move(violate)) {}

CheckedStore::~CheckedStore() = default;

void CheckedStore::violate(const Violated& what, std::string_view text) const {
  violate_(what, fmt::format("{}: {}", name_, text));
}

// Watches

store::WatchId CheckedStore::watch(std::string prefix, Revision after, store::Watcher& watcher) {
  auto checked = std::make_unique<CheckedWatcher>(*this, prefix, after, watcher);
  const store::WatchId id = inner_->watch(std::move(prefix), after, *checked);
  watches_.emplace(id, std::move(checked));
  return id;
}

void CheckedStore::unwatch(store::WatchId id) {
  inner_->unwatch(id);
  watches_.erase(id);
}

// Writes and reads

void CheckedStore::write(store::Write write, store::Completion<store::WriteResult> done) {
  const std::string key = write.key;
  const store::Value value = write.value;
  const Revision before = history_.revision();
  inner_->write(std::move(write),
                [this, key, value, before, done = std::move(done)](Result<store::WriteResult> result) mutable {
                  if (result) {
                    check_write(key, value, before, *result);
                    if (result->committed) acknowledged_.revision = std::max(acknowledged_.revision, result->revision);
                  }
                  done(std::move(result));
                });
}

void CheckedStore::check_write(const std::string& key, const store::Value& value, Revision before,
                               const store::WriteResult& result) const {
  if (result.committed) {
    const auto events = history_.events(Revision(result.revision.number() - 1), result.revision);
    // A deletion whose answer got lost is answered as done once the key is absent.
    const bool is_there = std::ranges::any_of(events, [&](const EtcdEvent& event) {
      return event.key == key && !event.value == !value && bytes_of(event.value) == bytes_of(value);
    });
    if (!is_there && value)
      violate({Property::kAcknowledgedWrites, collection_of(key)},
              fmt::format("{} was not written at {}", key, result.revision.number()));
    return;
  }
  const auto is_own = [&](const EtcdEvent& event) { return value && event.value == value; };
  if (std::ranges::any_of(history_.events(before, history_.revision()), is_own))
    violate({Property::kAcknowledgedWrites, collection_of(key)},
            fmt::format("a write of {} was refused, and is done", key));
  if (result.revision < history_.compacted()) return;
  const auto stored = history_.read({.key = key, .range_end = {}, .at = result.revision}, history_.revision());
  const bool found = stored && !stored->entries.empty();
  if (stored && (found != result.current.has_value() || (found && !same(stored->entries.front(), *result.current))))
    violate({Property::kAcknowledgedWrites, collection_of(key)},
            fmt::format("a write of {} was refused for what was not there at {}", key, result.revision.number()));
}

void CheckedStore::range(store::Range range, store::Completion<store::RangeResult> done) {
  const Revision before = acknowledged_.revision;
  store::Range asked = range;
  inner_->range(std::move(range), [this, before, asked = std::move(asked),
                                   done = std::move(done)](Result<store::RangeResult> result) mutable {
    if (result) {
      check_range(asked, *result);
      if (!asked.at && result->revision < before)
        violate({Property::kAcknowledgedWrites, collection_of(asked.prefix)},
                fmt::format("a list of \"{}\" shows {}, {} had been written before", asked.prefix,
                            result->revision.number(), before.number()));
    }
    done(std::move(result));
  });
}

void CheckedStore::check_range(const store::Range& asked, const store::RangeResult& result) const {
  if (result.revision < history_.compacted()) return;
  const std::string first = asked.start_after.empty() ? asked.prefix : std::max(asked.prefix, asked.start_after + '\0');
  const std::string end = store::end_of_prefix(asked.prefix);
  if (first >= end && end.front() != '\0') return;
  const auto stored =
      history_.read({.key = first, .range_end = end, .limit = asked.limit, .at = result.revision}, history_.revision());
  if (!stored) return;
  const auto right = [](const store::Entry& a, const store::Entry& b) { return same(a, b); };
  if (!std::ranges::equal(stored->entries, result.entries, right))
    violate({Property::kAcknowledgedWrites, collection_of(asked.prefix)},
            fmt::format("a list of \"{}\" is not what was there at {}", asked.prefix, result.revision.number()));
}

void CheckedStore::barrier(store::Completion<Revision> done) {
  const Revision before = acknowledged_.revision;
  inner_->barrier([this, before, done = std::move(done)](Result<Revision> reached) mutable {
    if (reached && (*reached < before || (!watches_.empty() && inner_->revision() < before)))
      violate(violated(Property::kAcknowledgedWrites),
              fmt::format("a barrier returned {}, {} had been written before", reached->number(), before.number()));
    done(std::move(reached));
  });
}

}  // namespace spillway::sim
