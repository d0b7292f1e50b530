// The claims of the pods of a StatefulSet: their names and specs, and the owners by which they are deleted with the set
// or with a pod that is scaled away. Thread: any (pure). Source: Kubernetes docs, "StatefulSet", "PersistentVolumeClaim
// retention"; spec "Scheduler and workloads", 13; vectors workloads/statefulset_actions.
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"
#include "api/object/storage.h"
#include "api/object/workload.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::workloads {

using ClaimPtr = std::shared_ptr<const api::PersistentVolumeClaim>;

/// "data-db-0" by the name of the volume, "data".
std::map<std::string, std::string> claim_names(const api::StatefulSet& set, std::int32_t ordinal);
/// Documents of the claims, by the name of the volume.
std::map<std::string, api::Json> claim_documents(const api::StatefulSet& set, std::int32_t ordinal);

/// True if the pod's volumes of these names use its claims.
bool has_its_claims(const api::StatefulSet& set, const api::Pod& pod, std::int32_t ordinal);
/// The volumes, with those of the pod's claims.
api::Json with_claims(const api::StatefulSet& set, const api::Json& volumes, std::int32_t ordinal);

/// True if the set should have a pod of that ordinal.
bool is_in_range(const api::StatefulSet& set, std::int64_t ordinal);

/// A claim is owned as the retention policy asks. One that others control, or a predecessor of the same name, is left
/// alone.
bool is_owned_as_asked(const api::PersistentVolumeClaim& claim, const api::StatefulSet& set, const api::Pod& pod,
                       std::int32_t ordinal);
std::vector<api::OwnerReference> owners_asked(const api::PersistentVolumeClaim& claim, const api::StatefulSet& set,
                                              const api::Pod& pod, std::int32_t ordinal);

/// True if the claim will be deleted with an earlier pod of that name: the new pod waits for that.
bool goes_with_predecessor(const api::PersistentVolumeClaim& claim, const api::StatefulSet& set,
                           std::string_view pod_name);

}  // namespace spillway::workloads
