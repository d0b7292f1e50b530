#include "sim/etcd/etcd_history.h"

#include <algorithm>

namespace spillway::sim {
namespace {

using store::Revision;

std::size_t size_of(const std::string& key, const store::Value& value) {
  return key.size() + (value ? value->size() : 0);
}

}  // namespace

const EtcdHistory::State* EtcdHistory::find(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() || !found->second.back().value ? nullptr : &found->second.back();
}

void EtcdHistory::put(const std::string& key, store::Value value) {
  const State* const before = find(key);
  State next{.value = std::move(value), .created = revision_, .modified = revision_, .version = 1};
  if (before != nullptr) {
    next.created = before->created;
    next.version = before->version + 1;
  }
  bytes_ += size_of(key, next.value);
  events_.push_back({.key = key,
                     .value = next.value,
                     .revision = revision_,
                     .create_revision = next.created,
                     .previous = before == nullptr ? nullptr : before->value});
  keys_[key].push_back(std::move(next));
}

void EtcdHistory::write(const std::vector<Put>& puts) {
  const auto does_something = [this](const Put& each) { return each.second || find(each.first) != nullptr; };
  if (std::ranges::none_of(puts, does_something)) return;
  revision_ = Revision(revision_.number() + 1);
  for (const Put& each : puts)
    if (does_something(each)) put(each.first, each.second);
}

store::EtcdTxnAnswer EtcdHistory::run(const store::EtcdTxn& txn) {
  using Compare = store::EtcdTxn::Compare;
  const State* const found = find(txn.key);
  store::EtcdTxnAnswer answer;
  const std::uint64_t modified = found == nullptr ? 0 : found->modified.number();
  const std::uint64_t version = found == nullptr ? 0 : found->version;
  answer.succeeded =
      txn.compare == Compare::kNothing || txn.compared == (txn.compare == Compare::kVersion ? version : modified);
  if (found != nullptr && (answer.succeeded ? !txn.put : txn.read_otherwise))
    answer.entry = store::Entry{txn.key, found->value, found->created, found->modified, found->version};
  if (answer.succeeded) {
    answer.deleted = txn.put || found == nullptr ? 0 : 1;
    write({{txn.key, txn.put}});
  }
  answer.present = revision_;
  return answer;
}

std::expected<store::EtcdRangeAnswer, store::EtcdFailure> EtcdHistory::read(const store::EtcdRange& range,
                                                                            Revision present) const {
  constexpr int kOutOfRange = 11;
  const Revision at = range.at == Revision() ? present : range.at;
  if (at > present)
    return std::unexpected(store::EtcdFailure{kOutOfRange, "etcdserver: mvcc: required revision is a future revision"});
  if (at < compacted_)
    return std::unexpected(store::EtcdFailure{kOutOfRange, "etcdserver: mvcc: required revision has been compacted"});
  store::EtcdRangeAnswer answer{.present = present, .entries = {}, .count = 0};
  const std::string end = range.range_end.empty() ? range.key + '\0' : range.range_end;
  const bool open = end == std::string(1, '\0');
  for (auto key = keys_.lower_bound(range.key); key != keys_.end() && (open || key->first < end); ++key) {
    const auto& states = key->second;
    const auto after = std::ranges::upper_bound(states, at, {}, &State::modified);
    if (after == states.begin() || !std::prev(after)->value) continue;
    const State& state = *std::prev(after);
    ++answer.count;
    if (range.count_only || (range.limit != 0 && answer.entries.size() == range.limit)) continue;
    answer.entries.push_back({key->first, state.value, state.created, state.modified, state.version});
  }
  return answer;
}

void EtcdHistory::compact(Revision revision) {
  compacted_ = std::max(compacted_, revision);
  for (auto key = keys_.begin(); key != keys_.end();) {
    auto& states = key->second;
    auto kept = std::ranges::upper_bound(states, compacted_, {}, &State::modified);
    if (kept != states.begin() && std::prev(kept)->value) --kept;  // the state at that revision
    for (auto gone = states.begin(); gone != kept; ++gone) bytes_ -= size_of(key->first, gone->value);
    states.erase(states.begin(), kept);
    key = states.empty() ? keys_.erase(key) : std::next(key);
  }
}

std::span<const store::EtcdEvent> EtcdHistory::events(Revision after, Revision last) const {
  const auto begin = std::ranges::upper_bound(events_, after, {}, &store::EtcdEvent::revision);
  const auto end = std::ranges::upper_bound(begin, events_.end(), last, {}, &store::EtcdEvent::revision);
  return {begin, end};
}

}  // namespace spillway::sim
