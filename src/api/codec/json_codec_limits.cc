#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/object/limit_range.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<LimitRangeItem> auto& item) {
  v.kept("type", item.type);
  v.field("max", item.max);
  v.field("min", item.min);
  v.field("default", item.default_limits);
  v.field("defaultRequest", item.default_requests);
  v.field("maxLimitRequestRatio", item.max_ratio);
}

template <typename V>
void describe(V& v, Is<LimitRange> auto& range) {
  v.type_meta(LimitRange::kApiVersion, LimitRange::kKind);
  v.object("metadata", range.metadata);
  v.nested("spec", [&](V& spec) { spec.list("limits", range.limits); });
}

template struct Codec<LimitRange>;

}  // namespace spillway::api
