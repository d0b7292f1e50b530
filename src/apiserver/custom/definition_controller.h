// The controller of CustomResourceDefinitions; one server of a store runs it at a time. It accepts names, sets the
// condition Established, and removes the objects of a definition before the definition is deleted. Thread: loop.
// Bounds: one definition is named at a time, kCollectorWritesMax objects are removed at a time. Source: Kubernetes
// docs, "Extend the Kubernetes API with CustomResourceDefinitions"; docs/adr/0049.
#pragma once

#include "apiserver/custom/custom_kinds.h"
#include "apiserver/custom/definition_names.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/resource/admission_check.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class DefinitionController final : public Collector {
 public:
  DefinitionController(Core& core, const CustomKinds& kinds, Writer& writer, Remover& remover);

 private:
  /// The names in one revision of a definition.
  struct Naming {
    store::Revision revision;
    std::string group;
    bool is_accepted = false;
    api::Json part;  // approval, group and names of its spec, and its status
  };

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void forget(const std::string& name);
  void name_next();
  const Naming& naming_of(const StoredObject& definition);
  /// `name` itself is left out.
  TakenNames taken_by_others(std::string_view group, std::string_view name);
  std::string refusal_of(const api::Json& definition) const;
  void write_status(const std::string& name, const std::string& uid);
  void on_status_written(const std::string& name, const api::StatusResult<Written>& result);
  // The end of a definition, in this order: its objects are removed, acknowledged writes become visible, the store is
  // read where the kind is not served, the finalizer is taken away.
  void clear(const std::string& name);
  void on_removed(const std::string& name, const std::string& store_key, const api::StatusResult<Removed>& result);
  void finish(const std::string& name, const std::string& uid);
  void on_present(const std::string& name, const std::string& uid, const Result<store::Revision>& reached);
  void check_store(const std::string& name, const std::string& uid);
  void on_found(const std::string& name, const std::string& uid, const Result<store::RangeResult>& found);
  void release(const std::string& name, const std::string& uid);
  void on_released(const std::string& name, const api::StatusResult<Written>& result);
  void requeue(const std::string& name);
  void recheck_later(const std::string& name);

  Core& core_;
  const CustomKinds& kinds_;
  Writer& writer_;
  Remover& remover_;
  const ResourceCache& definitions_;
  std::map<std::string, Naming, std::less<>> namings_;  // evaluated names, by name of the definition
  std::set<std::string> unnamed_;                       // definitions whose names are to be evaluated
  std::set<std::string> clearing_;                      // definitions that are being deleted
  std::set<std::string> due_;                           // definitions waiting for a sync
  std::set<std::string> finishing_;
  std::set<std::string> kept_;  // definitions of unserved kinds that still have objects, which has been logged
  std::set<std::string> rechecked_later_;
  std::set<std::string> removing_;  // store keys of objects
  bool is_writing_ = false;
};

/// Bounds of what definitions may be: how many, how large, and not of a group that is built in.
class DefinitionLimits final : public AdmissionCheck {
 public:
  explicit DefinitionLimits(Core& core) : core_(core), definitions_(core.cache.of(core.registry.get(kDefinitions))) {}

  api::StatusResult<void> check_create(const api::UserInfo& user, const Resource& resource,
                                       const api::Json& object) const override;
  api::StatusResult<void> check_update(const api::UserInfo& user, const Resource& resource, SubresourceId part,
                                       const api::Json& object, const api::Json& old) const override;

  bool passes_renewal(const api::UserInfo& /*user*/, const Resource& /*resource*/, std::string_view /*ns*/,
                      std::string_view /*name*/) const override {
    return true;
  }

 private:
  static api::StatusResult<void> check_size(const api::Json& object, std::size_t bytes);
  /// An error if `more` bytes exceed the limits.
  api::StatusResult<void> check_all(const Resource& resource, std::string_view name, std::size_t more) const;

  Core& core_;
  const ResourceCache& definitions_;
};

}  // namespace spillway::apiserver
