// Calls that one member answers, repeated at another one or later while that can help and cannot do harm.
// Thread: loop. Bounds: an attempt takes at most kAttemptMax, a call as long as it is given. Source:
// spec "etcd as the store", 3, 5.3, 8.2; its deadline outlasts etcd's own of 7 s, so that etcd's verdict arrives.
#pragma once

#include "base/alive.h"
#include "base/rng.h"
#include "store/etcd/etcd_failure.h"
#include "store/etcd/etcd_metrics.h"
#include "store/etcd/etcd_wire.h"
#include "telemetry/log.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace spillway::store {

class EtcdCalls {
 public:
  static constexpr Duration kAttemptMax = seconds(8);
  /// A member that has not answered gets no new call for so long, while another one may answer.
  static constexpr Duration kAvoidedFor = seconds(10);

  /// Decides if a call may be repeated after an attempt that may have been executed.
  enum class Repeat { kAlways, kUnlessSent };

  /// `uncertain`: an attempt before the answer, or the last one, may have been done all the same.
  template <typename Answer>
  using Done = std::move_only_function<void(std::expected<Answer, EtcdFailure> answer, bool uncertain)>;

  EtcdCalls(EtcdTransport& transport, EtcdMetrics& metrics, telemetry::Log log, Rng rng);

  void range(EtcdRange range, Duration at_most, Done<EtcdRangeAnswer> done);
  void txn(EtcdTxn txn, Repeat repeat, Duration at_most, Done<EtcdTxnAnswer> done);
  void compact(Revision revision, Duration at_most, Done<Revision> done);
  /// Grants a lease. One that etcd granted without an answer expires by itself.
  void grant(Duration life, Duration at_most, Done<EtcdLease> done);

 private:
  template <typename Request, typename Answer>
  struct Call;
  template <typename Request, typename Answer>
  void begin(Request request, Repeat repeat, Duration at_most, Done<Answer> done);
  template <typename Request, typename Answer>
  void attempt(std::shared_ptr<Call<Request, Answer>> call);
  template <typename Request, typename Answer>
  void on_failure(std::shared_ptr<Call<Request, Answer>> call, EtcdFailure failure);
  Duration pause_after(std::size_t attempts);
  std::size_t healthy_after(std::size_t member) const;

  EtcdTransport& transport_;
  EtcdMetrics& metrics_;
  telemetry::Log log_;
  std::optional<Instant> complained_;
  Rng rng_;
  std::size_t next_member_;
  std::vector<Instant> avoided_until_;  // by member
  Alive alive_;
};

}  // namespace spillway::store
