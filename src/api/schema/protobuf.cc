#include "api/schema/protobuf.h"

#include "api/json/document_bounds.h"
#include "api/object/meta.h"
#include "api/schema/protobuf_writer.h"
#include "api/schema/typed.h"
#include "api/text/base64.h"
#include "api/text/time_text.h"
#include "base/utf8.h"

#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::string_view kMagic{"k8s\0", 4};
constexpr std::string_view kZeroTime = "0001-01-01T00:00:00Z";
constexpr std::string_view kZeroMicroTime = "0001-01-01T00:00:00.000000Z";
constexpr int kGroupDepthMax = 100;
constexpr std::size_t kUnknownFieldsMax = 8;
constexpr std::int64_t kSecondsMax = std::numeric_limits<std::int64_t>::max() / 2'000'000;

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kGroupEnd = 4, kFixed32 = 5 };

Error malformed(std::string_view why) {
  return make_error(ErrorCode::kBadRequest, "malformed protobuf: {}", why);
}

/// One field in its wire form. `number` and `bytes`: whichever the wire type carries.
struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t value = 0;
  std::string_view bytes;
};

/// The budget of one body, in fields; it also collects the fields that are not in the schema.
class Budget {
 public:
  explicit Budget(std::size_t fields_max = kWireFieldsMax) : left_(fields_max) {}

  Outcome spend(std::size_t fields) {
    if (fields > left_) return too_many_values();
    left_ -= fields;
    return {};
  }

  void record_unknown(std::string_view message, std::uint32_t number) {
    if (unknown_.size() < kUnknownFieldsMax) unknown_.push_back(fmt::format("field {} of {}", number, message));
  }

  std::vector<std::string> take_unknown() { return std::move(unknown_); }

 private:
  std::size_t left_;
  std::vector<std::string> unknown_;
};

class WireReader {
 public:
  WireReader(std::string_view bytes, Budget& budget) : rest_(bytes), budget_(budget) {}

  bool done() const { return rest_.empty(); }

  Result<WireField> next() {
    SPILLWAY_TRY_VOID(budget_.spend(1));
    SPILLWAY_TRY(tag, varint());
    WireField field;
    if (tag >> 3 == 0 || tag >> 3 > std::numeric_limits<std::uint32_t>::max() >> 3) return malformed("field number");
    field.number = static_cast<std::uint32_t>(tag >> 3);
    field.type = static_cast<WireType>(tag & 7);
    switch (field.type) {
      case WireType::kVarint: {
        SPILLWAY_TRY(value, varint());
        field.value = value;
        return field;
      }
      case WireType::kBytes: {
        SPILLWAY_TRY(size, varint());
        SPILLWAY_TRY(bytes, take(size));
        field.bytes = bytes;
        return field;
      }
      case WireType::kFixed64:
      case WireType::kFixed32: {
        SPILLWAY_TRY(bytes, take(field.type == WireType::kFixed64 ? 8 : 4));
        field.bytes = bytes;
        return field;
      }
      case WireType::kGroup:
        SPILLWAY_TRY_VOID(skip_group());
        return field;
      case WireType::kGroupEnd:
        break;
    }
    return malformed("wire type");
  }

  Result<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return malformed("truncated");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return malformed("a varint of more than ten bytes");
  }

 private:
  Result<std::string_view> take(std::uint64_t size) {
    if (size > rest_.size()) return malformed("truncated");
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  /// Skips everything up to the end tag of the group just opened.
  Outcome skip_group() {
    for (int depth = 1; depth > 0;) {
      SPILLWAY_TRY(tag, varint());
      const auto type = static_cast<WireType>(tag & 7);
      if (type == WireType::kGroup) {
        if (++depth > kGroupDepthMax) return malformed("groups nested too deeply");
      } else if (type == WireType::kGroupEnd) {
        --depth;
      } else if (type == WireType::kVarint) {
        SPILLWAY_TRY_VOID(ignore(varint()));
      } else if (type == WireType::kFixed64 || type == WireType::kFixed32) {
        SPILLWAY_TRY_VOID(ignore(take(type == WireType::kFixed64 ? 8 : 4)));
      } else if (type == WireType::kBytes) {
        SPILLWAY_TRY(size, varint());
        SPILLWAY_TRY_VOID(ignore(take(size)));
      } else {
        return malformed("wire type");
      }
    }
    return {};
  }

  template <typename T>
  static Outcome ignore(const Result<T>& result) {
    return result ? Outcome() : Outcome(result.error());
  }

  std::string_view rest_;
  Budget& budget_;
};

Error wrong_wire_type(const Field& field) {
  return malformed(fmt::format("wire type of {}", field.name));
}

