#include "apiserver/request/openapi_protobuf.h"

namespace spillway::apiserver {

namespace {

using api::Json;

// Numbers of fields; each of them is a message or a text.
constexpr std::size_t kDocumentSwagger = 1;
constexpr std::size_t kDocumentInfo = 2;
constexpr std::size_t kDocumentPaths = 8;
constexpr std::size_t kDocumentDefinitions = 9;
constexpr std::size_t kInfoTitle = 1;
constexpr std::size_t kInfoVersion = 2;
constexpr std::size_t kSchemaReference = 1;
constexpr std::size_t kSchemaFormat = 2;
constexpr std::size_t kSchemaDescription = 4;
constexpr std::size_t kSchemaRequired = 19;
constexpr std::size_t kSchemaAdditionalProperties = 21;
constexpr std::size_t kSchemaType = 22;
constexpr std::size_t kSchemaItems = 23;
constexpr std::size_t kSchemaProperties = 25;
constexpr std::size_t kSchemaExtension = 31;
constexpr std::size_t kNamedName = 1;
constexpr std::size_t kNamedValue = 2;
constexpr std::size_t kOnly = 1;  // field number in messages with one relevant field
constexpr std::size_t kAnyYaml = 2;

void append_varint(std::string& out, std::size_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

/// A field that is length-delimited.
std::string message(std::size_t field, std::string_view bytes) {
  std::string out;
  append_varint(out, (field << 3U) | 2U);
  append_varint(out, bytes.size());
  out += bytes;
  return out;
}

std::string named(std::string_view name, std::string_view value) {
  return message(kOnly, message(kNamedName, name) + message(kNamedValue, value));
}

std::string schema_bytes(const Json& schema);

/// Members of an object as named schemas.
std::string named_schemas(const Json& schemas) {
  std::string out;
  for (const auto& [name, schema] : *schemas.if_object()) out += named(name, schema_bytes(schema));
  return out;
}

std::string required_bytes(const Json& names) {
  std::string out;
  for (const Json& name : *names.if_array()) out += message(kSchemaRequired, name.string_at({}));
  return out;
}

std::string member_bytes(std::string_view name, const Json& value) {
  if (name == "$ref") return message(kSchemaReference, value.string_at({}));
  if (name == "format") return message(kSchemaFormat, value.string_at({}));
  if (name == "description") return message(kSchemaDescription, value.string_at({}));
  if (name == "type") return message(kSchemaType, message(kOnly, value.string_at({})));
  if (name == "items") return message(kSchemaItems, message(kOnly, schema_bytes(value)));
  if (name == "properties") return message(kSchemaProperties, named_schemas(value));
  if (name == "required" && value.if_array() != nullptr) return required_bytes(value);
  if (name == "additionalProperties" && value.is_object()) {
    return message(kSchemaAdditionalProperties, message(kOnly, schema_bytes(value)));
  }
  // JSON is YAML.
  if (name.starts_with("x-")) {
    return message(kSchemaExtension,
                   message(kNamedName, name) + message(kNamedValue, message(kAnyYaml, api::to_text(value))));
  }
  return {};
}

std::string schema_bytes(const Json& schema) {
  std::string out;
  for (const auto& [name, value] : *schema.if_object()) out += member_bytes(name, value);
  return out;
}

}  // namespace

std::string open_api_v2_protobuf(std::string_view title, std::string_view version, const Json& definitions) {
  return message(kDocumentSwagger, "2.0") +
         message(kDocumentInfo, message(kInfoTitle, title) + message(kInfoVersion, version)) +
         message(kDocumentPaths, "") + message(kDocumentDefinitions, named_schemas(definitions));
}

}  // namespace spillway::apiserver
