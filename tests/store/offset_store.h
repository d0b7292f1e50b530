// A store whose revisions begin where another one stands: what a test of an empty store sees of an etcd that is not
// empty. Thread: as the other store.
#pragma once

#include "store/store.h"

#include <map>
#include <memory>
#include <utility>

namespace spillway::store {

class OffsetStore final : public Store {
 public:
  OffsetStore(std::unique_ptr<Store> store, Revision base) : store_(std::move(store)), base_(base.number()) {}

  void write(Write write, Completion<WriteResult> done) override {
    // 0 is no revision: the key must not exist.
    if (write.expected && *write.expected != Revision()) write.expected = up(*write.expected);
    store_->write(std::move(write), [this, done = std::move(done)](Result<WriteResult> result) mutable {
      if (result) {
        result->revision = down(result->revision);
        if (result->current) lower(*result->current);
      }
      done(std::move(result));
    });
  }

  void range(Range range, Completion<RangeResult> done) override {
    if (range.at) range.at = up(*range.at);
    store_->range(std::move(range), [this, done = std::move(done)](Result<RangeResult> result) mutable {
      if (result) {
        result->revision = down(result->revision);
        for (Entry& entry : result->entries) lower(entry);
      }
      done(std::move(result));
    });
  }

  WatchId watch(std::string prefix, Revision after, Watcher& watcher) override {
    auto lowered = std::make_unique<Lowered>(*this, watcher);
    Lowered& receiver = *lowered;
    const WatchId id = store_->watch(std::move(prefix), up(after), receiver);
    watches_.emplace(id, std::move(lowered));
    return id;
  }

  bool expires_keys() const override { return store_->expires_keys(); }

  void unwatch(WatchId id) override { store_->unwatch(id); }

  void compact(Revision revision, Completion<Revision> done) override {
    store_->compact(up(revision), [this, done = std::move(done)](Result<Revision> result) mutable {
      if (result) *result = down(*result);
      done(std::move(result));
    });
  }

  Revision revision() const override { return down(store_->revision()); }

  Revision compacted() const override { return down(store_->compacted()); }

 private:
  struct Lowered final : Watcher {
    Lowered(const OffsetStore& own, Watcher& receiver) : store(own), watcher(receiver) {}

    void on_changes(const std::vector<Change>& changes) override {
      std::vector<Change> lowered = changes;
      for (Change& change : lowered) {
        change.revision = store.down(change.revision);
        change.create_revision = store.down(change.create_revision);
      }
      watcher.on_changes(lowered);
    }

    void on_reached(Revision revision) override { watcher.on_reached(store.down(revision)); }

    void on_watch_end(const Error& error) override { watcher.on_watch_end(error); }

    const OffsetStore& store;
    Watcher& watcher;
  };

  Revision up(Revision revision) const { return Revision(revision.number() + base_); }

  Revision down(Revision revision) const { return Revision(revision.number() > base_ ? revision.number() - base_ : 0); }

  void lower(Entry& entry) const {
    entry.create_revision = down(entry.create_revision);
    entry.mod_revision = down(entry.mod_revision);
  }

  std::unique_ptr<Store> store_;
  std::uint64_t base_;
  std::map<WatchId, std::unique_ptr<Lowered>> watches_;
};

}  // namespace spillway::store
