// The group versions that other servers serve, kept as their APIServices are written. A group that is built into this
// server stays with it, except for metrics.k8s.io, which a metrics server may take over. Thread: loop. Bounds:
// kApisMax; further ones are not served, by name.
// Source: Kubernetes docs, "Kubernetes API Aggregation Layer".
#pragma once

#include "apiserver/aggregation/remote_api.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

using RemoteApiPtr = std::shared_ptr<const RemoteApi>;

class RemoteApis final : public Collector {
 public:
  static constexpr std::size_t kApisMax = 200;

  explicit RemoteApis(Core& core);

  /// True if every group version is served here.
  bool empty() const { return by_name_.empty(); }

  /// Null: this server serves the group version, or no server does.
  RemoteApiPtr find(std::string_view group, std::string_view version) const;

  /// The API that a request is for: below /apis/GROUP/VERSION, or its OpenAPI document. Null: one of this server's.
  RemoteApiPtr find(const api::Target& target) const;

  /// All APIs, ordered by name.
  std::vector<RemoteApiPtr> all() const;

  /// Changes whenever an API is added, removed or changed.
  std::uint64_t version() const { return version_; }

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;

  void act() override {}

  void take(const StoredObject& object);
  bool may_be_remote(std::string_view group) const;

  Core& core_;
  const ResourceCache& services_;
  std::map<std::string, RemoteApiPtr, std::less<>> by_name_;
  std::uint64_t version_ = 0;
};

}  // namespace spillway::apiserver
