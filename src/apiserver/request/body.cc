#include "apiserver/request/body.h"

#include "api/json/document_bounds.h"
#include "api/schema/protobuf.h"
#include "apiserver/request/negotiation.h"
#include "apiserver/resource/custom_kind.h"
#include "base/check.h"
#include "yaml/yaml_document.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

struct Wording {
  std::string_view ours;
  std::string_view upstream;
};

/// Names of JSON types in our errors and in Go's.
constexpr std::array<Wording, 6> kValues{{{"a string", "string"},
                                          {"a boolean", "bool"},
                                          {"a number", "int64"},
                                          {"a number with a fraction or exponent", "float64"},
                                          {"a list", "slice"},
                                          {"an object", "map"}}};
constexpr std::array<Wording, 3> kRestored{
    {{"a map", "map from "}, {"a list", "slice from "}, {"an object", "struct from: "}}};

/// "metadata.labels: expected a map, got a string" in the words of a strategic merge patch, as clients expect them:
/// "metadata.labels: cannot restore map from string". Other complaints stay as they are.
std::string restoring_words(const std::string& complaint) {
  for (const Wording& wanted : kRestored) {
    for (const Wording& got : kValues) {
      const std::string ours = fmt::format("expected {}, got {}", wanted.ours, got.ours);
      if (!complaint.ends_with(ours)) continue;
      const std::string_view where = std::string_view(complaint).substr(0, complaint.size() - ours.size());
      return fmt::format("{}cannot restore {}{}", where, wanted.upstream, got.upstream);
    }
  }
  return complaint;
}

/// Adds the warnings behind those of the request, such as the one of a deprecated version. A patch that is applied
/// again to a newer object adds nothing new.
void warn(const api::TypedDocument& document, FieldValidation validation, std::vector<std::string>& warnings) {
  if (validation != FieldValidation::kWarn) return;
  std::vector<std::string> added = api::field_warnings(document);
  if (!std::ranges::search(warnings, added).empty()) return;
  std::ranges::move(added, std::back_inserter(warnings));
}

}  // namespace

StatusResult<void> check_size(const api::Request& request) {
  if (request.body.size() <= kBodyBytesMax) return {};
  return make_error(ErrorCode::kRequestEntityTooLarge, "Request entity too large: limit is {}", kBodyBytesMax);
}

const api::Type& field_type_of(const Resource& resource) {
  return resource.custom != nullptr ? *resource.custom->fields : type_of(resource);
}

const api::Type& type_of(const Resource& resource) {
  if (resource.custom != nullptr) return *resource.custom->body;
  const api::Type* type = api::find_kind(resource.api_version(), resource.kind);
  SPILLWAY_CHECK(type != nullptr);
  return *type;
}

Result<Json> parse_yaml_body(std::string_view text, std::size_t values_max) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool may_be_json = begin != std::string_view::npos && text[begin] == '{';
  if (may_be_json) {
    Result<Json> document = api::parse_bounded_json(text, nullptr, values_max);
    if (document || document.error().code != ErrorCode::kBadRequest) return document;
  }
  if (text.size() > kYamlBytesMax) {
    return make_error(ErrorCode::kRequestEntityTooLarge,
                      "Request entity too large: a body in YAML may have {} bytes; send it as JSON", kYamlBytesMax);
  }
  Result<yaml::Document> document = yaml::parse("line", std::string(text), yaml::LeadingZero::kOctal);
  if (!document) return make_error(ErrorCode::kBadRequest, "{}", document.error().text());
  return std::move(document->value);
}

Result<api::DocumentPtr> parsed_patch(const api::Request& request, const Resource& resource, api::PatchType type) {
  if (request.document) return request.document;
  // A returned object has an owner for each of its fields: twice as many values.
  const std::size_t values_max =
      type == api::PatchType::kJson ? api::kPatchValuesMax : 2 * type_of(resource).values_max();
  Result<Json> document = type == api::PatchType::kApply ? parse_yaml_body(request.body, values_max)
                                                         : api::parse_bounded_json(request.body, nullptr, values_max);
  if (!document) return document.error();
  return std::make_shared<const Json>(*std::move(document));
}

