#include "apiserver/read/stored_object.h"

#include "api/json/json_values.h"
#include "apiserver/read/stored_form.h"
#include "apiserver/resource/custom_kind.h"
#include "base/check.h"
#include "base/heap_size.h"

#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

std::string path_value(const Json& document, std::string_view path) {
  const Json* at = &document;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    at = at->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  if (at == nullptr) return {};
  if (const std::string* text = at->if_string()) return *text;
  if (const auto flag = at->if_bool()) return *flag ? "true" : "false";
  if (at->is_integer()) return api::to_text(*at);
  return {};
}

Json parse(std::string_view text) {
  Result<Json> document = api::parse_json(text);
  SPILLWAY_CHECK(document.has_value());
  return *std::move(document);
}

std::size_t skip_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

/// Offset just behind the brace that opens the value of the top-level member "metadata"; npos if there is none.
std::size_t inside_metadata(std::string_view text) {
  constexpr std::string_view kMember = "\"metadata\"";
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const bool candidate = depth == 1 && text.substr(at, kMember.size()) == kMember;
      at = skip_string(text, at);
      if (!candidate) continue;
      std::size_t next = text.find_first_not_of(" \t\r\n", at);
      if (next == std::string_view::npos || text[next] != ':') continue;
      next = text.find_first_not_of(" \t\r\n", next + 1);
      if (next != std::string_view::npos && text[next] == '{') return next + 1;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
  }
  return std::string_view::npos;
}

}  // namespace

bool is_ready(const Json& pod) {
  const Json* conditions = pod.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return false;
  for (const Json& condition : *conditions->if_array()) {
    if (condition.string_at({"type"}) == "Ready") return condition.string_at({"status"}) == "True";
  }
  return false;
}

Extract extract(const Resource& resource, const Json& document) {
  Extract out;
  for (const SelectableField& field : resource.fields) {
    out.fields.push_back(field.read != nullptr ? field.read(document) : path_value(document, field.name));
  }
  out.fields.shrink();
  if (resource.custom != nullptr && resource.custom->kind->webhook() != nullptr) {
    out.api_version = document.string_at({"apiVersion"});
  }
  const Json* meta = document.find("metadata");
  if (meta == nullptr) return out;
  out.uid = meta->string_at({"uid"});
  if (const Json* labels = meta->find("labels"); labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : *labels->if_object()) {
      if (const std::string* text = value.if_string()) out.labels.emplace(key, *text);
    }
  }
  if (const Json* owners = meta->find("ownerReferences"); owners != nullptr && owners->is_array()) {
    for (const Json& owner : *owners->if_array()) {
      const Json* controller = owner.find("controller");
      const Json* blocks = owner.find("blockOwnerDeletion");
      out.owners.push_back({.api_version = std::string(owner.string_at({"apiVersion"})),
                            .kind = std::string(owner.string_at({"kind"})),
                            .name = std::string(owner.string_at({"name"})),
                            .uid = std::string(owner.string_at({"uid"})),
                            .controller = controller != nullptr && controller->if_bool().value_or(false),
                            .blocks_deletion = blocks != nullptr && blocks->if_bool().value_or(false)});
    }
  }
  if (const Json* finalizers = meta->find("finalizers"); finalizers != nullptr && finalizers->is_array()) {
    for (const Json& finalizer : *finalizers->if_array()) {
      const std::string* name = finalizer.if_string();
      if (name == nullptr) continue;
      out.finalized = false;
      out.foreground = out.foreground || *name == "foregroundDeletion";
      out.orphaning = out.orphaning || *name == "orphan";
    }
  }
  if (resource.is("", "Pod")) out.ready = is_ready(document);
  if (resource.group == "apps" || resource.is("", "ReplicationController")) {
    out.replicas = api::integer_at(document, {"spec", "replicas"}, 1);
  }
  const Json* deletion = meta->find("deletionTimestamp");
  out.deleting = deletion != nullptr && deletion->is_string();
  return out;
}

std::string StoredObject::text_at(store::Revision other) const {
  std::string copy;
  copy.reserve(text->size() + 4);
  copy.append(*text, 0, version_at);
  copy += std::to_string(other.number());
  copy.append(*text, version_at + version_length);
  return copy;
}

Json StoredObject::document() const {
  return parsed ? *parsed : parse(*text);
}

api::DocumentPtr StoredObject::shared_document() const {
  return parsed ? parsed : std::make_shared<const Json>(parse(*text));
}

namespace {

template <typename T>
std::size_t list_bytes(const std::vector<T>& list) {
  return list.capacity() == 0 ? 0 : block_bytes(list.capacity() * sizeof(T));
}

std::size_t texts_bytes(const std::vector<std::string>& texts) {
  std::size_t bytes = list_bytes(texts);
  for (const std::string& text : texts) bytes += text_bytes(text);
  return bytes;
}

}  // namespace

std::size_t bytes_of_fields(const StoredObject& object) {
  std::size_t bytes = text_bytes(object.key) + text_bytes(object.ns) + text_bytes(object.name) +
                      text_bytes(object.meta.uid) + text_bytes(object.meta.api_version) +
                      text_bytes(object.meta.fields.packed()) + texts_bytes(object.unknown_fields) +
                      list_bytes(object.meta.owners);
  for (const OwnerLink& owner : object.meta.owners) {
    bytes += text_bytes(owner.api_version) + text_bytes(owner.kind) + text_bytes(owner.name) + text_bytes(owner.uid);
  }
  for (const auto& label : object.meta.labels) {
    bytes += tree_node_bytes<api::StringMap::value_type>() + text_bytes(label.first) + text_bytes(label.second);
  }
  return bytes;
}

