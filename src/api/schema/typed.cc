#include "api/schema/typed.h"

#include "api/json/document_bounds.h"
#include "api/object/meta.h"
#include "api/text/base64.h"
#include "api/text/quantity.h"
#include "api/text/time_text.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace spillway::api {
namespace {

using std::chrono::sys_days;

/// 0001-01-01T00:00:00Z, the zero of Go's time.
constexpr std::size_t kMicroDigits = 6;
constexpr WallTime kYearOne{
    std::chrono::duration_cast<microseconds>(sys_days{std::chrono::year{1} / 1 / 1}.time_since_epoch())};

/// The path of the present value; converted to text only for a message.
class Path {
 public:
  Path() = default;

  Path member(std::string_view name) const { return Path(this, Kind::kMember, name, 0); }

  Path key(std::string_view key) const { return Path(this, Kind::kKey, key, 0); }

  Path index(std::size_t index) const { return Path(this, Kind::kIndex, {}, index); }

  /// "spec.containers[0].resources.limits[cpu]"
  std::string text() const {
    std::string out = parent_ != nullptr ? parent_->text() : std::string();
    switch (kind_) {
      case Kind::kRoot:
        break;
      case Kind::kMember:
        if (!out.empty()) out += '.';
        out += name_;
        break;
      case Kind::kKey:
        out += fmt::format("[{}]", name_);
        break;
      case Kind::kIndex:
        out += fmt::format("[{}]", index_);
        break;
    }
    return out;
  }

 private:
  enum class Kind : std::uint8_t { kRoot, kMember, kKey, kIndex };

  Path(const Path* parent, Kind kind, std::string_view name, std::size_t index)
      : parent_(parent), kind_(kind), name_(name), index_(index) {}

  const Path* parent_ = nullptr;
  Kind kind_ = Kind::kRoot;
  std::string_view name_;
  std::size_t index_ = 0;
};

Error wrong_type(const Path& path, std::string_view expected, const Json& got) {
  return Error{ErrorCode::kBadRequest, fmt::format("expected {}, got {}", expected, type_phrase(got)), path.text()};
}

Error bad_value(const Path& path, std::string_view why) {
  return Error{ErrorCode::kBadRequest, std::string(why), path.text()};
}

/// True for values that Go's omitempty leaves out.
bool is_zero(const Json& value) {
  switch (value.type()) {
    case Json::Type::kNull:
      return true;
    case Json::Type::kBool:
      return value == Json(false);
    case Json::Type::kInt:
      return value == Json(0);
    case Json::Type::kUint:
      return false;
    case Json::Type::kDouble:
      return value == Json(0.0);
    case Json::Type::kString:
      return value.if_string()->empty();
    case Json::Type::kArray:
      return value.if_array()->empty();
    case Json::Type::kObject:
      return value.if_object()->empty();
  }
  return false;
}

/// The zero values of these are not left out, as they are structs in the Go types.
bool is_struct(ValueKind kind) {
  switch (kind) {
    case ValueKind::kTime:
    case ValueKind::kMicroTime:
    case ValueKind::kQuantity:
    case ValueKind::kIntOrString:
    case ValueKind::kNumber:
    case ValueKind::kRawJson:
    case ValueKind::kMessage:
      return true;
    case ValueKind::kString:
    case ValueKind::kBool:
    case ValueKind::kInt32:
    case ValueKind::kInt64:
    case ValueKind::kBytes:
    case ValueKind::kStrings:
      return false;
  }
  return false;
}

bool is_written_when_zero(const Field& field) {
  return field.shape == Shape::kSingle && is_struct(field.kind) && !field.omit_zero;
}

/// Whole documents get the members that Go's types always write; partial ones do not.
enum class Fill : std::uint8_t { kWhole, kPartial };

class Reader {
 public:
  Reader(Fill fill, std::size_t values_max) : fill_(fill), values_max_(values_max) {}

