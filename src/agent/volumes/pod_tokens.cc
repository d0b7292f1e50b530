#include "agent/volumes/pod_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace spillway::agent {
namespace {

constexpr Duration kRenewAtLatest = hours(24);
constexpr Duration kRenewEarlier = seconds(10);
constexpr Duration kTokenRetry = seconds(10);
constexpr std::int64_t kLifeMax = std::int64_t{1} << 32;  // seconds, as the API server has it

}  // namespace

Duration renewal_after(Duration life, double chance) {
  const auto part = Duration(static_cast<Duration::rep>(static_cast<double>(life.count()) * 0.8));
  const auto earlier = Duration(static_cast<Duration::rep>(static_cast<double>(kRenewEarlier.count()) * chance));
  return std::max(Duration::zero(), std::min(part, kRenewAtLatest) - earlier);
}

void PodTokens::hold(const std::shared_ptr<const api::Pod>& pod, const TokenWish& wish) {
  const Key key{pod->metadata.uid, wish};
  const auto [entry, added] = records_.try_emplace(key);
  entry->second.pod = pod;
  if (added) ask(key, entry->second);
}

void PodTokens::release(const std::string& uid) {
  const auto begin = records_.lower_bound(Key{uid, TokenWish{{}, std::numeric_limits<std::int64_t>::min()}});
  auto end = begin;
  for (; end != records_.end() && end->first.first == uid; ++end)
    if (end->second.timer) context_.api.cancel(*end->second.timer);
  records_.erase(begin, end);
}

void PodTokens::ask_again(const std::string& uid) {
  for (auto& [key, record] : records_) {
    if (key.first != uid || !record.error || record.asking) continue;
    record.answered = false;
    ask(key, record);
  }
}

bool PodTokens::is_answered(const std::string& uid, const TokenWish& wish) const {
  return records_.at({uid, wish}).answered;
}

Result<std::string> PodTokens::token(const std::string& uid, const TokenWish& wish, Now now) const {
  const Record& record = records_.at({uid, wish});
  if (!record.token.empty() && (!record.ends || now.mono < *record.ends)) return record.token;
  if (record.token.empty()) return record.error.value_or(make_error(ErrorCode::kInternalError, "not asked for yet"));
  return make_error(ErrorCode::kServiceUnavailable, "token of {}/{} expired and refresh failed: {}",
                    record.pod->metadata.ns, record.pod->spec.service_account_name,
                    record.error ? record.error->text() : "no answer");
}

void PodTokens::ask(const Key& key, Record& record) {
  if (record.timer) context_.api.cancel(*std::exchange(record.timer, std::nullopt));
  record.asking = true;
  const api::Pod& pod = *record.pod;
  const std::string account = pod.spec.service_account_name.empty() ? "default" : pod.spec.service_account_name;
  context_.api.create(client::object_path("v1", "serviceaccounts", pod.metadata.ns, account, "token"),
                      token_request(pod, key.second),
                      [this, key, uid = pod.metadata.uid](const Result<api::Json>& answer, Now now) {
                        on_answer(key, uid, answer, now);
                      });
}

void PodTokens::arm(const Key& key, Record& record, Instant due) {
  record.timer = context_.api.at(due, [this, key](Now) {
    const auto found = records_.find(key);
    if (found == records_.end()) return;
    found->second.timer.reset();
    ask(key, found->second);
  });
}

void PodTokens::on_answer(const Key& key, const std::string& pod_uid, const Result<api::Json>& answer, Now now) {
  const auto found = records_.find(key);
  if (found == records_.end() || !found->second.asking) return;
  Record& record = found->second;
  record.asking = false;
  const bool first = !std::exchange(record.answered, true);
  const std::string_view token = answer ? answer->string_at({"status", "token"}) : std::string_view();
  if (token.empty()) {
    record.error = answer ? make_error(ErrorCode::kInternalError, "the answer has no token") : answer.error();
    if (!record.token.empty()) arm(key, record, now.mono + kTokenRetry);  // the volume's own retry requests the others
  } else {
    record.error.reset();
    record.token = token;
    const api::Json* granted = answer->at({"spec", "expirationSeconds"});
    const auto asked = key.second.expiration_seconds;
    const Duration life = seconds(
        std::clamp<std::int64_t>(granted == nullptr ? asked : granted->if_int64().value_or(asked), 0, kLifeMax));
    record.ends = now.mono + life;
    arm(key, record, now.mono + std::max<Duration>(renewal_after(life, rng_.unit()), kTokenRetry));
  }
  const bool expired = record.ends && *record.ends <= now.mono;
  if (listener_ && (first || !record.error || record.token.empty() || expired)) listener_(pod_uid, now);
}

}  // namespace spillway::agent
