#include "sim/etcd/sim_etcd_parts.h"

#include <utility>

namespace spillway::sim {

using store::EtcdFailure;

std::unique_ptr<store::EtcdTransport> SimEtcd::connect(std::string client) {
  return std::make_unique<Client>(*this, std::move(client));
}

SimEtcd::Client::~Client() {
  for (const auto& [id, call] : calls_) call->done = nullptr;
}

template <typename Answer>
void SimEtcd::Client::call(std::size_t member, Call::Request request, Duration at_most, Done<Answer> done) {
  const std::uint64_t id = ++last_;
  auto made = std::make_shared<Call>();
  made->client = name_;
  made->member = member;
  made->request = std::move(request);
  made->done = [this, id, done = std::move(done)](Call::Outcome outcome) mutable {
    const auto held = calls_.extract(id);
    if (outcome)
      done(std::get<Answer>(*std::move(outcome)));
    else
      done(std::unexpected(std::move(outcome.error())));
  };
  calls_.emplace(id, made);
  etcd_.send(made);
  constexpr int kDeadlineExceeded = 4;
  etcd_.time_.after(at_most, [weak = std::weak_ptr(made)] {
    if (const auto late = weak.lock())
      late->finish(std::unexpected(EtcdFailure{kDeadlineExceeded, "Deadline Exceeded"}));
  });
}

void SimEtcd::Client::range(std::size_t member, store::EtcdRange range, Duration at_most,
                            Done<store::EtcdRangeAnswer> done) {
  call<store::EtcdRangeAnswer>(member, std::move(range), at_most, std::move(done));
}

void SimEtcd::Client::txn(std::size_t member, store::EtcdTxn txn, Duration at_most, Done<store::EtcdTxnAnswer> done) {
  call<store::EtcdTxnAnswer>(member, std::move(txn), at_most, std::move(done));
}

void SimEtcd::Client::compact(std::size_t member, store::Revision revision, Duration at_most,
                              Done<store::Revision> done) {
  call<store::Revision>(member, revision, at_most, std::move(done));
}

void SimEtcd::Client::grant(std::size_t member, Duration life, Duration at_most, Done<store::EtcdLease> done) {
  call<store::EtcdLease>(member, life, at_most, std::move(done));
}

/// Events carry the state before each change even if it was not requested, as long as etcd has it.
std::unique_ptr<store::EtcdTransport::WatchStream> SimEtcd::Client::watch(std::size_t member, store::Revision from,
                                                                          bool, WatchReceiver& receiver) {
  return std::make_unique<Stream>(etcd_, name_, member, from, receiver);
}

void SimEtcd::Client::after(Duration time, std::move_only_function<void()> task) {
  const std::uint64_t id = ++last_;
  tasks_.emplace(id, std::move(task));
  etcd_.time_.after(time, alive_.guard([this, id] {
    auto due = std::move(tasks_.at(id));
    tasks_.erase(id);
    due();
  }));
}

}  // namespace spillway::sim
