#include "controllers/workloads/expectations.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace spillway::controllers {
namespace {

constexpr Duration kUnansweredWait = seconds(10);
constexpr Duration kUnseenMax = minutes(5);
constexpr Duration kResyncWait = seconds(15);  // has the cache listed anew?

/// True if the request may have been carried out without an answer.
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

std::optional<Instant> Expectations::next_sync(Instant now) const {
  if (fulfilled(now) || open_calls_ > 0) return std::nullopt;
  return std::min(answered_ + kUnseenMax, now + kResyncWait);
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

void ExpectationTable::complete(const std::string& uid, const std::function<void(Expectations&)>& change,
                                const Requeue& requeue, Now now) {
  const auto found = by_owner_.find(uid);
  if (found == by_owner_.end()) return;
  change(found->second);
  if (found->second.fulfilled(now.mono)) requeue(now);
}

void ExpectationTable::complete_failed(const std::string& uid, const Error& error, client::ApiClient& client,
                                       std::function<void(Expectations&)> change, Requeue requeue, Now now) {
  if (!is_unanswered(error)) return complete(uid, change, [](Now) {}, now);
  client.at(now.mono + kUnansweredWait, [this, uid, change = std::move(change), requeue = std::move(requeue)](
                                            Now then) { complete(uid, change, requeue, then); });
}

void ExpectationTable::created(const std::string& uid, const std::string& pod_uid, const Requeue& requeue, Now now) {
  complete(
      uid, [&](Expectations& expected) { expected.created(pod_uid, pods_.lists_begun(), now.mono); }, requeue, now);
}

void ExpectationTable::creation_failed(const std::string& uid, const Error& error, client::ApiClient& client,
                                       Requeue requeue, Now now) {
  complete_failed(
      uid, error, client, [](Expectations& expected) { expected.creations_dropped(1); }, std::move(requeue), now);
}

void ExpectationTable::creations_dropped(const std::string& uid, std::size_t pods, const Requeue& requeue, Now now) {
  complete(uid, [&](Expectations& expected) { expected.creations_dropped(pods); }, requeue, now);
}

void ExpectationTable::deleted(const std::string& uid, const Requeue& requeue, Now now) {
  complete(uid, [&](Expectations& expected) { expected.deletion_answered(now.mono); }, requeue, now);
}

void ExpectationTable::deletion_failed(const std::string& uid, const std::string& pod_uid, const Error& error,
                                       client::ApiClient& client, Requeue requeue, Now now) {
  complete_failed(
      uid, error, client, [pod_uid](Expectations& expected) { expected.deletion_dropped(pod_uid); }, std::move(requeue),
      now);
}

}  // namespace spillway::controllers
