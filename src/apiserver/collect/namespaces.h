// Namespaces over their life: every active one gets the service account `default`; a terminating one is emptied, then
// released. Where several servers write, one that has not received the deletion yet may still create an object in a
// namespace that was found empty: such an object is deleted when its event arrives, but no object that existed before
// the deletion of its namespace was seen. Thread: loop. Bounds: kCollectorWritesMax writes in flight. Source: spec "API
// server contract", 2, 11.8; spec "etcd as the store", 12.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <map>
#include <set>
#include <string>

namespace spillway::apiserver {

class NamespaceCollector final : public Collector {
 public:
  NamespaceCollector(Core& core, Writer& writer, Remover& remover);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void mark(const StoredObject& space);
  void forget(const std::string& ns);
  void watch_for_late_content(const std::string& ns);
  void empty(const std::string& ns);
  bool remove_remaining(const ResourceCache& cache, const std::string& ns);
  void remove(const ResourceCache& cache, const StoredObject& object);
  void on_removed(const std::string& ns, const std::string& store_key, const api::StatusResult<Removed>& result);
  void finish(const std::string& ns);
  bool is_occupied(const std::string& ns) const;
  void requeue(const std::string& ns, Duration after);
  void finalize(const std::string& ns);
  void on_finalized(const std::string& ns, const api::StatusResult<Written>& result);
  void create_account(const std::string& ns);
  void on_account_created(const std::string& ns, const api::StatusResult<Written>& result);
  void retry(const std::string& ns);

  Core& core_;
  Writer& writer_;
  Remover& remover_;
  const ResourceCache& namespaces_;
  const ResourceCache& accounts_;
  std::set<std::string> terminating_;    // deletion requested, object still there
  std::set<std::string> dirty_;          // terminating namespaces that wait for a sync
  std::set<std::string> lacks_account_;  // active namespaces without their service account
  std::map<std::string, Instant> gone_;  // lately, of a store that other servers write to; until when they are kept
  std::set<std::string> finalizing_;
  std::set<std::string> requeued_;  // soon
  std::set<std::string> creating_;
  std::set<std::string> removing_;  // store keys whose deletion is under way
};

}  // namespace spillway::apiserver
