// What a controller has asked for and not seen yet. While something is outstanding its cache is known to be behind, and
// acting on it again would create or delete twice. Answers and watch events come in any order: a pod counts as made
// when its creation was answered and the cache shows it, a pod as removed when its deletion was answered and the cache
// shows that; pods that come from elsewhere (adopted ones, say) change nothing. Thread: loop. Bounds: a call always
// ends (client::ApiClient); what was answered and is not seen expires after five minutes, so that a lost event stops
// nobody for ever. Source: the idea of client-go's controller expectations.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "client/api_client.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace spillway::controllers {

class Expectations {
 public:
  /// So many pods are about to be asked for, in one batch or in several.
  void expect_creations(std::size_t pods) { open_calls_ += pods; }

  /// One of them was made.
  void created(const std::string& uid, Instant now);
  /// So many of them were not made, or are not asked for any more.
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

  /// The cache shows the pod on its way out, or not at all any more.
  void left(const std::string& uid) { deletions_.erase(uid); }

  /// Its deletion was asked for, and the cache does not show that yet.
  bool is_leaving(const std::string& uid) const { return deletions_.contains(uid); }

  /// Some are.
  bool any_leaving() const { return !deletions_.empty(); }

  /// Every call has been answered, and what came of them was seen or has expired.
  bool fulfilled(Instant now) const;

  /// When they count as fulfilled although something was not seen; nullopt: a call is open, or nothing is missing.
  /// Whoever waits has to look again then: nothing else may happen.
  std::optional<Instant> expiry() const;

  /// Starts over: before new work, once fulfilled.
  void reset();

 private:
  void call_ended(std::size_t calls);

  std::size_t open_calls_ = 0;
  std::set<std::string> unseen_;     // answered, and not in the cache so far
  std::set<std::string> early_;      // in the cache while calls are open: perhaps theirs
  std::set<std::string> deletions_;  // asked for, and not seen
  Instant answered_{};               // the last of them
};

/// The expectations of every owner, by its uid.
class ExpectationTable {
 public:
  /// Of an owner that exists; valid until it is forgotten.
  Expectations& of(const std::string& uid) { return by_owner_[uid]; }

  void forget(const std::string& uid) { by_owner_.erase(uid); }

  // What became of the calls. `look_again`: when the owner has nothing outstanding any more, whether at once or
  // later. A call that got no answer may have been carried out: the cache gets ten seconds to show it before it counts
  // as dropped. The owner may be gone by then, and whatever was expected of it.
  using LookAgain = std::function<void(Now)>;

  void created(const std::string& uid, const std::string& pod_uid, const LookAgain& look_again, Now now);
  void creation_failed(const std::string& uid, const Error& error, client::ApiClient& client, LookAgain look_again,
                       Now now);
  /// Creations that are not asked for any more, after others of their batches.
  void creations_dropped(const std::string& uid, std::size_t pods, const LookAgain& look_again, Now now);
  void deleted(const std::string& uid, const LookAgain& look_again, Now now);
  void deletion_failed(const std::string& uid, const std::string& pod_uid, const Error& error,
                       client::ApiClient& client, LookAgain look_again, Now now);

 private:
  void settle(const std::string& uid, const std::function<void(Expectations&)>& change, const LookAgain& look_again,
              Now now);
  void settle_failure(const std::string& uid, const Error& error, client::ApiClient& client,
                      std::function<void(Expectations&)> change, LookAgain look_again, Now now);

  std::map<std::string, Expectations> by_owner_;
};

}  // namespace spillway::controllers
