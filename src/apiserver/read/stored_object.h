// One object at one revision: the bytes every reader shares, and the few fields that selectors, collectors and indexes
// need without parsing them again.
// Thread: loop; immutable once made, but for the parsed document, which the cache adds and drops. Invariant: `text`
// holds metadata.resourceVersion, the bytes in the store do not. Source: spec "API server contract", 9.4-9.7, 22.2.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "api/object/meta.h"
#include "apiserver/read/field_values.h"
#include "apiserver/read/stored_form.h"
#include "apiserver/resource/resource_registry.h"
#include "store/store.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// One entry of metadata.ownerReferences.
struct OwnerLink {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool blocks_deletion = false;

  friend bool operator==(const OwnerLink&, const OwnerLink&) = default;
};

/// Members that are extracted from a document when it is written or loaded.
struct Extract {
  std::string uid;
  api::StringMap labels;
  FieldValues fields;  // values of Resource::fields, in that order
  std::vector<OwnerLink> owners;
  std::string api_version;  // empty: no webhook converts versions of the kind
  bool deleting = false;    // has a deletionTimestamp
  bool foreground = false;  // has the finalizer foregroundDeletion
  bool orphaning = false;   // has the finalizer orphan
  bool finalized = true;    // has no finalizer at all
  bool ready = false;       // has the condition Ready (of pods)
  /// spec.replicas of kinds with replicas (group apps, and ReplicationControllers).
  std::int64_t replicas = 1;
};

Extract extract(const Resource& resource, const api::Json& document);

/// The condition Ready of a pod is True.
bool is_ready(const api::Json& pod);

/// The value of an object at rest, where it differs from its text.
struct Resting {
  std::vector<std::string> unknown_fields;
  StorageMediaType media_type = StorageMediaType::kJson;
};

struct StoredObject {
  std::string key;  // below Resource::storage: "ns/name", or "name"
  std::string ns;
  std::string name;
  store::Revision revision;
  store::Revision created;  // revision of the write that made the object
  store::Value text;        // the document, with resourceVersion
  std::size_t version_at = 0;
  std::size_t version_length = 0;
  Extract meta;
  /// The object has passed every check of this process's writer, so that an update that changes nothing they depend on
  /// need not pass them again.
  bool checked = false;
  /// The fields of the value at rest that `text` does not have: "field 99 of core/v1.PodSpec".
  std::vector<std::string> unknown_fields;
  StorageMediaType media_type = StorageMediaType::kJson;  // the stored encoding
  /// The value at rest of a custom object whose schema shows something else; null: `text` is stored.
  store::Value at_rest;

  /// The bytes with another resourceVersion.
  std::string text_at(store::Revision other) const;
  /// The object's size as an item of a list in protobuf, whole and as metadata only; 0: not computed yet.
  mutable std::uint32_t protobuf_bytes = 0;
  mutable std::uint32_t metadata_protobuf_bytes = 0;
  /// The whole object as an item of a list in protobuf, for as long as it is kept (encoded_items.h).
  mutable store::Value protobuf_item;
  /// The parsed document, for as long as the cache keeps it, and its number there.
  mutable api::DocumentPtr parsed;
  mutable std::uint64_t parsed_number = 0;

  /// A copy of the parsed document, or parsed anew; the bytes are this server's or its store's, so they are
  /// well-formed.
  api::Json document() const;
  /// As above, without a copy if the cache keeps the document.
  api::DocumentPtr shared_document() const;
};

using ObjectPtr = std::shared_ptr<const StoredObject>;

/// Bytes on the heap of the object's names, labels, owners and selectable fields, without the object itself.
std::size_t bytes_of_fields(const StoredObject& object);

/// "ns/name", or "name" when `ns` is empty.
std::string object_key(std::string_view ns, std::string_view name);

/// Puts the revision into the bytes, once. `bytes` must be a JSON object without one.
std::shared_ptr<StoredObject> make_object(std::string key, std::string_view bytes, store::Revision revision,
                                          Extract meta, Resting resting = {});

/// `object` after a write of `bytes` that changed neither the places of members nor what was extracted from them.
ObjectPtr make_renewed(const StoredObject& object, std::string_view bytes, store::Revision revision);

/// The value of the object's metadata within its text, braces included.
std::string_view metadata_text(const StoredObject& object);

/// The object under the revision of its deletion. The store holds nothing of it.
std::shared_ptr<StoredObject> make_last(const StoredObject& object, store::Revision revision);

/// The bytes that are stored of an object: its text without the resourceVersion, or `at_rest`.
std::string stored_bytes(const StoredObject& object);
/// Converts an offset in the object's text, behind the resourceVersion, to the offset of the same byte in the stored
/// bytes.
std::size_t offset_in_bytes(const StoredObject& object, std::size_t at);

/// Decodes a value at rest; kInvalid as decode_stored(). `key` is below `resource.storage`.
Result<ObjectPtr> read_object(const Resource& resource, std::string key, const store::Value& value,
                              store::Revision revision, store::Revision created = {});

/// The document as text without its resourceVersion, which is taken out.
std::string to_stored_text(api::Json& document);

}  // namespace spillway::apiserver
