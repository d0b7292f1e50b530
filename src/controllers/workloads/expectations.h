// Creations and deletions of a controller that its cache does not show yet. While one is outstanding the cache is known
// to be behind, and acting on it again would create or delete twice. Answers and watch events arrive in any order: a
// pod counts as made when its creation was answered and the cache shows it, a pod as removed when its deletion was
// answered and the cache shows that; pods of other origin (adopted ones, say) change nothing. Thread: loop. Bounds: a
// call always ends (client::ApiClient); an answered call that the cache does not show expires when the cache has listed
// anew, and after five minutes, so that a lost event stops no sync for ever. Source: the idea of client-go's controller
// expectations.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/informer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace spillway::controllers {

class Expectations {
 public:
  /// Records that this number of creations will be sent, in one batch or in several.
  void expect_creations(std::size_t pods) { open_calls_ += pods; }

  /// Records the answer to one creation; `lists_begun`: number of lists that the cache had begun by then.
  void created(const std::string& uid, std::uint64_t lists_begun, Instant now);
  /// Records that this number of creations failed, or will not be sent.
  void creations_dropped(std::size_t pods);
  /// The cache shows the pod for the first time.
  void appeared(const std::string& uid);

  void expect_deletion(const std::string& uid) {
    deletions_.insert(uid);
    ++open_calls_;
  }

  /// The deletion was accepted.
  void deletion_answered(Instant now);
  /// The deletion was refused.
  void deletion_dropped(const std::string& uid);

  /// The cache shows that the pod is terminating, or gone.
  void left(const std::string& uid) { deletions_.erase(uid); }

  /// True if the pod's deletion was requested, and the cache does not show that yet.
  bool is_leaving(const std::string& uid) const { return deletions_.contains(uid); }

  /// True if the deletion of any pod is outstanding.
  bool any_leaving() const { return !deletions_.empty(); }

  /// The cache has read the whole list of this number: pods that were made before it began and do not appear have gone
  /// again.
  void listed(std::uint64_t list);

  /// Every call has been answered, and the cache has shown its result or it has expired.
  bool fulfilled(Instant now) const;

  /// The time of the next sync of a waiting owner if nothing else happens: the cache has listed anew, or an unseen
  /// result expires. nullopt: a call is open, or nothing is missing.
  std::optional<Instant> next_sync(Instant now) const;

  /// Starts over: before new work, once fulfilled.
  void reset();

 private:
  void call_ended(std::size_t calls);

  std::size_t open_calls_ = 0;
  std::map<std::string, std::uint64_t> unseen_;  // answered, and not in the cache so far; lists begun until then
  std::set<std::string> early_;                  // in the cache while calls are open: perhaps theirs
  std::set<std::string> deletions_;              // requested deletions that the cache does not show
  Instant answered_{};                           // time of the last answer
};

/// The expectations of every owner, by its uid.
class ExpectationTable {
 public:
  /// `pods`: the cache that shows the effect of the calls; outlives the table.
  explicit ExpectationTable(const client::InformerBase& pods) : pods_(pods) {}

  /// The expectations of an existing owner; valid until it is forgotten.
  Expectations& of(const std::string& uid);

  void forget(const std::string& uid) { by_owner_.erase(uid); }

  // Completions of calls. `requeue`: called when the owner has nothing outstanding any more, whether at once or
  // later. A call without an answer may have been carried out: the cache gets ten seconds to show it before it counts
  // as failed. The owner, and its expectations, may be gone by then.
  using Requeue = std::function<void(Now)>;

  void created(const std::string& uid, const std::string& pod_uid, const Requeue& requeue, Now now);
  void creation_failed(const std::string& uid, const Error& error, client::ApiClient& client, Requeue requeue, Now now);
  /// Creations that will not be sent, after others of their batches failed.
  void creations_dropped(const std::string& uid, std::size_t pods, const Requeue& requeue, Now now);
  void deleted(const std::string& uid, const Requeue& requeue, Now now);
  void deletion_failed(const std::string& uid, const std::string& pod_uid, const Error& error,
                       client::ApiClient& client, Requeue requeue, Now now);

 private:
  void complete(const std::string& uid, const std::function<void(Expectations&)>& change, const Requeue& requeue,
                Now now);
  void complete_failed(const std::string& uid, const Error& error, client::ApiClient& client,
                       std::function<void(Expectations&)> change, Requeue requeue, Now now);

  const client::InformerBase& pods_;
  std::map<std::string, Expectations> by_owner_;
};

}  // namespace spillway::controllers
