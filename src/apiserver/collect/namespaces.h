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

  void note(const StoredObject& space);
  void forget(const std::string& ns);
  void watch_for_late_content(const std::string& ns);
  void empty(const std::string& ns);
  void remove(const ResourceCache& cache, const StoredObject& object);
  void finish(const std::string& ns);
  bool is_occupied(const std::string& ns) const;
  void look_again(const std::string& ns, Duration after);
  void finalize(const std::string& ns);
  void create_account(const std::string& ns);
  void retry(const std::string& ns);

  Core& core_;
  Writer& writer_;
  Remover& remover_;
  const ResourceCache& namespaces_;
  const ResourceCache& accounts_;
  std::set<std::string> terminating_;    // deleted, not gone yet
  std::set<std::string> dirty_;          // terminating, to be synced
  std::set<std::string> lacks_account_;  // active, without its service account
  std::map<std::string, Instant> gone_;  // lately, of a store that other servers write to; until when they are kept
  std::set<std::string> finalizing_;
  std::set<std::string> looked_at_again_;  // soon
  std::set<std::string> creating_;
  std::set<std::string> removing_;  // store keys with a deletion on its way
};

}  // namespace spillway::apiserver