  /// `known`: a value in canonical form at the same place, or nullptr.
  Result<Json> message(const Type& type, const Json& document, const Json* known, const Path& path) {
    SPILLWAY_TRY_VOID(count());
    if (known != nullptr && document.shares(*known)) return document;
    const JsonObject* object = document.if_object();
    if (object == nullptr) return wrong_type(path, "an object", document);
    JsonObject::Members out;
    out.reserve(object->size() + 1);
    if (type.has_type_meta()) SPILLWAY_TRY_VOID(type_meta(*object, path, out));
    for (const auto& [key, value] : *object) {
      if (type.find(key) == nullptr && !(type.has_type_meta() && (key == "kind" || key == "apiVersion"))) {
        if (type.open()) {
          SPILLWAY_TRY_VOID(count());
          out.push_back({key, value});
        } else if (unknown_.size() < kComplaintsMax) {
          unknown_.push_back(complaint_path(path.member(key).text()));
        }
      }
    }
    auto next = object->begin();  // both are sorted: one walk
    for (const auto& [name, field] : type.json_fields()) {
      while (next != object->end() && next->key < name) ++next;
      const bool present = next != object->end() && next->key == name && (type.derived() || !next->value.is_null());
      SPILLWAY_TRY_VOID(put_field(*field, present ? &next->value : nullptr, known, path, out));
    }
    return object_of(std::move(out));
  }

  std::vector<std::string> take_unknown() { return std::move(unknown_); }

 private:
  static Json object_of(JsonObject::Members members) {
    JsonObject object;
    object.assign_unsorted(std::move(members));
    return Json(std::move(object));
  }

  /// Counts one more value of the result.
  Outcome count() {
    if (++values_ > values_max_) return too_many_values(values_max_);
    return {};
  }

  static Outcome type_meta(const JsonObject& object, const Path& path, JsonObject::Members& out) {
    for (const std::string_view key : {"apiVersion", "kind"}) {
      const Json* value = object.find(key);
      if (value == nullptr || value->is_null()) continue;
      if (!value->is_string()) return wrong_type(path.member(key), "a string", *value);
      if (!is_zero(*value)) out.push_back({std::string(key), *value});
    }
    return {};
  }

  static const Json* below(const Json* known, std::string_view name) {
    return known != nullptr ? known->find(name) : nullptr;
  }

  static const Json* below(const Json* known, std::size_t index) {
    const Json::Array* list = known != nullptr ? known->if_array() : nullptr;
    return list != nullptr && index < list->size() ? &(*list)[index] : nullptr;
  }

  /// `known`: the value of the message, not of the field.
  Outcome put_field(const Field& field, const Json* value, const Json* known, const Path& path,
                    JsonObject::Members& out) {
    if (value == nullptr) return put_absent(field, path, out);
    if (value->is_null()) {
      out.push_back({std::string(field.name), Json()});
      return count();
    }
    SPILLWAY_TRY(read, field_value(field, *value, below(known, field.name), path.member(field.name)));
    const bool always = fill_ == Fill::kPartial || field.keep || field.pointer || is_written_when_zero(field);
    if (always || !is_zero(read)) out.push_back({std::string(field.name), std::move(read)});
    return {};
  }

  Outcome put_absent(const Field& field, const Path& path, JsonObject::Members& out) {
    if (fill_ == Fill::kPartial) return {};
    if (field.pointer || field.shape != Shape::kSingle) {
      if (field.keep) out.push_back({std::string(field.name), Json()});
      return {};
    }
    if (!field.keep && !is_written_when_zero(field)) return {};
    SPILLWAY_TRY_VOID(count());
    SPILLWAY_TRY(zero, zero_of(field, path.member(field.name)));
    out.push_back({std::string(field.name), std::move(zero)});
    return {};
  }

