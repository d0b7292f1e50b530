#include "controllers/workloads/expectations.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace spillway::controllers {
namespace {

constexpr Duration kUnansweredWait = seconds(10);
constexpr Duration kUnseenMax = minutes(5);
constexpr Duration kLookAgain = seconds(15);  // has the cache listed anew?

/// The request may have been carried out all the same.
bool is_unanswered(const Error& error) {
  return error.code == ErrorCode::kTimeout || error.code == ErrorCode::kServiceUnavailable;
}

}  // namespace

void Expectations::call_ended(std::size_t calls) {
  open_calls_ -= std::min(calls, open_calls_);
  if (open_calls_ == 0) early_.clear();
}

void Expectations::created(const std::string& uid, std::uint64_t lists_begun, Instant now) {
  if (early_.erase(uid) == 0) unseen_.emplace(uid, lists_begun);
  answered_ = now;
  call_ended(1);
}

void Expectations::creations_dropped(std::size_t pods) {
  call_ended(pods);
}

void Expectations::appeared(const std::string& uid) {
  if (unseen_.erase(uid) == 0 && open_calls_ > 0) early_.insert(uid);
}

void Expectations::deletion_answered(Instant now) {
  answered_ = now;
  call_ended(1);
}

void Expectations::deletion_dropped(const std::string& uid) {
  deletions_.erase(uid);
  call_ended(1);
}

void Expectations::listed(std::uint64_t list) {
  std::erase_if(unseen_, [list](const auto& pod) { return pod.second < list; });
}

bool Expectations::fulfilled(Instant now) const {
  if (open_calls_ > 0) return false;
  return (unseen_.empty() && deletions_.empty()) || now - answered_ >= kUnseenMax;
}

std::optional<Instant> Expectations::next_look(Instant now) const {
  if (fulfilled(now) || open_calls_ > 0) return std::nullopt;
  return std::min(answered_ + kUnseenMax, now + kLookAgain);
}

void Expectations::reset() {
  SPILLWAY_CHECK(open_calls_ == 0);
  unseen_.clear();
  deletions_.clear();
}

Expectations& ExpectationTable::of(const std::string& uid) {
  Expectations& expected = by_owner_[uid];
  expected.listed(pods_.last_whole_list());
  return expected;
}

void ExpectationTable::settle(const std::string& uid, const std::function<void(Expectations&)>& change,
                              const LookAgain& look_again, Now now) {
  const auto found = by_owner_.find(uid);
  if (found == by_owner_.end()) return;
  change(found->second);
  if (found->second.fulfilled(now.mono)) look_again(now);
}

void ExpectationTable::settle_failure(const std::string& uid, const Error& error, client::ApiClient& client,
                                      std::function<void(Expectations&)> change, LookAgain look_again, Now now) {
  if (!is_unanswered(error)) return settle(uid, change, [](Now) {}, now);
  client.at(now.mono + kUnansweredWait, [this, uid, change = std::move(change), look_again = std::move(look_again)](
                                            Now then) { settle(uid, change, look_again, then); });
}

void ExpectationTable::created(const std::string& uid, const std::string& pod_uid, const LookAgain& look_again,
                               Now now) {
  settle(
      uid, [&](Expectations& expected) { expected.created(pod_uid, pods_.lists_begun(), now.mono); }, look_again, now);
}

void ExpectationTable::creation_failed(const std::string& uid, const Error& error, client::ApiClient& client,
                                       LookAgain look_again, Now now) {
  settle_failure(
      uid, error, client, [](Expectations& expected) { expected.creations_dropped(1); }, std::move(look_again), now);
}

void ExpectationTable::creations_dropped(const std::string& uid, std::size_t pods, const LookAgain& look_again,
                                         Now now) {
  settle(uid, [&](Expectations& expected) { expected.creations_dropped(pods); }, look_again, now);
}

void ExpectationTable::deleted(const std::string& uid, const LookAgain& look_again, Now now) {
  settle(uid, [&](Expectations& expected) { expected.deletion_answered(now.mono); }, look_again, now);
}

void ExpectationTable::deletion_failed(const std::string& uid, const std::string& pod_uid, const Error& error,
                                       client::ApiClient& client, LookAgain look_again, Now now) {
  settle_failure(
      uid, error, client, [pod_uid](Expectations& expected) { expected.deletion_dropped(pod_uid); },
      std::move(look_again), now);
}

}  // namespace spillway::controllers
