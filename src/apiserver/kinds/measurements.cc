// The resources of nodes and pods that metrics.k8s.io shows, which are measured and not stored.
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"

namespace spillway::apiserver::kinds {

std::vector<Resource> metrics_kinds() {
  return {{.group = "metrics.k8s.io",
           .version = "v1beta1",
           .plural = "nodes",
           .singular = "node",
           .kind = "NodeMetrics",
           .scope = Scope::kCluster,
           .verbs = kMeasured},
          {.group = "metrics.k8s.io",
           .version = "v1beta1",
           .plural = "pods",
           .singular = "pod",
           .kind = "PodMetrics",
           .verbs = kMeasured}};
}

}  // namespace spillway::apiserver::kinds
