// The condition Available of APIServices; one server of a store keeps it at a time. A Service is available if it and
// its Endpoints exist and its server answers a GET of the group version. Each is checked when it, its Service or its
// Endpoints change, every kResync, and sooner after a failure. Thread: loop. Bounds: kChecksMax at a time; kTriesMax
// requests of one check, within kCheckMax. Without a gateway nothing is checked.
// Source: k8s.io/kube-aggregator 1.32, status of remote APIServices.
#pragma once

#include "apiserver/aggregation/remote_apis.h"
#include "apiserver/aggregation/remote_fetch.h"
#include "apiserver/aggregation/service_server.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace spillway::apiserver {

class ApiAvailability final : public Collector {
 public:
  static constexpr Duration kResync = seconds(30);
  static constexpr Duration kRetryMin = seconds(5);
  static constexpr Duration kRetryMax = seconds(30);
  static constexpr Duration kCheckMax = seconds(6);
  static constexpr Duration kTryMax = seconds(5);
  static constexpr int kTriesMax = 5;
  static constexpr std::size_t kChecksMax = 16;

  /// `apis`: those with a Service.
  ApiAvailability(Core& core, Writer& writer, RemoteFetch& fetch, const RemoteApis& apis);

 private:
  /// One check under way.
  struct Check {
    std::string uid;
    RemoteApi api;
    Instant until;
    int tries = 0;
    bool again = false;  // something has changed meanwhile
  };

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void check(const std::string& name);
  void ask(const std::string& name);
  void on_answer(const std::string& name, const std::string& url, const Result<api::Response>& answer);
  void finish(const std::string& name, const Availability& found);
  void write(const std::string& name, const std::string& uid, const Availability& found);
  void on_written(const std::string& name, const api::StatusResult<Written>& result);
  void end(const std::string& name, bool has_failed);
  void check_later(const std::string& name, Duration wait);
  void resync();

  Core& core_;
  Writer& writer_;
  RemoteFetch& fetch_;
  const RemoteApis& remote_;
  const ResourceCache& apis_;
  const ResourceCache& services_;
  const ResourceCache& endpoints_;
  std::set<std::string> due_;
  std::map<std::string, Check> checks_;
  std::set<std::string> waiting_;        // for a timer
  std::map<std::string, int> failures_;  // in a row
  bool is_timed_ = false;
};

}  // namespace spillway::apiserver
