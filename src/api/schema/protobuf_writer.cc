#include "api/schema/protobuf_writer.h"

#include "api/schema/protobuf.h"
#include "api/text/base64.h"
#include "api/text/time_text.h"
#include "base/check.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <span>

namespace spillway::api {
namespace {

constexpr std::string_view kMagic{"k8s\0", 4};
constexpr std::string_view kList = "List";
constexpr std::size_t kFirstBytes = 512;
constexpr std::uint32_t kListItems = 2;

/// Bytes that grow at their front: a message is written before its length, and its length before its tag.
class BackwardBytes {
 public:
  std::size_t size() const { return bytes_.size() - begin_; }

  std::string_view view() const { return std::string_view(bytes_).substr(begin_); }

  void prepend(std::string_view bytes) {
    make_room(bytes.size());
    begin_ -= bytes.size();
    bytes.copy(bytes_.data() + begin_, bytes.size());
  }

  void varint(std::uint64_t value) {
    std::array<char, 10> text{};
    std::size_t length = 0;
    for (; value >= 0x80; value >>= 7U) text[length++] = static_cast<char>((value & 0x7fU) | 0x80U);
    text[length++] = static_cast<char>(value);
    prepend({text.data(), length});
  }

  void number(std::uint32_t field, std::uint64_t value) {
    varint(value);
    varint(std::uint64_t{field} << 3U);
  }

  void text(std::uint32_t field, std::string_view bytes) {
    prepend(bytes);
    close(field, size() - bytes.size());
  }

  /// Length and tag of everything written since size() was `before`.
  void close(std::uint32_t field, std::size_t before) {
    varint(size() - before);
    varint((std::uint64_t{field} << 3U) | 2U);
  }

 private:
  void make_room(std::size_t wanted) {
    if (wanted <= begin_) return;
    std::string larger(std::max(kFirstBytes, 2 * bytes_.size() + wanted), '\0');
    const std::size_t held = size();
    const std::size_t begin = larger.size() - held;
    bytes_.copy(larger.data() + begin, held, begin_);
    bytes_ = std::move(larger);
    begin_ = begin;
  }

