// What a controller has asked for and not seen yet. While something is outstanding its cache is known to be behind, and
// acting on it again would create or delete twice.
// Thread: loop. Bounds: outstanding work expires after five minutes, so that a lost event stops nobody for ever.
// Source: the idea of client-go's controller expectations.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "client/api_client.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace spillway::controllers {

class Expectations {
 public:
  void expect_creation(Instant now) {
    ++creations_;
    since_ = now;
  }

  void expect_deletion(const std::string& uid, Instant now) {
    deletions_.insert(uid);
    since_ = now;
  }

  /// Seen, or known not to have happened.
  void creation_settled() {
    if (creations_ > 0) --creations_;
  }

  void deletion_settled(const std::string& uid) { deletions_.erase(uid); }

  bool fulfilled(Instant now) const { return (creations_ == 0 && deletions_.empty()) || now - since_ > minutes(5); }

  /// Starts over: before new work once the old has expired.
  void reset() {
    creations_ = 0;
    deletions_.clear();
  }

 private:
  std::int64_t creations_ = 0;
  std::set<std::string> deletions_;
  Instant since_{};
};

/// The expectations of every owner, by its uid.
class ExpectationTable {
 public:
  /// Of an owner that exists; valid until it is forgotten.
  Expectations& of(const std::string& uid) { return by_owner_[uid]; }

  void forget(const std::string& uid) { by_owner_.erase(uid); }

  /// A creation for the owner has failed. One that got no answer may have happened: the cache gets ten seconds to show
  /// it before `look_again` may make another one; any other is settled at once, and `look_again` is not called.
  void creation_failed(const std::string& uid, const Error& error, client::ApiClient& client,
                       std::function<void(Now)> look_again, Now now);

  /// The deletion of one of the owner's pods has failed.
  void deletion_failed(const std::string& uid, const std::string& pod_uid);

 private:
  /// Null: the owner is gone, and whatever was expected of it.
  Expectations* find(const std::string& uid);

  std::map<std::string, Expectations> by_owner_;
};

}  // namespace spillway::controllers
