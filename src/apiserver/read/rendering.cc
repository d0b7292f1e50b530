#include "apiserver/read/rendering.h"

#include "apiserver/resource/slice_queue.h"
#include "base/check.h"

#include <array>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::array<TableColumn, 2> kNeutralColumns{
    TableColumn{"Name", "string", "name", 0, "Name must be unique within a namespace."},
    TableColumn{"Created At", "date", "", 0, "When the object was created."}};

std::span<const TableColumn> columns_of(const Resource& resource) {
  return resource.hooks->table_row != nullptr ? resource.hooks->columns : std::span<const TableColumn>(kNeutralColumns);
}

TableRow row_of(const Resource& resource, const Json& document, WallTime now) {
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

std::string wrap(WatchEventType type, std::string_view object) {
  constexpr std::string_view kHead = "{\"type\":\"";
  constexpr std::string_view kMiddle = "\",\"object\":";
  const std::string_view name = to_string(type);
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

std::string Rendering::body(const StoredObject& object) const {
  if (is_verbatim()) return *object.text;
  Json document = object.document();
  if (form_.form == Form::kPartialMetadata) return api::to_text(metadata_only(document));
  return api::to_text(resource_->view.from_stored(document));
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
      out["object"] =
          resource_->view.from_stored != nullptr ? resource_->view.from_stored(document) : std::move(document);
      break;
  }
  return out;
}

/// Without an object: no rows.
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
  if (is_table()) {
    std::string text = api::to_text(table(nullptr, list_meta(meta), true, WallTime()));  // "rows" comes last
    SPILLWAY_CHECK(text.ends_with(kListTail));
    text.resize(text.size() - kListTail.size());
    return text;
  }
  std::string kind = std::string(resource_->kind) + "List";
  std::string api_version = resource_->api_version();
  if (form_.form == Form::kPartialMetadata) {
    kind = "PartialObjectMetadataList";
    api_version = "meta.k8s.io/" + form_.meta_version;
  }
  std::string out = "{\"kind\":\"" + kind + "\",\"apiVersion\":\"" + api_version + "\",\"metadata\":";
  api::append_text(list_meta(meta), out);
  out += ",\"items\":[";
  return out;
}

void Rendering::append_item(const StoredObject& object, WallTime now, std::string& out) const {
  if (is_verbatim()) {
    out += *object.text;
  } else if (is_table()) {
    api::append_text(row(object, now), out);
  } else {
    out += body(object);
  }
}

std::size_t Rendering::cost(const StoredObject& object) const {
  return kLookCost + object.text->size() / (is_verbatim() ? kCopyShare : 1);
}

std::string Rendering::frame(WatchEventType type, const StoredObject& object, bool columns, WallTime now) const {
  if (is_verbatim()) return wrap(type, *object.text);
  if (!is_table()) return wrap(type, body(object));
  return wrap(type, api::to_text(table(&object, list_meta({object.revision, {}, {}}), columns, now)));
}

std::string Rendering::bookmark(store::Revision revision, bool initial_end) const {
  Json meta = Json::object({{"resourceVersion", std::to_string(revision.number())}});
  if (is_table()) {
    return wrap(WatchEventType::kBookmark, api::to_text(table(nullptr, std::move(meta), false, WallTime())));
  }
  // What every object has besides is null, as an empty object of the kind would show it.
  meta["creationTimestamp"] = nullptr;
  if (initial_end) meta["annotations"] = Json::object({{"k8s.io/initial-events-end", "true"}});
  const bool partial = form_.form == Form::kPartialMetadata;
  const Json object =
      Json::object({{"kind", partial ? std::string("PartialObjectMetadata") : std::string(resource_->kind)},
                    {"apiVersion", partial ? "meta.k8s.io/" + form_.meta_version : resource_->api_version()},
                    {"metadata", std::move(meta)}});
  return wrap(WatchEventType::kBookmark, api::to_text(object));
}

std::string error_frame(const api::Status& status) {
  return "{\"type\":\"ERROR\",\"object\":" + api::to_text(api::to_json(status)) + "}\n";
}

}  // namespace spillway::apiserver
