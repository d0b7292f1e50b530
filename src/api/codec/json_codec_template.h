// Description of the pod template that workloads have. Inside api/ only. Thread: any.
#pragma once

#include "api/codec/json_codec_meta.h"
#include "api/object/workload.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<PodTemplate> auto& pod_template) {
  v.field("metadata", pod_template.metadata);
  v.nested("metadata", [&](V& metadata) {
    metadata.field("labels", pod_template.labels);
    metadata.field("annotations", pod_template.annotations);
  });
  v.field("spec", pod_template.spec);
}

}  // namespace spillway::api