Result<api::TypedDocument> read_typed(const api::Request& request, const api::Type& type, BodyFormat format,
                                      const Json* canonical) {
  if (request.document) return api::read_body(type, *request.document, canonical);
  if (format == BodyFormat::kJson) return api::read_body(type, std::string_view(request.body));
  if (format == BodyFormat::kYaml) {
    SPILLWAY_TRY(document, parse_yaml_body(request.body, 2 * type.values_max()));
    return api::read_body(type, document, canonical);
  }
  SPILLWAY_TRY(object, api::read_protobuf(type, request.body));
  return api::TypedDocument{std::move(object), {}, {}};
}

namespace {

StatusResult<Json> validated(Result<api::TypedDocument> document, const api::Type& type, FieldValidation validation,
                             std::vector<std::string>& warnings) {
  if (!document) return document.error();
  if (validation == FieldValidation::kStrict) {
    if (const std::string complaint = api::strict_text(*document); !complaint.empty()) {
      return make_error(ErrorCode::kBadRequest, "{} in version \"{}\" cannot be handled as a {}: {}", type.kind(),
                        type.api_version(), type.kind(), complaint);
    }
  }
  warn(*document, validation, warnings);
  return std::move(document->object);
}

}  // namespace

StatusResult<Json> read_object(const api::Request& request, const api::Type& type, FieldValidation validation,
                               std::vector<std::string>& warnings, const Json* canonical) {
  SPILLWAY_TRY(format, body_format(request.header("content-type")));
  if (format == BodyFormat::kProtobuf && type.json_only()) {
    return make_error(ErrorCode::kUnsupportedMediaType,
                      "the body of the request was in an unknown format - accepted media types include: "
                      "application/json, application/yaml");
  }
  SPILLWAY_TRY_VOID(check_size(request));
  return validated(read_typed(request, type, format, canonical), type, validation, warnings);
}

StatusResult<Json> read_object(const Exchange& exchange, const api::Type& type, FieldValidation validation,
                               std::vector<std::string>& warnings, const Json* canonical) {
  const ReadBody& read = exchange.read_ahead();
  if (read.object && read.type == &type) return validated(*read.object, type, validation, warnings);
  return read_object(exchange.request(), type, validation, warnings, canonical);
}

StatusResult<void> check_namespace_matches(const Json& object, std::string_view ns) {
  const std::string_view own = object.string_at({"metadata", "namespace"});
  if (own.empty() || own == ns) return {};
  return make_error(ErrorCode::kBadRequest,
                    "the namespace of the provided object does not match the namespace sent on the request");
}

StatusResult<Json> patched_object(const api::Type& type, std::string_view kind_name, const Json& current,
                                  api::PatchType patch_type, const Json& patch, FieldValidation validation,
                                  std::vector<std::string>& warnings) {
  const auto invalid_patch = [&](const std::string& why) {
    api::FieldErrors errors;
    errors.invalid("patch", patch, why);
    return api::invalid_status({std::string(type.group()), std::string(kind_name)},
                               current.string_at({"metadata", "name"}), errors);
  };
  SPILLWAY_TRY(patched, api::apply_patch(type, current, patch_type, patch));
  if (patch_type == api::PatchType::kStrategicMerge && patched.is_object()) {
    for (const std::string_view member : {"kind", "apiVersion"}) patched[member] = current.string_at({member});
  } else if (patched.string_at({"apiVersion"}).empty() && !current.string_at({"apiVersion"}).empty()) {
    return make_error(ErrorCode::kBadRequest, "Object 'apiVersion' is missing in the patched object");
  }
  Result<api::TypedDocument> document = api::read_patched(type, patched, &current);
  if (!document) {
    const std::string& why = document.error().message;
    const bool strategic = patch_type == api::PatchType::kStrategicMerge;
    if (document.error().at == "patch") return invalid_patch(strategic ? restoring_words(why) : why);
    return document.error();
  }
  if (validation == FieldValidation::kStrict) {
    if (const std::string complaint = api::strict_text(*document); !complaint.empty()) return invalid_patch(complaint);
  }
  warn(*document, validation, warnings);
  return std::move(document->object);
}

}  // namespace spillway::apiserver