Result<Json> text(std::string_view bytes) {
  if (!is_utf8(bytes)) return malformed("a string that is no UTF-8");
  return Json(bytes);
}

/// The fields of a small message whose type is not in the schema's objects, by number.
struct SmallMessage {
  std::optional<std::uint64_t> first;  // varint of field 1
  std::optional<std::uint64_t> second;
  std::string_view first_bytes;
  std::string_view third_bytes;
  std::vector<std::string_view> all_first_bytes;
};

Result<SmallMessage> read_small(std::string_view bytes, Budget& budget) {
  SmallMessage message;
  for (WireReader reader(bytes, budget); !reader.done();) {
    SPILLWAY_TRY(field, reader.next());
    const bool is_bytes = field.type == WireType::kBytes;
    if (!is_bytes && field.type != WireType::kVarint) continue;
    if (field.number == 1 && is_bytes) {
      message.first_bytes = field.bytes;
      message.all_first_bytes.push_back(field.bytes);
    } else if (field.number == 1) {
      message.first = field.value;
    } else if (field.number == 2 && !is_bytes) {
      message.second = field.value;
    } else if (field.number == 3 && is_bytes) {
      message.third_bytes = field.bytes;
    }
  }
  return message;
}

Result<Json> read_time(std::string_view bytes, ValueKind kind, Budget& budget) {
  if (bytes.empty()) return Json(kind == ValueKind::kTime ? kZeroTime : kZeroMicroTime);
  SPILLWAY_TRY(message, read_small(bytes, budget));
  const auto whole = static_cast<std::int64_t>(message.first.value_or(0));
  const std::int64_t nanos = static_cast<std::int32_t>(message.second.value_or(0));
  if (whole > kSecondsMax || whole < -kSecondsMax) return malformed("a time out of range");
  const WallTime time{microseconds(whole * 1'000'000 + (kind == ValueKind::kMicroTime ? nanos / 1'000 : 0))};
  return Json(kind == ValueKind::kTime ? format_time(time) : format_micro_time(time));
}

Result<Json> read_int_or_string(std::string_view bytes, Budget& budget) {
  SPILLWAY_TRY(message, read_small(bytes, budget));
  const std::uint64_t type = message.first.value_or(0);
  if (type == 0) return Json(std::int64_t{static_cast<std::int32_t>(message.second.value_or(0))});
  if (type == 1) return text(message.third_bytes);
  return malformed("an IntOrString that is neither");
}

Result<Json> read_raw_json(std::string_view bytes, Budget& budget) {
  SPILLWAY_TRY(message, read_small(bytes, budget));
  if (message.first_bytes.empty()) return Json();
  return parse_bounded_json(message.first_bytes);
}

Result<Json> read_strings(std::string_view bytes, Budget& budget) {
  SPILLWAY_TRY(message, read_small(bytes, budget));
  Json::Array out;
  for (const std::string_view item : message.all_first_bytes) {
    SPILLWAY_TRY(one, text(item));
    out.push_back(std::move(one));
  }
  return Json(std::move(out));
}

Result<Json> read_quantity(std::string_view bytes, Budget& budget) {
  SPILLWAY_TRY(message, read_small(bytes, budget));
  if (message.all_first_bytes.empty()) return Json("0");
  return text(message.first_bytes);
}

bool is_varint(ValueKind kind) {
  return kind == ValueKind::kBool || kind == ValueKind::kInt32 || kind == ValueKind::kInt64;
}

Json read_varint(ValueKind kind, std::uint64_t value) {
  if (kind == ValueKind::kBool) return Json(value != 0);
  if (kind == ValueKind::kInt32) return Json(std::int64_t{static_cast<std::int32_t>(value)});
  return Json(static_cast<std::int64_t>(value));
}

Outcome read_message(const Type& type, std::string_view bytes, Json& out, Budget& budget);

/// A value that is length-delimited on the wire. `before`: the earlier value of the same field, into which messages are
/// merged.
Result<Json> read_delimited(const Field& field, std::string_view bytes, Json before, Budget& budget) {
  switch (field.kind) {
    case ValueKind::kString:
      return text(bytes);
    case ValueKind::kBytes:
      return Json(encode_base64(bytes));
    case ValueKind::kTime:
    case ValueKind::kMicroTime:
      return read_time(bytes, field.kind, budget);
    case ValueKind::kQuantity:
      return read_quantity(bytes, budget);
    case ValueKind::kIntOrString:
      return read_int_or_string(bytes, budget);
    case ValueKind::kRawJson:
      return read_raw_json(bytes, budget);
    case ValueKind::kStrings:
      return read_strings(bytes, budget);
    case ValueKind::kMessage: {
      if (!before.is_object()) before = Json::object();
      SPILLWAY_TRY_VOID(read_message(*field.message, bytes, before, budget));
      return before;
    }
    case ValueKind::kBool:
    case ValueKind::kInt32:
    case ValueKind::kInt64:
    case ValueKind::kNumber:
      break;
  }
  return wrong_wire_type(field);
}

Result<Json> read_value(const Field& field, const WireField& wire, Json before, Budget& budget) {
  if (is_varint(field.kind)) {
    if (wire.type != WireType::kVarint) return wrong_wire_type(field);
    return read_varint(field.kind, wire.value);
  }
  if (wire.type != WireType::kBytes) return wrong_wire_type(field);
  return read_delimited(field, wire.bytes, std::move(before), budget);
}

Outcome read_map_entry(const Field& field, const WireField& wire, JsonObject::Members& entries, Budget& budget) {
  if (wire.type != WireType::kBytes) return wrong_wire_type(field);
  std::string key;
  Json value = field.kind == ValueKind::kStrings ? Json::array() : Json();  // a list that is left out is empty
  for (WireReader reader(wire.bytes, budget); !reader.done();) {
    SPILLWAY_TRY(part, reader.next());
    if (part.number == 1 && part.type == WireType::kBytes) {
      if (!is_utf8(part.bytes)) return malformed("a key that is no UTF-8");
      key = part.bytes;
    } else if (part.number == 2) {
      SPILLWAY_TRY(read, read_value(field, part, Json(), budget));
      value = std::move(read);
    }
  }
  entries.push_back({std::move(key), std::move(value)});
  return {};
}

Outcome read_list_element(const Field& field, const WireField& wire, Json& list, Budget& budget) {
  if (is_varint(field.kind) && wire.type == WireType::kBytes) {  // packed
    for (WireReader reader(wire.bytes, budget); !reader.done();) {
      SPILLWAY_TRY_VOID(budget.spend(1));
      SPILLWAY_TRY(value, reader.varint());
      list.if_array()->push_back(read_varint(field.kind, value));
    }
    return {};
  }
  SPILLWAY_TRY(value, read_value(field, wire, Json(), budget));
  list.if_array()->push_back(std::move(value));
  return {};
}

/// Adds entries to a map at once: one by one, each would move those behind it.
Outcome add_entries(JsonObject::Members entries, Json& map, Budget& budget) {
  JsonObject::Members all;
  SPILLWAY_TRY_VOID(budget.spend(map.if_object()->size()));
  for (auto& [key, value] : *map.if_object()) all.push_back({std::move(key), std::move(value)});
  std::move(entries.begin(), entries.end(), std::back_inserter(all));
  JsonObject joined;
  joined.assign_unsorted(std::move(all));
  map = Json(std::move(joined));
  return {};
}

Outcome read_message(const Type& type, std::string_view bytes, Json& out, Budget& budget) {
  std::map<const Field*, JsonObject::Members> maps;
  for (WireReader reader(bytes, budget); !reader.done();) {
    SPILLWAY_TRY(wire, reader.next());
    const Field* field = type.find_number(wire.number);
    if (field == nullptr) {
      budget.record_unknown(type.name(), wire.number);
      continue;
    }
    if (field->inlined) {
      if (wire.type != WireType::kBytes) return wrong_wire_type(*field);
      SPILLWAY_TRY_VOID(read_message(*field->message, wire.bytes, out, budget));
      continue;
    }
    Json& slot = out[field->name];
    switch (field->shape) {
      case Shape::kSingle: {
        SPILLWAY_TRY(value, read_value(*field, wire, std::move(slot), budget));
        slot = std::move(value);
        break;
      }
      case Shape::kList:
        if (!slot.is_array()) slot = Json::array();
        SPILLWAY_TRY_VOID(read_list_element(*field, wire, slot, budget));
        break;
      case Shape::kMap:
        if (!slot.is_object()) slot = Json::object();
        SPILLWAY_TRY_VOID(read_map_entry(*field, wire, maps[field], budget));
        break;
    }
  }
  for (auto& [field, entries] : maps) SPILLWAY_TRY_VOID(add_entries(std::move(entries), out[field->name], budget));
  return {};
}

struct Envelope {
  std::string api_version;
  std::string kind;
  std::string_view raw;
};

Result<Envelope> read_envelope(std::string_view body, Budget& budget) {
  if (!is_protobuf(body)) return malformed("the body does not start with k8s\\0");
  Envelope envelope;
  for (WireReader reader(body.substr(kMagic.size()), budget); !reader.done();) {
    SPILLWAY_TRY(field, reader.next());
    if (field.number > 3) continue;
    if (field.type != WireType::kBytes) return malformed("the envelope");
    if (field.number == 2) envelope.raw = field.bytes;
    if (field.number == 3 && !field.bytes.empty()) return malformed("an encoding inside the envelope");
    if (field.number != 1) continue;
    for (WireReader meta(field.bytes, budget); !meta.done();) {
      SPILLWAY_TRY(name, meta.next());
      if (!is_utf8(name.bytes)) return malformed("a kind that is no UTF-8");
      if (name.number == 1) envelope.api_version = name.bytes;
      if (name.number == 2) envelope.kind = name.bytes;
    }
  }
  return envelope;
}

}  // namespace

bool is_protobuf(std::string_view body) {
  return body.starts_with(kMagic);
}

Result<const Type*> protobuf_kind(std::string_view body) {
  Budget budget;
  SPILLWAY_TRY(envelope, read_envelope(body, budget));
  const Type* type = find_kind(envelope.api_version, envelope.kind);
  if (type == nullptr) {
    return make_error(ErrorCode::kBadRequest, "no kind \"{}\" is registered for version \"{}\"", envelope.kind,
                      envelope.api_version);
  }
  return type;
}

Result<Json> read_protobuf(const Type& type, std::string_view body) {
  SPILLWAY_TRY(document, read_protobuf_fields(type, body));
  return std::move(document.object);
}

Result<TypedDocument> read_protobuf_fields(const Type& type, std::string_view body, std::size_t fields_max) {
  if (body == kMagic) return unrecognized_body(type, "empty body", body);
  Budget budget(fields_max);
  SPILLWAY_TRY(envelope, read_envelope(body, budget));
  Json document = Json::object({{"apiVersion", envelope.api_version}, {"kind", envelope.kind}});
  SPILLWAY_TRY_VOID(read_message(type, envelope.raw, document, budget));
  SPILLWAY_TRY(typed, read_body(type, document));
  for (std::string& field : budget.take_unknown()) typed.unknown_fields.push_back(std::move(field));
  return std::move(typed);
}

namespace {

constexpr std::uint32_t kListItems = 2;

/// Reads one item of a list, with a budget of its own.
Result<Json> read_item(const Type& type, std::string_view bytes) {
  Budget budget;
  Json item = Json::object({{"apiVersion", std::string(type.api_version())}, {"kind", std::string(type.kind())}});
  SPILLWAY_TRY_VOID(read_message(type, bytes, item, budget));
  SPILLWAY_TRY(typed, read_body(type, item));
  return std::move(typed.object);
}

Result<Json> read_list(const Type& type, const Envelope& envelope) {
  Budget budget;
  Json meta = Json::object();
  Json::Array items;
  for (WireReader reader(envelope.raw, budget); !reader.done();) {
    SPILLWAY_TRY(field, reader.next());
    if (field.type != WireType::kBytes) return malformed("a list");
    if (field.number == 1) SPILLWAY_TRY_VOID(read_message(*find_type("meta/v1.ListMeta"), field.bytes, meta, budget));
    if (field.number != kListItems) continue;
    SPILLWAY_TRY(item, read_item(type, field.bytes));
    items.push_back(std::move(item));
  }
  for (const std::string_view text : {"continue", "selfLink"}) {
    if (meta.string_at({text}).empty()) meta.erase({text});
  }
  return Json::object({{"apiVersion", envelope.api_version},
                       {"kind", envelope.kind},
                       {"metadata", std::move(meta)},
                       {"items", std::move(items)}});
}

}  // namespace

Result<Json> read_protobuf_answer(std::string_view body) {
  Budget budget;
  SPILLWAY_TRY(envelope, read_envelope(body, budget));
  const Type* type = protobuf_type(envelope.api_version, envelope.kind);
  if (type == nullptr) {
    return make_error(ErrorCode::kBadRequest, "an answer of the kind \"{}\" of \"{}\", which is not known",
                      envelope.kind, envelope.api_version);
  }
  if (is_list_of(*type, envelope.kind)) return read_list(*type, envelope);
  SPILLWAY_TRY(document, read_protobuf(*type, body));
  document["apiVersion"] = envelope.api_version;  // types of discovery have no place for them
  document["kind"] = envelope.kind;
  return std::move(document);
}

Result<ProtobufEvent> read_protobuf_event(std::string_view frame) {
  Budget budget;
  ProtobufEvent event;
  std::string_view object;
  for (WireReader reader(frame, budget); !reader.done();) {
    SPILLWAY_TRY(field, reader.next());
    if (field.number == 1 && field.type == WireType::kBytes) event.type = field.bytes;
    if (field.number != 2 || field.type != WireType::kBytes) continue;
    SPILLWAY_TRY(raw, read_small(field.bytes, budget));
    object = raw.first_bytes;
  }
  SPILLWAY_TRY(document, read_protobuf_answer(object));
  event.object = std::move(document);
  return event;
}

}  // namespace spillway::api