  /// The value of null or of an absent member where a value is required.
  Result<Json> zero_of(const Field& field, const Path& path) {
    switch (field.kind) {
      case ValueKind::kString:
        return Json("");
      case ValueKind::kBool:
        return Json(false);
      case ValueKind::kInt32:
      case ValueKind::kInt64:
      case ValueKind::kIntOrString:
      case ValueKind::kNumber:
        return Json(0);
      case ValueKind::kQuantity:
        return Json("0");
      case ValueKind::kBytes:
      case ValueKind::kTime:
      case ValueKind::kMicroTime:
      case ValueKind::kRawJson:
      case ValueKind::kStrings:
        return Json();
      case ValueKind::kMessage:
        return message(*field.message, Json::object(), nullptr, path);
    }
    return Json();
  }

  Result<Json> field_value(const Field& field, const Json& value, const Json* known, const Path& path) {
    if (known != nullptr && value.shares(*known)) return value;
    switch (field.shape) {
      case Shape::kSingle:
        return element(field, value, known, path);
      case Shape::kList:
        return list(field, value, known, path);
      case Shape::kMap:
        return map(field, value, known, path);
    }
    return Json();
  }

  Result<Json> list(const Field& field, const Json& value, const Json* known, const Path& path) {
    if (!value.is_array()) return wrong_type(path, "a list", value);
    Json::Array out;
    out.reserve(value.if_array()->size());
    for (std::size_t i = 0; i < value.if_array()->size(); ++i) {
      SPILLWAY_TRY(one, element(field, (*value.if_array())[i], below(known, i), path.index(i)));
      out.push_back(std::move(one));
    }
    return Json(std::move(out));
  }

  Result<Json> map(const Field& field, const Json& value, const Json* known, const Path& path) {
    if (!value.is_object()) return wrong_type(path, "a map", value);
    JsonObject::Members out;
    out.reserve(value.if_object()->size());
    for (const auto& [key, entry] : *value.if_object()) {
      SPILLWAY_TRY(one, element(field, entry, below(known, std::string_view(key)), path.key(key)));
      out.push_back({key, std::move(one)});
    }
    return object_of(std::move(out));
  }

