// Calls the members of an etcd cluster over gRPC, which only this file uses. gRPC's threads do the I/O and post answers
// and events onto the loop.
// Thread: loop. Errors of create() name the flag. Source: gRPC C++, callback API; etcd v3 API, "Interacting".
#pragma once

#include "base/alive.h"
#include "base/error.h"
#include "store/etcd/etcd_wire.h"

#include <memory>
#include <string>
#include <vector>

namespace spillway::store {

struct GrpcTransportOptions {
  std::vector<std::string> servers;  // "http://127.0.0.1:2379", "https://etcd-0:2379"
  std::string ca_pem;                // the authority of the members' certificates; empty: the system's authorities
  std::string certificate_pem;       // the client certificate, with its key; empty: none
  std::string key_pem;
  std::string username;  // empty: no login; else every call carries a token that the password was exchanged for
  std::string password;
};

class GrpcTransport final : public EtcdTransport {
 public:
  static Result<std::unique_ptr<GrpcTransport>> create(const GrpcTransportOptions& options, Poster post);
  /// Cancels all calls, and waits until gRPC has given them back.
  ~GrpcTransport() override;
  GrpcTransport(const GrpcTransport&) = delete;
  GrpcTransport& operator=(const GrpcTransport&) = delete;

  std::size_t members() const override;
  void range(std::size_t member, EtcdRange range, Duration at_most, Done<EtcdRangeAnswer> done) override;
  void txn(std::size_t member, EtcdTxn txn, Duration at_most, Done<EtcdTxnAnswer> done) override;
  void compact(std::size_t member, Revision revision, Duration at_most, Done<Revision> done) override;
  void grant(std::size_t member, Duration life, Duration at_most, Done<EtcdLease> done) override;
  std::unique_ptr<WatchStream> watch(std::size_t member, Revision from, bool previous,
                                     WatchReceiver& receiver) override;
  Instant now() const override;
  void after(Duration time, std::move_only_function<void()> task) override;

 private:
  struct Impl;

  explicit GrpcTransport(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
  Alive alive_;  // tasks that were posted do nothing without it
};

/// The parts of "https://etcd-0:2379": is the connection secured, and the address as gRPC has it. kInvalid: it is no
/// such URL.
struct EtcdServer {
  bool secure = false;
  std::string address;
};

Result<EtcdServer> parse_etcd_server(std::string_view url);

}  // namespace spillway::store
