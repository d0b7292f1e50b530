#include "store/fake_etcd.h"

#include <algorithm>

namespace spillway::store {

/// A stream continues from a revision; it stops where its member keeps silent.
class FakeEtcd::Stream final : public EtcdTransport::WatchStream {
 public:
  Stream(FakeEtcd& etcd, std::size_t member, Revision from, EtcdTransport::WatchReceiver& receiver)
      : etcd_(etcd), member_(member), next_(from), receiver_(&receiver) {
    etcd_.streams_.insert(this);
  }

  ~Stream() override {
    etcd_.streams_.erase(this);
    *alive_ = false;
  }

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void push() {
    const Member& member = etcd_.members[member_];
    if (member.silent) return;
    if (next_ <= etcd_.compacted_) return deliver({.canceled = true, .compacted = etcd_.compacted_});
    std::vector<EtcdEvent> events;
    const Revision first(next_.number() - (member.repeats ? 1 : 0));
    for (const EtcdEvent& event : etcd_.history_)
      if (event.revision >= first && !member.omits.contains(event.revision.number())) events.push_back(event);
    next_ = std::max(next_, Revision(etcd_.revision_.number() + 1));
    if (events.empty()) return;
    send(events, member.fragment);
  }

  void end() {
    etcd_.loop_.post([alive = alive_, receiver = receiver_] {
      if (*alive) receiver->on_watch_broken({14, "Socket closed"});
    });
  }

 private:
  void send(const std::vector<EtcdEvent>& events, std::size_t fragment) {
    const std::size_t most = fragment == 0 ? events.size() : fragment;
    for (std::size_t at = 0; at < events.size(); at += most) {
      const std::size_t end = std::min(at + most, events.size());
      EtcdWatchMessage message{.fragment = end < events.size()};
      message.events.assign(events.begin() + static_cast<std::ptrdiff_t>(at),
                            events.begin() + static_cast<std::ptrdiff_t>(end));
      deliver(std::move(message));
    }
  }

  void deliver(EtcdWatchMessage message) {
    etcd_.loop_.post([alive = alive_, receiver = receiver_, message = std::move(message)]() mutable {
      if (*alive) receiver->on_watch_message(std::move(message));
    });
  }