std::string object_key(std::string_view ns, std::string_view name) {
  std::string key;
  key.reserve(ns.size() + name.size() + 1);
  if (!ns.empty()) {
    key += ns;
    key += '/';
  }
  key += name;
  return key;
}

std::shared_ptr<StoredObject> make_object(std::string key, std::string_view bytes, store::Revision revision,
                                          Extract meta, Resting resting) {
  auto object = std::make_shared<StoredObject>();
  object->unknown_fields = std::move(resting.unknown_fields);
  object->media_type = resting.media_type;
  const std::size_t slash = key.find('/');
  if (slash == std::string::npos) {
    object->name = key;
  } else {
    object->ns = key.substr(0, slash);
    object->name = key.substr(slash + 1);
  }
  object->key = std::move(key);
  object->revision = revision;
  object->meta = std::move(meta);

  const std::string number = std::to_string(revision.number());
  const std::size_t inside = inside_metadata(bytes);
  const std::size_t at = inside != std::string_view::npos ? inside : bytes.find('{') + 1;
  std::string_view before = "\"resourceVersion\":\"";
  std::string_view after = "\"";
  if (inside == std::string_view::npos) {
    before = "\"metadata\":{\"resourceVersion\":\"";
    after = "\"}";
  }
  const std::size_t next = bytes.find_first_not_of(" \t\r\n", at);
  const bool last = next != std::string_view::npos && bytes[next] == '}';
  std::string text;
  text.reserve(bytes.size() + before.size() + number.size() + 3);
  text += bytes.substr(0, at);
  text += before;
  object->version_at = text.size();
  object->version_length = number.size();
  text += number;
  text += after;
  if (!last) text += ',';
  text += bytes.substr(at);
  object->text = std::make_shared<const std::string>(std::move(text));
  return object;
}

namespace {

constexpr std::string_view kVersionMember = "\"resourceVersion\":\"";

/// The range of the member resourceVersion in an object's text, with the comma behind it, if there is one.
std::pair<std::size_t, std::size_t> version_member(const StoredObject& object) {
  const std::size_t begin = object.version_at - kVersionMember.size();
  const std::size_t end = object.version_at + object.version_length + 1;
  return {begin, (*object.text)[end] == ',' ? end + 1 : end};
}

}  // namespace

ObjectPtr make_renewed(const StoredObject& object, std::string_view bytes, store::Revision revision) {
  auto renewed = std::make_shared<StoredObject>();
  renewed->key = object.key;
  renewed->ns = object.ns;
  renewed->name = object.name;
  renewed->revision = revision;
  renewed->created = object.created;
  renewed->meta = object.meta;
  renewed->checked = object.checked;
  const auto [begin, end] = version_member(object);
  const std::string number = std::to_string(revision.number());
  std::string text;
  text.reserve(bytes.size() + (end - begin) + 2);
  text += bytes.substr(0, begin);
  text += kVersionMember;
  renewed->version_at = text.size();
  renewed->version_length = number.size();
  text += number;
  text += '"';
  if ((*object.text)[end - 1] == ',') text += ',';
  text += bytes.substr(begin);
  renewed->text = std::make_shared<const std::string>(std::move(text));
  return renewed;
}

std::string_view metadata_text(const StoredObject& object) {
  const std::string_view text = *object.text;
  const std::size_t begin = inside_metadata(text) - 1;  // always present: the metadata hold a resourceVersion
  std::size_t depth = 0;
  for (std::size_t at = begin; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    ++at;
    if ((c == '}' || c == ']') && --depth == 0) return text.substr(begin, at - begin);
  }
  return text.substr(begin);
}

std::shared_ptr<StoredObject> make_last(const StoredObject& object, store::Revision revision) {
  auto last = std::make_shared<StoredObject>(object);
  last->parsed = nullptr;
  last->protobuf_item = nullptr;
  last->protobuf_bytes = last->metadata_protobuf_bytes = 0;
  last->at_rest = nullptr;
  last->text = std::make_shared<const std::string>(object.text_at(revision));
  last->version_length = std::to_string(revision.number()).size();
  last->revision = revision;
  return last;
}

std::string stored_bytes(const StoredObject& object) {
  if (object.at_rest) return *object.at_rest;
  const auto [begin, end] = version_member(object);
  std::string bytes;
  bytes.reserve(object.text->size());
  bytes.append(*object.text, 0, begin);
  bytes.append(*object.text, end);
  return bytes;
}

std::size_t offset_in_bytes(const StoredObject& object, std::size_t at) {
  const auto [begin, end] = version_member(object);
  SPILLWAY_DCHECK(at >= end);
  return at - (end - begin);
}

Result<ObjectPtr> read_object(const Resource& resource, std::string key, const store::Value& value,
                              store::Revision revision, store::Revision created) {
  const std::string_view bytes = *value;
  SPILLWAY_TRY(at_rest, decode_stored(resource, bytes));
  Extract meta = extract(resource, at_rest.document);
  const std::string text = at_rest.is_text ? std::string() : to_stored_text(at_rest.document);
  auto object = make_object(std::move(key), at_rest.is_text ? bytes : std::string_view(text), revision, std::move(meta),
                            {std::move(at_rest.unknown_fields), at_rest.media_type});
  object->created = created;
  if (resource.custom != nullptr && !at_rest.is_text) object->at_rest = value;
  return object;
}

std::string to_stored_text(Json& document) {
  document.erase({"metadata", "resourceVersion"});
  return api::to_text(document);
}

}  // namespace spillway::apiserver
