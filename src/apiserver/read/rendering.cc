#include "apiserver/read/rendering.h"

#include "api/schema/protobuf_writer.h"
#include "apiserver/resource/custom_kind.h"
#include "apiserver/resource/slice_queue.h"
#include "base/check.h"

#include <array>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kListTail = "]}";

constexpr std::array<TableColumn, 2> kNeutralColumns{
    TableColumn{"Name", "string", "name", 0, "Name must be unique within a namespace."},
    TableColumn{"Created At", "date", "", 0, "When the object was created."}};

std::span<const TableColumn> columns_of(const Resource& resource) {
  if (resource.custom != nullptr) return resource.custom->table_columns;
  return resource.hooks->table_row != nullptr ? resource.hooks->columns : std::span<const TableColumn>(kNeutralColumns);
}

TableRow row_of(const Resource& resource, const Json& document, WallTime now) {
  if (resource.custom != nullptr) return resource.custom->table_row(resource.from_stored(document), now);
  if (resource.hooks->table_row != nullptr) return resource.hooks->table_row(document, now);
  return {{Json(document.string_at({"metadata", "name"})), Json(document.string_at({"metadata", "creationTimestamp"}))},
          {}};
}

Json column_definitions(const Resource& resource) {
  Json::Array columns;
  for (const TableColumn& column : columns_of(resource)) {
    columns.push_back(Json::object({{"name", column.name},
                                    {"type", column.type},
                                    {"format", column.format},
                                    {"description", column.description},
                                    {"priority", std::int64_t{column.priority}}}));
  }
  return columns;
}

Json list_meta(const ListMeta& meta) {
  Json out = Json::object({{"resourceVersion", std::to_string(meta.revision.number())}});
  if (!meta.continue_token.empty()) out["continue"] = meta.continue_token;
  if (meta.remaining) out["remainingItemCount"] = std::uint64_t{*meta.remaining};
  return out;
}

std::string line_of(std::string_view name, std::string_view object) {
  constexpr std::string_view kHead = "{\"type\":\"";
  constexpr std::string_view kMiddle = "\",\"object\":";
  std::string line;
  line.reserve(kHead.size() + name.size() + kMiddle.size() + object.size() + 2);
  line += kHead;
  line += name;
  line += kMiddle;
  line += object;
  line += "}\n";
  return line;
}

}  // namespace

std::string_view to_string(WatchEventType type) {
  switch (type) {
    case WatchEventType::kAdded:
      return "ADDED";
    case WatchEventType::kModified:
      return "MODIFIED";
    case WatchEventType::kDeleted:
      return "DELETED";
    case WatchEventType::kBookmark:
      return "BOOKMARK";
  }
  return {};
}

api::StatusResult<Rendering> Rendering::of(const Resource& resource, const AnswerForm& form,
                                           const api::Target& target) {
  IncludeObject include = IncludeObject::kMetadata;
  if (const std::string* text = target.find("includeObject"); text != nullptr && form.form == Form::kTable) {
    if (*text == "None") {
      include = IncludeObject::kNone;
    } else if (*text == "Object") {
      include = IncludeObject::kObject;
    } else if (!text->empty() && *text != "Metadata") {
      return make_error(ErrorCode::kBadRequest, "unrecognized includeObject value: \"{}\"", *text);
    }
  }
  return Rendering(resource, form, include);
}

std::string_view Rendering::stream_type() const {
  return is_protobuf() ? api::kProtobufStreamType : "application/json";
}

/// The document of an answer that is not a Table.
Json Rendering::shown(const StoredObject& object) const {
  Json document = object.document();
  if (form_.form == Form::kPartialMetadata) return metadata_only(document);
  return resource_->from_stored(document);
}

std::string Rendering::body(const StoredObject& object) const {
  if (is_verbatim()) return *object.text;
  if (!is_copied()) {
    if (auto flat = flat_protobuf(object)) return *std::move(flat);
    return encoded(shown(object));
  }
  std::string out;
  append_metadata(object, out);
  return out;
}