  std::string bytes_;
  std::size_t begin_ = 0;
};

void write_fields(const Type& type, const Json& document, BackwardBytes& out);

/// Seconds and nanoseconds; nothing for the zero time.
void write_time(const Json& value, BackwardBytes& out) {
  const std::string* text = value.if_string();
  if (text == nullptr) return;
  const Result<WallTime> time = parse_time(*text);
  if (!time) return;
  const std::int64_t micros = time->time_since_epoch() / microseconds(1);
  std::int64_t whole = micros / 1'000'000;
  if (micros % 1'000'000 < 0) --whole;
  out.number(2, static_cast<std::uint64_t>((micros - whole * 1'000'000) * 1'000));
  out.number(1, static_cast<std::uint64_t>(whole));
}

void write_int_or_string(const Json& value, BackwardBytes& out) {
  const std::string* text = value.if_string();
  out.text(3, text != nullptr ? std::string_view(*text) : std::string_view());
  out.number(2, static_cast<std::uint64_t>(value.if_int64().value_or(0)));
  out.number(1, text != nullptr ? 1 : 0);
}

void write_strings(const Json& value, BackwardBytes& out) {
  if (const Json::Array* items = value.if_array()) {
    for (const Json& item : std::views::reverse(*items)) out.text(1, item.string_at({}));
  }
}

/// What stands behind the tag and the length; `value` is null where a field is absent.
void write_delimited(const Field& field, const Json& value, BackwardBytes& out) {
  switch (field.kind) {
    case ValueKind::kString:
      return out.prepend(value.string_at({}));
    case ValueKind::kBytes:
      if (const auto bytes = decode_base64(value.string_at({}))) out.prepend(*bytes);
      return;
    case ValueKind::kTime:
    case ValueKind::kMicroTime:
      return write_time(value, out);
    case ValueKind::kQuantity:
      return out.text(1, value.is_string() ? value.string_at({}) : "0");
    case ValueKind::kIntOrString:
      return write_int_or_string(value, out);
    case ValueKind::kRawJson:
      if (!value.is_null()) out.text(1, to_text(value));
      return;
    case ValueKind::kStrings:
      return write_strings(value, out);
    case ValueKind::kMessage:
      return write_fields(*field.message, value, out);
    case ValueKind::kBool:
    case ValueKind::kInt32:
    case ValueKind::kInt64:
      break;
  }
  SPILLWAY_CHECK(false);
}

void write_value(std::uint32_t number, const Field& field, const Json& value, BackwardBytes& out) {
  if (field.kind == ValueKind::kBool) return out.number(number, value.if_bool().value_or(false) ? 1 : 0);
  if (field.kind == ValueKind::kInt32 || field.kind == ValueKind::kInt64) {
    return out.number(number, static_cast<std::uint64_t>(value.if_int64().value_or(0)));
  }
  const std::size_t before = out.size();
  write_delimited(field, value, out);
  out.close(number, before);
}

void write_list(const Field& field, const Json& value, BackwardBytes& out) {
  if (const Json::Array* items = value.if_array()) {
    for (const Json& item : std::views::reverse(*items)) write_value(field.number, field, item, out);
  }
}

void write_map(const Field& field, const Json& value, BackwardBytes& out) {
  const Json::Object* entries = value.if_object();
  if (entries == nullptr) return;
  for (const auto& [key, item] : std::ranges::subrange(entries->begin(), entries->end()) | std::views::reverse) {
    const std::size_t before = out.size();
    if (field.kind != ValueKind::kBytes || !item.is_null()) write_value(2, field, item, out);
    out.text(1, key);
    out.close(field.number, before);
  }
}

void write_field(const Field& field, const Json& document, BackwardBytes& out) {
  static const Json kAbsent;
  if (field.inlined) {
    const std::size_t before = out.size();
    write_fields(*field.message, document, out);
    return out.close(field.number, before);
  }
  const Json* found = document.find(field.name);
  const Json& value = found != nullptr ? *found : kAbsent;
  if (field.shape == Shape::kList) return write_list(field, value, out);
  if (field.shape == Shape::kMap) return write_map(field, value, out);
  if (value.is_null() && (field.pointer || field.kind == ValueKind::kBytes || field.kind == ValueKind::kStrings)) {
    return;
  }
  write_value(field.number, field, value, out);
}

void write_fields(const Type& type, const Json& document, BackwardBytes& out) {
  for (const Field* field : type.wire_fields() | std::views::reverse) write_field(*field, document, out);
}

/// What stands around a message, of which `head` is the beginning and `rest_bytes` more follow it.
ProtobufListFrame envelope(std::string_view api_version, std::string_view kind, BackwardBytes head,
                           std::size_t rest_bytes) {
  BackwardBytes tail;
  tail.text(4, {});
  tail.text(3, {});
  head.varint(head.size() + rest_bytes);
  head.varint((2U << 3U) | 2U);
  const std::size_t before = head.size();
  head.text(2, kind);
  head.text(1, api_version);
  head.close(1, before);
  head.prepend(kMagic);
  return {std::string(head.view()), std::string(tail.view())};
}

std::string in_envelope(std::string_view api_version, std::string_view kind, BackwardBytes head,
                        std::string_view rest = {}) {
  ProtobufListFrame frame = envelope(api_version, kind, std::move(head), rest.size());
  frame.head.reserve(frame.head.size() + rest.size() + frame.tail.size());
  frame.head += rest;
  frame.head += frame.tail;
  return std::move(frame.head);
}

}  // namespace

const Type* protobuf_type(std::string_view api_version, std::string_view kind) {
  if (api_version.starts_with("meta.k8s.io/")) {
    return kind.starts_with("PartialObjectMetadata") ? find_type("meta/v1.PartialObjectMetadata") : nullptr;
  }
  if (const Type* type = find_kind(api_version, kind)) return type;
  if (!kind.ends_with(kList)) return nullptr;
  return find_kind(api_version, kind.substr(0, kind.size() - kList.size()));
}

std::string write_protobuf(const Type& type, const Json& document) {
  const std::string_view api_version = document.string_at({"apiVersion"});
  const std::string_view kind = document.string_at({"kind"});
  if (kind.ends_with(kList)) {
    std::string items;
    const Json* listed = document.find("items");
    if (const Json::Array* all = listed != nullptr ? listed->if_array() : nullptr) {
      for (const Json& item : *all) append_protobuf_item(type, item, items);
    }
    const Json* meta = document.find("metadata");
    return write_protobuf_list(api_version, kind, meta != nullptr ? *meta : Json(), items);
  }
  BackwardBytes out;
  write_fields(type, document, out);
  return in_envelope(api_version, kind, std::move(out));
}

void append_protobuf_item(const Type& type, const Json& document, std::string& out) {
  BackwardBytes item;
  write_fields(type, document, item);
  item.close(kListItems, 0);
  out += item.view();
}

std::string write_protobuf_list(std::string_view api_version, std::string_view kind, const Json& meta,
                                std::string_view items) {
  BackwardBytes head;
  write_fields(*find_type("meta/v1.ListMeta"), meta, head);
  head.close(1, 0);
  return in_envelope(api_version, kind, std::move(head), items);
}

ProtobufListFrame protobuf_list_frame(std::string_view api_version, std::string_view kind, const Json& meta,
                                      std::size_t item_bytes) {
  BackwardBytes head;
  write_fields(*find_type("meta/v1.ListMeta"), meta, head);
  head.close(1, 0);
  return envelope(api_version, kind, std::move(head), item_bytes);
}

std::string protobuf_frame(std::string_view event_type, std::string_view object) {
  BackwardBytes out;
  out.text(1, object);
  out.close(2, 0);
  out.text(1, event_type);
  const std::size_t length = out.size();
  const std::array<char, 4> head{static_cast<char>(length >> 24U), static_cast<char>(length >> 16U),
                                 static_cast<char>(length >> 8U), static_cast<char>(length)};
  out.prepend({head.data(), head.size()});
  return std::string(out.view());
}

}  // namespace spillway::api
