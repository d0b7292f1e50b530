#include "apiserver/read/stored_form.h"

#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "api/schema/shape.h"
#include "api/schema/typed.h"
#include "apiserver/resource/custom_kind.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {
namespace {

using api::Json;

constexpr std::string_view kEncrypted = "k8s:enc:";
constexpr std::string_view kCbor = "\xd9\xd9\xf7";
constexpr std::size_t kFieldsReported = 8;

Error unreadable(std::string why) {
  return Error{ErrorCode::kInvalid, std::move(why), {}};
}

/// Checks apiVersion and kind of the envelope, or of the document: they must be those of the key.
Outcome check_kind(const Resource& resource, std::string_view version, std::string_view kind) {
  if (version == resource.api_version() && kind == resource.kind) return {};
  return unreadable(
      fmt::format("is a \"{}\" of \"{}\", expected a {} of {}", kind, version, resource.kind, resource.api_version()));
}

Result<AtRest> decode_protobuf(const Resource& resource, const api::Type* type, std::string_view bytes) {
  if (type == nullptr) return unreadable(fmt::format("is protobuf, which a {} has not", resource.kind));
  auto read = api::read_protobuf_fields(*type, bytes, api::kStoredWireFieldsMax);
  if (!read) return unreadable(std::move(read.error().message));
  SPILLWAY_TRY_VOID(check_kind(resource, read->object.string_at({"apiVersion"}), read->object.string_at({"kind"})));
  return AtRest{std::move(read->object), std::move(read->unknown_fields), StorageMediaType::kProtobuf, false};
}

Result<AtRest> decode_json(const Resource& resource, const api::Type* type, std::string_view bytes) {
  auto parsed = api::parse_json(bytes);
  if (!parsed) {
    return unreadable(fmt::format("is no JSON ({}), expected a {}", parsed.error().text(), resource.kind));
  }
  if (!parsed->is_object()) return unreadable(fmt::format("is no JSON object, expected a {}", resource.kind));
  SPILLWAY_TRY_VOID(check_kind(resource, parsed->string_at({"apiVersion"}), parsed->string_at({"kind"})));
  const Json* metadata = parsed->find("metadata");
  const bool is_plain = metadata != nullptr && metadata->is_object() && metadata->find("resourceVersion") == nullptr;
  AtRest at_rest{*std::move(parsed), {}, StorageMediaType::kJson, is_plain};
  if (type == nullptr || (is_plain && api::has_shape(*type, at_rest.document))) return at_rest;
  auto typed = api::read_body(*type, at_rest.document);
  if (!typed) return unreadable(std::move(typed.error().message));
  return AtRest{std::move(typed->object), std::move(typed->unknown_fields), StorageMediaType::kJson, false};
}

std::string joined(const std::vector<std::string>& words, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), most); ++i) {
    text += text.empty() ? "" : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace

std::string_view to_string(StorageMediaType type) {
  return type == StorageMediaType::kJson ? "application/json" : api::kProtobufContentType;
}

std::optional<StorageMediaType> media_type_of(std::string_view bytes) {
  if (api::is_protobuf(bytes)) return StorageMediaType::kProtobuf;
  const std::size_t begin = bytes.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && bytes[begin] == '{') return StorageMediaType::kJson;
  return std::nullopt;
}

namespace {

/// Decodes any version: only the name of the version is converted.
Result<AtRest> decode_custom(const Resource& resource, std::string_view bytes) {
  auto parsed = api::parse_json(bytes);
  if (!parsed) return unreadable(fmt::format("is no JSON ({}), expected a {}", parsed.error().text(), resource.kind));
  const std::string_view version = parsed->string_at({"apiVersion"});
  const bool of_group = version.starts_with(resource.group) && version.substr(resource.group.size()).starts_with('/');
  if (!of_group || parsed->string_at({"kind"}) != resource.kind) {
    return unreadable(fmt::format("is a \"{}\" of \"{}\", expected a {} of {}", parsed->string_at({"kind"}), version,
                                  resource.kind, resource.group));
  }
  const Json* metadata = std::as_const(*parsed).find("metadata");
  if (metadata == nullptr || !metadata->is_object()) return unreadable("has no metadata");
  Json shaped = resource.custom->kind->at_rest(*parsed);
  const bool is_text = metadata->find("resourceVersion") == nullptr && shaped == *parsed;
  return AtRest{std::move(shaped), {}, StorageMediaType::kJson, is_text};
}

}  // namespace

Result<AtRest> decode_stored(const Resource& resource, std::string_view bytes) {
  if (bytes.starts_with(kEncrypted)) return unreadable("is encrypted, and this server has no key");
  if (bytes.starts_with(kCbor)) return unreadable("is CBOR, expected JSON or protobuf");
  if (resource.custom != nullptr) return decode_custom(resource, bytes);
  const api::Type* type = api::find_kind(resource.api_version(), resource.kind);
  if (api::is_protobuf(bytes)) return decode_protobuf(resource, type, bytes);
  return decode_json(resource, type, bytes);
}

std::string encode_stored(const Resource& resource, Json& document, StorageMediaType media_type) {
  document.erase({"metadata", "resourceVersion"});
  if (media_type == StorageMediaType::kProtobuf) {
    const api::Type* type = api::find_kind(resource.api_version(), resource.kind);
    if (type != nullptr && !type->json_only()) {
      return api::write_protobuf(*type, document);
    }
  }
  return api::to_text(document);
}

api::Status unreadable_status(std::string_view store_key, store::Revision revision, std::string_view cause) {
  return make_error(ErrorCode::kInternalError,
                    "Internal error occurred: StorageError: corrupt object, Code: 7, Key: {}, ResourceVersion: 0, "
                    "AdditionalErrorMsg: object not decodable revision={}: {}",
                    store_key, revision.number(), cause);
}

api::Status unknown_fields_status(std::string_view store_key, const std::vector<std::string>& fields) {
  return make_error(ErrorCode::kInternalError,
                    "Internal error occurred: StorageError: {} was stored by a newer version: a write would lose what "
                    "this one does not know ({}); --storage-drop-unknown-fields allows it",
                    store_key, joined(fields, kFieldsReported));
}

std::string left_out_warning(const std::vector<std::string>& store_keys) {
  return fmt::format("the list lacks objects that cannot be decoded: {}", joined(store_keys, kLeftOutReported));
}

std::string unknown_fields_warning(const std::vector<std::string>& fields) {
  return fmt::format("stored by a newer version: not shown: {}", joined(fields, kFieldsReported));
}

}  // namespace spillway::apiserver