  Result<Json> element(const Field& field, const Json& value, const Json* known, const Path& path) {
    SPILLWAY_TRY_VOID(count());
    if (value.is_null() && field.kind == ValueKind::kBytes && field.shape != Shape::kSingle) return Json("");
    if (value.is_null()) return field.or_other ? Result<Json>(value) : zero_of(field, path);
    if (known != nullptr && value.is_string() && value == *known) return value;
    switch (field.kind) {
      case ValueKind::kString:
        return value.is_string() ? Result<Json>(value) : wrong_type(path, "a string", value);
      case ValueKind::kBool:
        return value.is_bool() ? Result<Json>(value) : wrong_type(path, "a boolean", value);
      case ValueKind::kInt32:
        return integer(value, path, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
      case ValueKind::kInt64:
        return integer(value, path, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
      case ValueKind::kBytes:
        return bytes(value, path);
      case ValueKind::kTime:
      case ValueKind::kMicroTime:
        return time(value, path, field.kind);
      case ValueKind::kQuantity:
        return quantity(value, path);
      case ValueKind::kIntOrString:
        if (value.is_string()) return value;
        return integer(value, path, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
      case ValueKind::kNumber:
        return value.is_number() ? Result<Json>(value) : wrong_type(path, "a number", value);
      case ValueKind::kRawJson:
        return value;
      case ValueKind::kStrings:
        return strings(value, path);
      case ValueKind::kMessage:
        if (field.or_other && !value.is_object()) return value;
        return message(*field.message, value, known, path);
    }
    return Json();
  }

  static Result<Json> integer(const Json& value, const Path& path, std::int64_t min, std::int64_t max) {
    if (!value.is_number()) return wrong_type(path, "an integer", value);
    const std::optional<std::int64_t> number = value.if_int64();
    if (!number || *number < min || *number > max) {
      return bad_value(path, fmt::format("expected an integer from {} to {}, got {}", min, max, to_text(value)));
    }
    return value;
  }

  static Result<Json> bytes(const Json& value, const Path& path) {
    if (!value.is_string()) return wrong_type(path, "a base64 string", value);
    const Result<std::string> raw = decode_base64(*value.if_string());
    if (!raw) return bad_value(path, raw.error().message);
    return Json(encode_base64(*raw));
  }

  static Result<Json> time(const Json& value, const Path& path, ValueKind kind) {
    if (!value.is_string()) return wrong_type(path, "a time", value);
    const std::string& text = *value.if_string();
    const Result<WallTime> parsed = parse_time(text);
    if (!parsed) return bad_value(path, parsed.error().message);
    if (kind == ValueKind::kMicroTime) {
      const std::size_t point = std::min(text.find('.'), text.size());
      const std::size_t end = std::min(text.find_first_not_of("0123456789", point + 1), text.size());
      if (end != point + 1 + kMicroDigits) {
        return bad_value(path,
                         "expected a time with six digits of a second's fraction, e.g. 2026-01-01T00:00:00.000000Z");
      }
    }
    if (*parsed == kYearOne) return Json();
    return Json(kind == ValueKind::kTime ? format_time(*parsed) : format_micro_time(*parsed));
  }

  static Result<Json> quantity(const Json& value, const Path& path) {
    if (!value.is_string() && !value.is_number()) return wrong_type(path, "a quantity", value);
    const std::string text = value.is_string() ? *value.if_string() : to_text(value);
    const std::size_t from = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const std::size_t to = text.find_last_not_of(" \t\r\n");
    const Result<Quantity> parsed = parse_quantity(std::string_view(text).substr(from, to + 1 - from));
    if (!parsed) return bad_value(path, parsed.error().message);
    return Json(parsed->to_string());
  }

  static Result<Json> strings(const Json& value, const Path& path) {
    if (!value.is_array()) return wrong_type(path, "a list of strings", value);
    for (const Json& one : *value.if_array()) {
      if (!one.is_string()) return wrong_type(path, "a list of strings", one);
    }
    return value;
  }

  Fill fill_;
  std::size_t values_max_;
  std::size_t values_ = 0;
  std::vector<std::string> unknown_;
};

/// A document of a type that was made at run time names its kind itself; validation checks it.
Outcome check_named(const Type& type, const Json& document) {
  const std::string_view kind = document.string_at({"kind"});
  const std::string_view api_version = document.string_at({"apiVersion"});
  if (!document.is_object()) return {};
  for (const auto& [value, member] : {std::pair(kind, "Kind"), std::pair(api_version, "apiVersion")}) {
    if (!value.empty()) continue;
    constexpr std::size_t kShownBytesMax = 256;
    return make_error(ErrorCode::kBadRequest, "Object '{}' is missing in '{}'", member,
                      to_text(document).substr(0, kShownBytesMax));
  }
  if (api_version == type.api_version()) return {};
  return make_error(ErrorCode::kBadRequest,
                    "the API version in the data ({}) does not match the expected API version ({})", api_version,
                    type.api_version());
}

Result<TypedDocument> read_derived(const Type& type, const Json& document, const Json* canonical, Fill fill) {
  SPILLWAY_TRY_VOID(check_named(type, document));
  Reader reader(fill, type.values_max());
  SPILLWAY_TRY(object, reader.message(type, document, canonical, Path()));
  std::vector<std::string> unknown = reader.take_unknown();
  if (type.trim()) type.trim()(object, unknown);
  return TypedDocument{std::move(object), std::move(unknown), {}};
}

Result<TypedDocument> read(const Type& type, const Json& document, const Json* canonical, Fill fill) {
  if (type.derived()) return read_derived(type, document, canonical, fill);
  const std::string_view kind = document.string_at({"kind"});
  const std::string_view api_version = document.string_at({"apiVersion"});
  if (type.has_type_meta() && !(kind.empty() && api_version.empty())) {
    const Type* named =
        find_kind(api_version.empty() ? type.api_version() : api_version, kind.empty() ? type.kind() : kind);
    if (named != &type) {
      return make_error(ErrorCode::kBadRequest, "the body is a {} of {}, expected a {} of {}",
                        kind.empty() ? type.kind() : kind, api_version.empty() ? type.api_version() : api_version,
                        type.kind(), type.api_version());
    }
  }
  Reader reader(fill, type.values_max());
  SPILLWAY_TRY(object, reader.message(type, document, canonical, Path()));
  for (const auto& [key, value] : {std::pair("apiVersion", type.api_version()), std::pair("kind", type.kind())}) {
    if (type.has_type_meta() && std::as_const(object).string_at({key}) != value) object[key] = value;
  }
  return TypedDocument{std::move(object), reader.take_unknown(), {}};
}

Error refused_body(const Type& type, const Error& error) {
  if (type.derived() && error.at.empty()) return error;
  std::string_view version = type.api_version();
  version.remove_prefix(std::min(version.find('/') + 1, version.size()));
  if (error.code == ErrorCode::kRequestEntityTooLarge) return error;
  return make_error(ErrorCode::kBadRequest, "{} in version \"{}\" cannot be handled as a {}: {}", type.kind(), version,
                    type.kind(), error.text());
}

}  // namespace

Error unrecognized_body(const Type& type, std::string_view why, std::string_view body) {
  constexpr std::size_t kShownBytesMax = 30;
  const std::string_view start = body.substr(0, kShownBytesMax);
  const bool legible =
      start.starts_with('{') && std::ranges::all_of(start, [](char c) { return c >= ' ' && c <= '~'; });
  std::string shown = start.empty() ? "<empty>" : legible ? std::string(start) : std::string();
  if (shown.empty()) {
    for (const char c : start) shown += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return make_error(ErrorCode::kBadRequest, "the object provided is unrecognized (must be of type {}): {} ({}{})",
                    type.kind(), why, shown, start.size() < body.size() ? " ..." : "");
}

Result<TypedDocument> read_body(const Type& type, const Json& document, const Json* canonical) {
  Result<TypedDocument> typed = read(type, document, canonical, Fill::kWhole);
  if (!typed) return refused_body(type, typed.error());
  return typed;
}

Result<TypedDocument> read_body(const Type& type, std::string_view text) {
  std::vector<std::string> duplicates;
  const Result<Json> document = parse_bounded_json(text, &duplicates, 2 * type.values_max());
  if (!document && document.error().code == ErrorCode::kRequestEntityTooLarge) return document.error();
  if (!document) {
    return unrecognized_body(
        type, fmt::format("couldn't get version/kind; json parse error: {}", document.error().text()), text);
  }
  SPILLWAY_TRY(typed, read_body(type, *document));
  typed.duplicate_fields = std::move(duplicates);
  return typed;
}

Result<TypedDocument> read_partial(const Type& type, const Json& document) {
  Result<TypedDocument> typed = read(type, document, nullptr, Fill::kPartial);
  if (!typed) return refused_body(type, typed.error());
  return typed;
}

Result<TypedDocument> read_patched(const Type& type, const Json& document, const Json* canonical) {
  Result<TypedDocument> typed = read(type, document, canonical, Fill::kWhole);
  if (!typed && typed.error().code == ErrorCode::kRequestEntityTooLarge) return typed.error();
  if (!typed) return Error{ErrorCode::kInvalid, typed.error().text(), "patch"};
  return typed;
}

std::vector<std::string> field_warnings(const TypedDocument& document) {
  std::vector<std::string> lines;
  lines.reserve(document.unknown_fields.size() + document.duplicate_fields.size());
  for (const std::string& path : document.unknown_fields) lines.push_back(fmt::format("unknown field \"{}\"", path));
  for (const std::string& path : document.duplicate_fields)
    lines.push_back(fmt::format("duplicate field \"{}\"", path));
  return lines;
}

std::string strict_text(const TypedDocument& document) {
  const std::vector<std::string> lines = field_warnings(document);
  return lines.empty() ? std::string() : fmt::format("strict decoding error: {}", fmt::join(lines, ", "));
}

}  // namespace spillway::api
