// The inner parts of SimEtcd: a call on its way, a watch of a member, and the client that has both.
// Thread: one.
#pragma once

#include "base/alive.h"
#include "sim/etcd/sim_etcd.h"

#include <optional>
#include <variant>

namespace spillway::sim {

inline constexpr int kUnavailable = 14;  // gRPC's code for a way that is broken

struct SimEtcd::Call {
  using Request = std::variant<store::EtcdRange, store::EtcdTxn, store::Revision, Duration>;
  using Answer = std::variant<store::EtcdRangeAnswer, store::EtcdTxnAnswer, store::Revision, store::EtcdLease>;
  using Outcome = std::expected<Answer, store::EtcdFailure>;

  std::string client;
  std::size_t member = 0;
  Request request;
  std::move_only_function<void(Outcome)> done;  // empty: the call was answered, or its caller has ended
  std::uint64_t number = 0;
  std::optional<Outcome> outcome;  // the member's answer, in transit

  void finish(Outcome result) {
    if (auto callback = std::exchange(done, nullptr)) callback(std::move(result));
  }
};

class SimEtcd::Stream final : public store::EtcdTransport::WatchStream {
 public:
  Stream(SimEtcd& etcd, std::string client, std::size_t member, store::Revision from,
         store::EtcdTransport::WatchReceiver& receiver);
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  std::size_t member() const { return member_; }

  const std::string& client() const { return client_; }

  /// Sends the changes that the member has applied since the last call.
  void push();
  /// Sends no further message; the client gets the end after `in`.
  void end(Duration in, int code, std::string why);
  /// Ends the watch unless the member has a leader again by then.
  void end_without_leader();

 private:
  void arrive();
  void send(std::vector<store::EtcdEvent> events);
  void deliver(store::EtcdWatchMessage message);
  void later(Duration in, std::move_only_function<void()> task);

  SimEtcd& etcd_;
  std::string client_;
  std::size_t member_;
  store::Revision from_;
  store::Revision sent_;
  store::EtcdTransport::WatchReceiver& receiver_;
  std::uint64_t number_;
  bool open_ = false;  // the member has opened the watch
  bool over_ = false;
  Instant last_due_{};
  Alive alive_;
};

class SimEtcd::Client final : public store::EtcdTransport {
 public:
  Client(SimEtcd& etcd, std::string name) : etcd_(etcd), name_(std::move(name)) {}

  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  std::size_t members() const override { return etcd_.replicas_.count(); }

  void range(std::size_t member, store::EtcdRange range, Duration at_most, Done<store::EtcdRangeAnswer> done) override;
  void txn(std::size_t member, store::EtcdTxn txn, Duration at_most, Done<store::EtcdTxnAnswer> done) override;
  void compact(std::size_t member, store::Revision revision, Duration at_most, Done<store::Revision> done) override;
  void grant(std::size_t member, Duration life, Duration at_most, Done<store::EtcdLease> done) override;
  std::unique_ptr<WatchStream> watch(std::size_t member, store::Revision from, bool previous,
                                     WatchReceiver& receiver) override;

  Instant now() const override { return etcd_.time_.now().mono; }

  void after(Duration time, std::move_only_function<void()> task) override;

 private:
  template <typename Answer>
  void call(std::size_t member, Call::Request request, Duration at_most, Done<Answer> done);

  SimEtcd& etcd_;
  std::string name_;
  std::uint64_t last_ = 0;
  // Owned here, so that their captures are destroyed with the client.
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_;
  std::map<std::uint64_t, std::move_only_function<void()>> tasks_;
  Alive alive_;
};

}  // namespace spillway::sim
