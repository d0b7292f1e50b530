#include "api/codec/json_codec_meta.h"

#include "api/codec/codec.h"
#include "api/codec/json_codec_instances.h"

namespace spillway::api {

template struct Codec<ObjectMeta>;
template struct Codec<Taint>;
template struct Codec<Toleration>;

}  // namespace spillway::api