/// The result of encoded() for an object that is small and kept as text alone, without a document; else nullopt.
std::optional<std::string> Rendering::flat_protobuf(const StoredObject& object) const {
  if (!is_protobuf() || form_.form != Form::kObject || resource_->is_view()) return std::nullopt;
  if (object.parsed || !object.checked) return std::nullopt;  // text by other writers need not be canonical
  const auto document = api::FlatJson::parse(*object.text);
  return document ? std::optional(api::write_protobuf(item_type(), *document)) : std::nullopt;
}

/// Same text as encoded(metadata_only()): the metadata are one piece of the object's text.
void Rendering::append_metadata(const StoredObject& object, std::string& out) const {
  out += R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/)";
  out += form_.meta_version;
  out += R"(","metadata":)";
  out += metadata_text(object);
  out += '}';
}

std::string Rendering::encoded(const Json& document) const {
  return is_protobuf() ? api::write_protobuf(item_type(), document) : api::to_text(document);
}

std::string Rendering::wrap(std::string_view event_type, std::string_view object) const {
  return is_protobuf() ? api::protobuf_frame(event_type, object) : line_of(event_type, object);
}

const api::Type& Rendering::item_type() const {
  const bool partial = form_.form == Form::kPartialMetadata;
  const api::Type* type = partial ? api::find_type("meta/v1.PartialObjectMetadata")
                                  : api::find_kind(resource_->api_version(), resource_->kind);
  SPILLWAY_CHECK(type != nullptr);  // by negotiation: no protobuf for others
  return *type;
}

std::string Rendering::list_kind() const {
  return form_.form == Form::kPartialMetadata ? "PartialObjectMetadataList"
         : resource_->list_kind.empty()       ? std::string(resource_->kind) + "List"
                                              : std::string(resource_->list_kind);
}

std::string Rendering::list_version() const {
  return form_.form == Form::kPartialMetadata ? "meta.k8s.io/" + form_.meta_version : resource_->api_version();
}

