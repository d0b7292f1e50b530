// The FlowSchemas and PriorityLevelConfigurations of every cluster (policy/flow/built_in.h, and those of
// --flow-config): created when they are missing, and kept. "exempt" and "catch-all" always have their spec; the others
// have it while their annotation apf.kubernetes.io/autoupdate-spec is true, or is missing on an object that has never
// been changed. Thread: loop. Source: Kubernetes docs, "API Priority and Fairness", maintenance of the mandatory and
// suggested configuration objects.
#pragma once

#include "apiserver/collect/kept_objects.h"
#include "policy/flow/schema.h"

#include <vector>

namespace spillway::apiserver {

/// The mandatory and suggested objects as they are created.
std::vector<api::Json> flow_documents(const flow::Configuration& flows);

class FlowObjects final : public KeptObjects {
 public:
  FlowObjects(Core& core, Writer& writer, const flow::Configuration& flows);

 private:
  std::vector<Wanted> wanted() const override;
  bool concerns(const ResourceCache& cache, const StoredObject& object) const override;

  const ResourceCache& schemas_;
  const ResourceCache& levels_;
  std::vector<api::Json> documents_;
};

}  // namespace spillway::apiserver