  FakeEtcd& etcd_;
  std::size_t member_;
  Revision next_;
  EtcdTransport::WatchReceiver* receiver_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class FakeEtcd::Client final : public EtcdTransport {
 public:
  explicit Client(FakeEtcd& etcd) : etcd_(etcd) {}

  std::size_t members() const override { return etcd_.members.size(); }

  void range(std::size_t, EtcdRange range, Duration, Done<EtcdRangeAnswer> done) override {
    ++etcd_.ranges;
    etcd_.loop_.post([this, range = std::move(range), done = std::move(done)]() mutable { done(etcd_.read(range)); });
  }

  void txn(std::size_t member, EtcdTxn txn, Duration, Done<EtcdTxnAnswer> done) override {
    etcd_.asked.push_back(member);
    Fault fault = Fault::kNone;
    if (!etcd_.faults.empty()) {
      fault = etcd_.faults.front();
      etcd_.faults.pop_front();
    }
    etcd_.loop_.post([this, fault, txn = std::move(txn), done = std::move(done)]() mutable {
      const auto fail = [&](int code, std::string words) {
        done(std::unexpected(EtcdFailure{code, std::move(words)}));
      };
      if (fault == Fault::kNotReached) return fail(14, "etcdserver: no leader");
      if (fault == Fault::kNoSpace) return fail(8, "etcdserver: mvcc: database space exceeded");
      if (fault == Fault::kRequestLost) return fail(14, "etcdserver: request timed out");
      if (txn.lease != 0 && (!etcd_.leases.contains(txn.lease) || etcd_.leases[txn.lease].ended))
        return fail(5, "etcdserver: requested lease not found");
      const EtcdTxnAnswer answer = etcd_.run(txn);
      if (fault == Fault::kAnswerLost) {
        if (etcd_.then) etcd_.then();
        return fail(4, "Deadline Exceeded");
      }
      done(answer);
    });
  }

  void compact(std::size_t, Revision revision, Duration, Done<Revision> done) override {
    ++etcd_.compactions;
    etcd_.loop_.post([this, revision, done = std::move(done)]() mutable {
      if (revision <= etcd_.compacted_)
        return done(std::unexpected(EtcdFailure{11, "etcdserver: mvcc: required revision has been compacted"}));
      etcd_.compact(revision);
      done(revision);
    });
  }

  void grant(std::size_t, Duration life, Duration, Done<EtcdLease> done) override {
    etcd_.loop_.post([this, life, done = std::move(done)]() mutable {
      const auto id = static_cast<std::int64_t>(etcd_.leases.size() + 1);
      etcd_.leases[id].life = life;
      done(EtcdLease{id, life});
    });
  }

  std::unique_ptr<WatchStream> watch(std::size_t member, Revision from, bool, WatchReceiver& receiver) override {
    ++etcd_.watches;
    auto stream = std::make_unique<Stream>(etcd_, member, from, receiver);
    stream->push();
    return stream;
  }

  Instant now() const override { return etcd_.now_; }

  void after(Duration time, std::move_only_function<void()> task) override {
    if (time <= Duration::zero()) return etcd_.loop_.post(std::move(task));
    etcd_.timers_.emplace(etcd_.now_ + time, std::move(task));
  }

 private:
  FakeEtcd& etcd_;
};

std::unique_ptr<EtcdTransport> FakeEtcd::connect() {
  return std::make_unique<Client>(*this);
}

void FakeEtcd::break_watches() {
  for (Stream* stream : streams_) stream->end();
}

void FakeEtcd::push() {
  for (Stream* stream : streams_) stream->push();
}

void FakeEtcd::apply(const std::string& key, const Value& value) {
  Key& state = keys_[key];
  if (state.version == 0) state.create_revision = revision_;
  state.value = value;
  state.mod_revision = revision_;
  ++state.version;
  history_.push_back({.key = key,
                      .value = value,
                      .revision = revision_,
                      .create_revision = value ? state.create_revision : Revision(),
                      .previous = nullptr});
  if (!value) keys_.erase(key);
  states_[revision_.number()] = keys_;
}

EtcdTxnAnswer FakeEtcd::run(const EtcdTxn& txn) {
  const Key* found = find(keys_, txn.key);
  const auto entry = [&] {
    return Entry{txn.key, found->value, found->create_revision, found->mod_revision, found->version};
  };
  EtcdTxnAnswer answer;
  const std::uint64_t mod = found == nullptr ? 0 : found->mod_revision.number();
  const std::uint64_t version = found == nullptr ? 0 : found->version;
  answer.succeeded = txn.compare == EtcdTxn::Compare::kNothing ||
                     txn.compared == (txn.compare == EtcdTxn::Compare::kVersion ? version : mod);
  if (found != nullptr && (answer.succeeded ? !txn.put : txn.read_otherwise)) answer.entry = entry();
  if (answer.succeeded && (txn.put || found != nullptr)) {
    answer.deleted = txn.put ? 0 : 1;
    for (auto& [id, lease] : leases) lease.keys.erase(txn.key);
    if (txn.lease != 0) leases[txn.lease].keys.insert(txn.key);
    write({{txn.key, txn.put}});
  }
  answer.present = revision_;
  return answer;
}

void FakeEtcd::end_lease(std::int64_t lease) {
  std::vector<std::pair<std::string, Value>> gone;
  for (const std::string& key : leases[lease].keys) gone.emplace_back(key, nullptr);
  leases[lease].ended = true;
  write(gone);
}

std::expected<EtcdRangeAnswer, EtcdFailure> FakeEtcd::read(const EtcdRange& range) const {
  const Revision at = range.at == Revision() ? revision_ : range.at;
  if (at < compacted_)
    return std::unexpected(EtcdFailure{11, "etcdserver: mvcc: required revision has been compacted"});
  const auto state = states_.upper_bound(at.number());
  static const std::map<std::string, Key> kNothing;
  const auto& keys = state == states_.begin() ? kNothing : std::prev(state)->second;
  EtcdRangeAnswer answer{.present = revision_};
  const std::string end = range.range_end.empty() ? range.key + '\0' : range.range_end;
  const bool open = end == std::string(1, '\0');
  for (auto key = keys.lower_bound(range.key); key != keys.end() && (open || key->first < end); ++key) {
    ++answer.count;
    if (range.count_only || (range.limit != 0 && answer.entries.size() == range.limit)) continue;
    answer.entries.push_back(
        {key->first, key->second.value, key->second.create_revision, key->second.mod_revision, key->second.version});
  }
  return answer;
}

}  // namespace spillway::store
