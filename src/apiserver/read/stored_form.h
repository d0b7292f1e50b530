// Values at rest: the bytes in the store, decoded to documents. JSON and Kubernetes' protobuf are read, whichever the
// server writes; a value that is encrypted, in CBOR, of another kind or no object at all is an error with its cause.
// Fields that the schema does not know are reported as well, so that no write drops them unnoticed.
// Thread: any (pure). Source: spec "etcd as the store", 11.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"
#include "base/error.h"
#include "base/time.h"
#include "store/store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

enum class StorageMediaType : std::uint8_t { kJson, kProtobuf };

/// "application/json", "application/vnd.kubernetes.protobuf".
std::string_view to_string(StorageMediaType type);

struct StorageOptions {
  std::optional<StorageMediaType> media_type;  // nullopt: the form of the first stored objects; JSON for an empty store
  bool drop_unknown_fields = false;            // objects with unknown fields may be written, which drops these fields
  Duration event_ttl = hours(1);               // time from the last write of an Event to its deletion
};

/// A stored value, decoded.
struct AtRest {
  api::Json document;                       // an object, with metadata
  std::vector<std::string> unknown_fields;  // fields that the document lacks: "spec.foo", "field 99 of core/v1.PodSpec"
  StorageMediaType media_type = StorageMediaType::kJson;
  bool is_text = false;  // the bytes are the text of `document`
};

/// `resource`: the row whose kind is stored. kInvalid: why it cannot be read.
Result<AtRest> decode_stored(const Resource& resource, std::string_view bytes);

/// The document, without its resourceVersion, which is taken out. What has no protobuf form is written as JSON.
std::string encode_stored(const Resource& resource, api::Json& document, StorageMediaType type);

/// The media type that the bytes begin with; nullopt: none that is read.
std::optional<StorageMediaType> media_type_of(std::string_view bytes);

/// 500 in upstream's words: the value of that key cannot be read, for `cause`.
api::Status unreadable_status(std::string_view store_key, store::Revision revision, std::string_view cause);
/// 500: the object must not be written, because these fields would be lost.
api::Status unknown_fields_status(std::string_view store_key, const std::vector<std::string>& fields);

/// Keys that left_out_warning() names.
inline constexpr std::size_t kLeftOutReported = 5;
/// The Warning of a list that lacks what these keys hold.
std::string left_out_warning(const std::vector<std::string>& store_keys);
/// The Warning with an object that is not shown as a whole.
std::string unknown_fields_warning(const std::vector<std::string>& fields);

}  // namespace spillway::apiserver
