// Expiry of stored objects: Events after an hour (--event-ttl), decided certificate requests after an hour and others
// after a day, bootstrap tokens at their own time, history of the store after some minutes. Thread: loop. Bounds:
// kCollectorWritesMax deletions in flight. Source: spec "API server contract", 14.2, 22.4.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/remover.h"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace spillway::apiserver {

/// Deletes the objects of one resource some time after they were last written, or at a time that they carry.
class Expiry final : public Collector {
 public:
  struct Rule {
    std::string_view plural;  // "events", "certificatesigningrequests.certificates.k8s.io"
    /// The remaining life of an object at `now`, counted from its write or from its first sight by a new process.
    /// nullopt: it stays.
    std::function<std::optional<Duration>(const api::Json& object, WallTime now)> life;
    /// The time at which the object was last in use; for objects that existed when the server started.
    std::optional<WallTime> (*last_seen)(const api::Json& object) = nullptr;
    /// The object's life ends by the wall clock, which is checked once more before the deletion.
    bool by_wall_clock = false;
  };

  enum class Wanted { kNo, kYes };

  Expiry(Core& core, Remover& remover, const Rule& rule, Wanted wanted = Wanted::kYes);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;

  void act() override {}

  void expect(const std::string& key, Instant due);
  void forget(const std::string& key);
  void arm();
  void sweep();
  void on_removed(const std::string& key, const api::StatusResult<Removed>& result);

  Core& core_;
  Remover& remover_;
  Rule rule_;
  Wanted wanted_;
  const ResourceCache& objects_;
  std::set<std::pair<Instant, std::string>> due_;
  std::map<std::string, Instant> due_by_key_;  // the entries of due_, by key
  std::optional<TimerQueue::Id> timer_;
  Instant armed_for_{};  // when timer_ is due
  std::size_t removing_ = 0;
};

/// Events. A store that expires keys by itself gets `ttl` and some more time for it: keys that were written without a
/// lease are deleted in the end.
Expiry::Rule event_expiry(const Core& core);
/// Deletes certificate requests as the controller manager does: an hour after they were issued, denied or failed, else
/// a day after their creation.
extern const Expiry::Rule kRequestExpiry;
/// Deletes bootstrap tokens as the controller manager's token cleaner does: Secrets of kube-system, once their
/// expiration has passed or cannot be parsed.
extern const Expiry::Rule kTokenExpiry;

/// Compacts each store once a minute: keeps five minutes and ten thousand revisions, of a busy store at most two
/// hundred thousand; half a minute for a store of nothing but resources without history, compacted twice as often.
class Compaction {
 public:
  /// `interval` of history is kept in each store; 0: all of it, as far as this server decides.
  Compaction(Core& core, Duration interval);

  void start();

 private:
  struct History {
    Origin& origin;
    Duration age;
    std::deque<std::pair<Instant, store::Revision>> samples;  // one sample a minute, or each `age`
    bool is_asked_for = false;                                // by watches and lists of the past
  };

  void tick(History& history);
  void on_compacted(const History& history, const Result<store::Revision>& result) const;

  Core& core_;
  Duration interval_;
  std::vector<History> histories_;
};

}  // namespace spillway::apiserver