Json Rendering::metadata_only(const Json& document) const {
  Json out = Json::object({{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/" + form_.meta_version}});
  if (const Json* meta = document.find("metadata")) out["metadata"] = *meta;
  return out;
}

Json Rendering::row(const StoredObject& object, WallTime now) const {
  Json document = object.document();
  TableRow row = row_of(*resource_, document, now);
  Json out = Json::object({{"cells", std::move(row.cells)}});
  if (!row.conditions.is_null()) out["conditions"] = std::move(row.conditions);
  switch (include_) {
    case IncludeObject::kNone:
      out["object"] = nullptr;
      break;
    case IncludeObject::kMetadata:
      out["object"] = metadata_only(document);
      break;
    case IncludeObject::kObject:
      out["object"] = resource_->from_stored(document);
      break;
  }
  return out;
}

/// `object` null: the table has no rows.
Json Rendering::table(const StoredObject* object, Json meta, bool columns, WallTime now) const {
  Json rows = Json::array();
  if (object != nullptr) rows.if_array()->push_back(row(*object, now));
  return Json::object({{"kind", "Table"},
                       {"apiVersion", "meta.k8s.io/" + form_.meta_version},
                       {"metadata", std::move(meta)},
                       {"columnDefinitions", columns ? column_definitions(*resource_) : Json()},
                       {"rows", std::move(rows)}});
}

std::string Rendering::object(const StoredObject& object, WallTime now) const {
  if (!is_table()) return body(object);
  return api::to_text(table(&object, list_meta({object.revision, {}, {}}), true, now));
}

std::string Rendering::list_head(const ListMeta& meta) const {
  if (is_protobuf()) return {};  // the head contains the length of the items
  if (is_table()) {
    std::string text = api::to_text(table(nullptr, list_meta(meta), true, WallTime()));  // "rows" is the last member
    SPILLWAY_CHECK(text.ends_with(kListTail));
    text.resize(text.size() - kListTail.size());
    return text;
  }
  std::string out = "{\"kind\":\"" + list_kind() + "\",\"apiVersion\":\"" + list_version() + "\",\"metadata\":";
  api::append_text(list_meta(meta), out);
  out += ",\"items\":[";
  return out;
}

store::Value Rendering::item(const StoredObject& object) const {
  if (object.protobuf_item) return object.protobuf_item;
  std::string text;
  text.reserve(object.protobuf_bytes);
  api::append_protobuf_item(item_type(), shown(object), text);
  object.protobuf_bytes = static_cast<std::uint32_t>(text.size());
  return std::make_shared<const std::string>(std::move(text));
}

void Rendering::append_item(const StoredObject& object, bool first, WallTime now, std::string& out) const {
  if (object.protobuf_item && shares_items()) {
    out += *object.protobuf_item;
    return;
  }
  if (is_protobuf()) return api::append_protobuf_item(item_type(), shown(object), out);
  if (!first) out += ',';
  if (is_table()) {
    api::append_text(row(object, now), out);
  } else if (is_verbatim()) {
    out += *object.text;
  } else if (is_copied()) {
    append_metadata(object, out);
  } else {
    out += encoded(shown(object));
  }
}

Rendering::ListFrame Rendering::list_frame(const ListMeta& meta, std::size_t item_bytes) const {
  if (!is_protobuf()) return {list_head(meta), std::string(kListTail) + "\n"};
  api::ProtobufListFrame frame = api::protobuf_list_frame(list_version(), list_kind(), list_meta(meta), item_bytes);
  return {std::move(frame.head), std::move(frame.tail)};
}

std::uint32_t& Rendering::known_item_bytes(const StoredObject& object) const {
  return form_.form == Form::kPartialMetadata ? object.metadata_protobuf_bytes : object.protobuf_bytes;
}

std::size_t Rendering::item_bytes(const StoredObject& object) const {
  if (knows_item_bytes(object)) return known_item_bytes(object);
  std::string text;
  append_item(object, true, WallTime(), text);
  if (keeps_item_bytes()) known_item_bytes(object) = static_cast<std::uint32_t>(text.size());
  return text.size();
}

std::string Rendering::end_list(const ListMeta& meta, std::string text) const {
  if (is_protobuf()) return api::write_protobuf_list(list_version(), list_kind(), list_meta(meta), text);
  text += kListTail;
  return text;
}

std::size_t Rendering::cost(const StoredObject& object) const {
  const bool is_at_hand = is_copied() || (object.protobuf_item && shares_items());
  return kVisitCost + object.text->size() / (is_at_hand ? kCopyShare : 1);
}

std::string Rendering::frame(WatchEventType type, const StoredObject& object, bool columns, WallTime now) const {
  if (is_verbatim()) return wrap(to_string(type), *object.text);
  if (!is_table()) return wrap(to_string(type), body(object));
  return wrap(to_string(type), api::to_text(table(&object, list_meta({object.revision, {}, {}}), columns, now)));
}

std::string Rendering::bookmark(store::Revision revision, bool initial_end) const {
  Json meta = Json::object({{"resourceVersion", std::to_string(revision.number())}});
  if (is_table()) {
    return wrap(to_string(WatchEventType::kBookmark), api::to_text(table(nullptr, std::move(meta), false, WallTime())));
  }
  if (initial_end) meta["annotations"] = Json::object({{"k8s.io/initial-events-end", "true"}});
  const bool partial = form_.form == Form::kPartialMetadata;
  const Json object =
      Json::object({{"kind", partial ? std::string("PartialObjectMetadata") : std::string(resource_->kind)},
                    {"apiVersion", partial ? "meta.k8s.io/" + form_.meta_version : resource_->api_version()},
                    {"metadata", std::move(meta)}});
  return wrap(to_string(WatchEventType::kBookmark), encoded(object));
}

std::string Rendering::error_frame(const api::Status& status) const {
  const Json document = api::to_json(status);
  if (!is_protobuf()) return wrap("ERROR", api::to_text(document));
  return wrap("ERROR", api::write_protobuf(*api::find_kind("v1", "Status"), document));
}

}  // namespace spillway::apiserver
