// Objects into answers: plain, as Table rows, as metadata only; single, listed, as watch events. A resource that is a
// view of another is translated here. Thread: loop. Source: spec "API server contract", 5.3, 9.1, 9.6, 9.8, 9.11, 15.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/json/json.h"
#include "api/schema/schema.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/request/negotiation.h"
#include "apiserver/resource/resource_registry.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

/// The part of the object that a Table row carries besides its cells.
enum class IncludeObject { kNone, kMetadata, kObject };

struct ListMeta {
  store::Revision revision;
  std::string continue_token;              // empty: the list is complete
  std::optional<std::size_t> remaining{};  // objects behind this page, if their exact number is known
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

std::string_view to_string(WatchEventType type);

class Rendering {
 public:
  Rendering(const Resource& resource, AnswerForm form, IncludeObject include)
      : resource_(&resource), form_(std::move(form)), include_(include) {}

  /// kBadRequest for an unknown value of includeObject.
  static api::StatusResult<Rendering> of(const Resource& resource, const AnswerForm& form, const api::Target& target);

  /// Watch frames can be shared by watchers with equal renderings.
  friend bool operator==(const Rendering&, const Rendering&) = default;

  /// True if this rendering writes the stored bytes, or a part of them, so that no object is parsed.
  bool is_copied() const { return is_verbatim() || (form_.form == Form::kPartialMetadata && !is_protobuf()); }

  /// True if this rendering writes exactly the stored bytes.
  bool is_verbatim() const { return form_.form == Form::kObject && !resource_->is_view() && !is_protobuf(); }

  bool is_table() const { return form_.form == Form::kTable; }

  bool is_protobuf() const { return form_.encoding == Encoding::kProtobuf; }

  /// The Content-Type of a watch.
  std::string_view stream_type() const;

  std::string object(const StoredObject& object, WallTime now) const;

  /// The parsed form of object(), if it is at hand; else null.
  api::DocumentPtr document(const StoredObject& object) const { return is_verbatim() ? object.parsed : nullptr; }

  // A list begins with its head; its items follow, each appended; then it is ended.
  std::string list_head(const ListMeta& meta) const;
  void append_item(const StoredObject& object, bool first, WallTime now, std::string& out) const;
  std::string end_list(const ListMeta& meta, std::string text) const;

  /// The text around the items, which are not at hand: `item_bytes` is their total length, which only protobuf needs. A
  /// list in JSON also ends with a newline.
  struct ListFrame {
    std::string head;
    std::string tail;
  };

  ListFrame list_frame(const ListMeta& meta, std::size_t item_bytes) const;
  /// Bytes of an item in protobuf; the second time for an object without writing it.
  std::size_t item_bytes(const StoredObject& object) const;

  bool knows_item_bytes(const StoredObject& object) const {
    return keeps_item_bytes() && known_item_bytes(object) != 0;
  }

  /// True if append_item() writes StoredObject::protobuf_item where there is one, and item() makes it.
  bool shares_items() const { return is_protobuf() && form_.form == Form::kObject && !resource_->is_view(); }

  /// The object as an item of a list in protobuf, whose bytes are known afterwards. shares_items() must hold.
  store::Value item(const StoredObject& object) const;

  /// The cost of writing the object (slice_queue.h).
  std::size_t cost(const StoredObject& object) const;

  /// Bytes by which an item may be longer than the object's text.
  std::size_t overhead() const { return is_copied() ? 128 : 1'024; }

  /// One event of a watch: in JSON a line with its newline, in protobuf a frame with its length. `columns`: a Table
  /// carries its column definitions.
  std::string frame(WatchEventType type, const StoredObject& object, bool columns, WallTime now) const;
  /// A BOOKMARK; `initial_end` marks the end of the initial events.
  std::string bookmark(store::Revision revision, bool initial_end) const;
  /// An ERROR, which ends a watch.
  std::string error_frame(const api::Status& status) const;

 private:
  api::Json shown(const StoredObject& object) const;

  /// An item's length is kept for one version of a kind only, since versions differ in length.
  bool keeps_item_bytes() const { return form_.form == Form::kPartialMetadata || !resource_->is_view(); }

  std::uint32_t& known_item_bytes(const StoredObject& object) const;
  std::string body(const StoredObject& object) const;
  std::optional<std::string> flat_protobuf(const StoredObject& object) const;
  void append_metadata(const StoredObject& object, std::string& out) const;
  std::string encoded(const api::Json& document) const;
  std::string wrap(std::string_view event_type, std::string_view object) const;
  const api::Type& item_type() const;
  std::string list_kind() const;
  std::string list_version() const;
  api::Json metadata_only(const api::Json& document) const;
  api::Json row(const StoredObject& object, WallTime now) const;
  api::Json table(const StoredObject* object, api::Json meta, bool columns, WallTime now) const;

  const Resource* resource_;
  AnswerForm form_;
  IncludeObject include_;
};

}  // namespace spillway::apiserver
