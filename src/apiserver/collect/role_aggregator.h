// The rules of ClusterRoles that aggregate those of others (aggregationRule), kept up to date with these. Other rules
// that are written into them are replaced. Another program that does the same (the controller `clusterrole-aggregation`
// of kube-controller-manager) computes the same rules, so neither changes what the other has written.
//
// One role is written at a time, and each the less often the more often it was written of late: two that aggregate each
// other might never end. Thread: loop. Bounds: one write in flight; kGatheredBytesMax of rules, beyond which a role
// stays unchanged and the log says so. Source: Kubernetes docs, "Using RBAC Authorization", aggregated ClusterRoles;
// docs/adr/0053-aggregated-roles.md.
#pragma once

#include "api/object/selector.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"
#include "base/back_off.h"
#include "base/time.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver {

/// Rules of one role as text, bytes; an object may be little larger.
inline constexpr std::size_t kGatheredBytesMax = 1'500'000;

class RoleAggregator final : public Collector {
 public:
  RoleAggregator(Core& core, Writer& writer);

 private:
  struct Gatherer {
    std::vector<api::LabelSelector> selectors;
    std::optional<Instant> written;
    BackOff pause{milliseconds(10), minutes(1)};  // after the last write
    bool is_logged = false;
  };

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void know(const StoredObject& role);
  /// Marks the roles that aggregate roles with these labels.
  void mark_gatherers(const std::string& name, const api::StringMap& labels);
  void sync(const std::string& name);
  /// The rules that `role` should have; nullopt: they would be too large.
  std::optional<api::Json> gathered(const api::Json& role) const;
  void write(const std::string& name);
  void on_written(const std::string& name, const api::StatusResult<Written>& result);
  void log_failure(const std::string& name, std::string_view why);
  void requeue(const std::string& name, Instant due);

  Core& core_;
  Writer& writer_;
  const ResourceCache& roles_;
  std::map<std::string, Gatherer, std::less<>> gatherers_;
  std::set<std::string> dirty_;    // roles to sync
  std::set<std::string> waiting_;  // for a timer
  bool is_writing_ = false;
};

}  // namespace spillway::apiserver
