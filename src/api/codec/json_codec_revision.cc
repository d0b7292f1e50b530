#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/object/controller_revision.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<ControllerRevision> auto& revision) {
  v.type_meta(ControllerRevision::kApiVersion, ControllerRevision::kKind);
  v.object("metadata", revision.metadata);
  v.field("data", revision.data);
  v.kept("revision", revision.revision);
}

template struct Codec<ControllerRevision>;

}  // namespace spillway::api
