// Keeps the records of a cluster (policy/dns/cluster_records.h) equal to its Services, EndpointSlices and Namespaces;
// and its pods, if their names are verified. Thread: loop.
#pragma once

#include "api/object/endpoints.h"
#include "api/object/named_service.h"
#include "api/object/pod.h"
#include "api/object/workload.h"
#include "client/api_client.h"
#include "client/engine.h"
#include "client/informer.h"
#include "policy/dns/cluster_records.h"

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::dns {

class RecordsFeed final : public client::ApiEngine {
 public:
  RecordsFeed(ClusterRecords::Options options, Rng rng);

  const ClusterRecords& records() const { return records_; }

  /// True once everything was listed: a name that is not in the records does not exist.
  bool complete() const { return client_.synced(); }

  /// Calls `action` when complete() becomes true.
  void when_complete(std::function<void(Now)> action) { client_.when_synced(std::move(action)); }

  std::string_view name() const override { return "spillway-dns"; }

  void start(Now now) override { client_.start(now); }

  void on_api_event(const client::ApiEvent& event, Now now) override { client_.on_api_event(event, now); }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  void follow_services();
  void follow_slices();
  void follow_namespaces();
  void follow_pods();
  /// The serial number of the zone grows with each change, even with several in a second.
  void touch(Now now);

  ClusterRecords records_;
  std::uint32_t serial_ = 0;
  client::ApiClient client_;
  client::Informer<api::NamedService> services_;
  client::Informer<api::EndpointSlice> slices_;
  client::Informer<api::Namespace> namespaces_;
  std::optional<client::Informer<api::Pod>> pods_;
};

}  // namespace spillway::dns
