#include "api/schema/protobuf_writer.h"

#include "api/schema/protobuf.h"
#include "api/text/base64.h"
#include "api/text/time_text.h"
#include "base/check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <ranges>
#include <span>

namespace spillway::api {
namespace {

constexpr std::string_view kProtobufMagic{"k8s\0", 4};
constexpr std::string_view kList = "List";
constexpr std::size_t kFirstBytes = 512;
constexpr std::uint32_t kListItemsField = 2;
constexpr std::array<std::string_view, 4> kDiscoveryKinds{"APIVersions", "APIGroupList", "APIGroup", "APIResourceList"};

/// Bytes that grow at their front: a message is written before its length, and its length before its tag.
class BackwardBytes {
 public:
  explicit BackwardBytes(std::size_t room = kFirstBytes) : bytes_(room, '\0'), begin_(room) {}

  std::size_t size() const { return bytes_.size() - begin_; }

  std::string take() && {
    bytes_.erase(0, begin_);
    return std::move(bytes_);
  }

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
  std::size_t begin_;
};

/// A value of a tree; null where there is none.
class TreeValue {
 public:
  TreeValue() = default;

  explicit TreeValue(const Json& value) : value_(value.is_null() ? nullptr : &value) {}

  bool is_null() const { return value_ == nullptr; }

  std::optional<std::string_view> text() const {
    const std::string* text = value_ != nullptr ? value_->if_string() : nullptr;
    return text != nullptr ? std::optional<std::string_view>(*text) : std::nullopt;
  }

  std::int64_t integer() const { return value_ != nullptr ? value_->if_int64().value_or(0) : 0; }

  bool is_true() const { return value_ != nullptr && value_->if_bool().value_or(false); }

  TreeValue find(std::string_view name) const {
    const Json* found = value_ != nullptr ? value_->find(name) : nullptr;
    return found != nullptr ? TreeValue(*found) : TreeValue();
  }

  std::string raw() const { return to_text(*value_); }

  template <typename Visit>
  void elements_backward(const Visit& visit) const {
    const Json::Array* items = value_ != nullptr ? value_->if_array() : nullptr;
    if (items == nullptr) return;
    for (const Json& item : std::views::reverse(*items)) visit(TreeValue(item));
  }

  template <typename Visit>
  void members_backward(const Visit& visit) const {
    const Json::Object* members = value_ != nullptr ? value_->if_object() : nullptr;
    if (members == nullptr) return;
    for (const auto& [key, item] : std::ranges::subrange(members->begin(), members->end()) | std::views::reverse) {
      visit(std::string_view(key), TreeValue(item));
    }
  }

 private:
  const Json* value_ = nullptr;
};

/// A value of a flat document.
class FlatValue {
 public:
  FlatValue() = default;

  FlatValue(const FlatJson& document, FlatJson::At at)
      : document_(document[at].kind == FlatJson::Kind::kNull ? nullptr : &document), at_(at) {}

  bool is_null() const { return document_ == nullptr; }

  std::optional<std::string_view> text() const {
    return is(FlatJson::Kind::kString) ? std::optional((*document_)[at_].text) : std::nullopt;
  }

  std::int64_t integer() const {
    std::int64_t value = 0;
    if (!is(FlatJson::Kind::kInteger)) return value;
    const std::string_view digits = (*document_)[at_].text;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  bool is_true() const { return is(FlatJson::Kind::kBool) && (*document_)[at_].text == "true"; }

  FlatValue find(std::string_view name) const {
    const auto found = is_null() ? std::nullopt : document_->find(at_, name);
    return found ? FlatValue(*document_, *found) : FlatValue();
  }

  std::string_view raw() const { return (*document_)[at_].text; }

  template <typename Visit>
  void elements_backward(const Visit& visit) const {
    if (is(FlatJson::Kind::kArray)) children_backward([&](FlatJson::At at) { visit(FlatValue(*document_, at)); });
  }

  template <typename Visit>
  void members_backward(const Visit& visit) const {
    if (!is(FlatJson::Kind::kObject)) return;
    children_backward([&](FlatJson::At at) { visit((*document_)[at].key, FlatValue(*document_, at)); });
  }

 private:
  bool is(FlatJson::Kind kind) const { return document_ != nullptr && (*document_)[at_].kind == kind; }

  template <typename Visit>
  void children_backward(const Visit& visit) const {
    std::array<FlatJson::At, FlatJson::kValuesMax> children;  // as many as have been found are set
    std::size_t count = 0;
    for (FlatJson::At at = FlatJson::first(at_); at < (*document_)[at_].end; at = (*document_)[at].end) {
      children.at(count++) = at;
    }
    while (count > 0) visit(children.at(--count));
  }

  const FlatJson* document_ = nullptr;
  FlatJson::At at_ = 0;
};

template <typename V>
void write_fields(const Type& type, V document, BackwardBytes& out);

/// Seconds and nanoseconds; nothing for the zero time.
void write_time(std::optional<std::string_view> text, BackwardBytes& out) {
  if (!text) return;
  const Result<WallTime> time = parse_time(*text);
  if (!time) return;
  const std::int64_t micros = time->time_since_epoch() / microseconds(1);
  std::int64_t whole = micros / 1'000'000;
  if (micros % 1'000'000 < 0) --whole;
  out.number(2, static_cast<std::uint64_t>((micros - whole * 1'000'000) * 1'000));
  out.number(1, static_cast<std::uint64_t>(whole));
}

template <typename V>
void write_int_or_string(V value, BackwardBytes& out) {
  const std::optional<std::string_view> text = value.text();
  out.text(3, text.value_or(std::string_view()));
  out.number(2, static_cast<std::uint64_t>(value.integer()));
  out.number(1, text ? 1 : 0);
}

/// Writes the value of a field behind its tag and length; `value` is null where a field is absent.
template <typename V>
void write_delimited(const Field& field, V value, BackwardBytes& out) {
  switch (field.kind) {
    case ValueKind::kString:
      return out.prepend(value.text().value_or(std::string_view()));
    case ValueKind::kBytes:
      if (const auto bytes = decode_base64(value.text().value_or(std::string_view()))) out.prepend(*bytes);
      return;
    case ValueKind::kTime:
    case ValueKind::kMicroTime:
      return write_time(value.text(), out);
    case ValueKind::kQuantity:
      return out.text(1, value.text().value_or("0"));
    case ValueKind::kIntOrString:
      return write_int_or_string(value, out);
    case ValueKind::kRawJson:
      if (!value.is_null()) out.text(1, value.raw());
      return;
    case ValueKind::kStrings:
      return value.elements_backward([&](V item) { out.text(1, item.text().value_or(std::string_view())); });
    case ValueKind::kMessage:
      return write_fields(*field.message, value, out);
    case ValueKind::kBool:
    case ValueKind::kInt32:
    case ValueKind::kInt64:
    case ValueKind::kNumber:  // types without a protobuf form
      break;
  }
  SPILLWAY_CHECK(false);
}

template <typename V>
void write_value(std::uint32_t number, const Field& field, V value, BackwardBytes& out) {
  if (field.kind == ValueKind::kBool) return out.number(number, value.is_true() ? 1 : 0);
  if (field.kind == ValueKind::kInt32 || field.kind == ValueKind::kInt64) {
    return out.number(number, static_cast<std::uint64_t>(value.integer()));
  }
  const std::size_t before = out.size();
  write_delimited(field, value, out);
  out.close(number, before);
}

template <typename V>
void write_map(const Field& field, V value, BackwardBytes& out) {
  value.members_backward([&](std::string_view key, V item) {
    const std::size_t before = out.size();
    if (field.kind != ValueKind::kBytes || !item.is_null()) write_value(2, field, item, out);
    out.text(1, key);
    out.close(field.number, before);
  });
}

template <typename V>
void write_field(const Field& field, V document, BackwardBytes& out) {
  if (field.inlined) {
    const std::size_t before = out.size();
    write_fields(*field.message, document, out);
    return out.close(field.number, before);
  }
  const V value = document.find(field.name);
  if (field.shape == Shape::kList) {
    return value.elements_backward([&](V item) { write_value(field.number, field, item, out); });
  }
  if (field.shape == Shape::kMap) return write_map(field, value, out);
  if (value.is_null() && (field.pointer || field.kind == ValueKind::kBytes || field.kind == ValueKind::kStrings)) {
    return;
  }
  write_value(field.number, field, value, out);
}

template <typename V>
void write_fields(const Type& type, V document, BackwardBytes& out) {
  for (const Field* field : type.wire_fields() | std::views::reverse) write_field(*field, document, out);
}

void open_envelope(std::string_view api_version, std::string_view kind, BackwardBytes& out) {
  const std::size_t before = out.size();
  out.text(2, kind);
  out.text(1, api_version);
  out.close(1, before);
  out.prepend(kProtobufMagic);
}

/// A whole answer of one object, `room` bytes at first.
template <typename V>
std::string object_bytes(const Type& type, V document, std::size_t room) {
  BackwardBytes out(room);
  out.text(4, {});
  out.text(3, {});
  const std::size_t before = out.size();
  write_fields(type, document, out);
  out.close(2, before);
  const auto name = [&](std::string_view member) { return document.find(member).text().value_or(std::string_view()); };
  open_envelope(name("apiVersion"), name("kind"), out);
  return std::move(out).take();
}

/// The bytes around a message whose beginning is `head` and which has `rest_bytes` more.
ProtobufListFrame envelope(std::string_view api_version, std::string_view kind, BackwardBytes head,
                           std::size_t rest_bytes) {
  BackwardBytes tail;
  tail.text(4, {});
  tail.text(3, {});
  head.varint(head.size() + rest_bytes);
  head.varint((2U << 3U) | 2U);
  open_envelope(api_version, kind, head);
  return {std::string(head.view()), std::string(tail.view())};
}

std::string in_envelope(std::string_view api_version, std::string_view kind, BackwardBytes head,
                        std::string_view rest) {
  ProtobufListFrame frame = envelope(api_version, kind, std::move(head), rest.size());
  frame.head.reserve(frame.head.size() + rest.size() + frame.tail.size());
  frame.head += rest;
  frame.head += frame.tail;
  return std::move(frame.head);
}

}  // namespace

bool is_list_of(const Type& items, std::string_view kind) {
  return kind.ends_with(kList) && !items.name().ends_with(kind);
}

const Type* protobuf_type(std::string_view api_version, std::string_view kind) {
  if (api_version.starts_with("meta.k8s.io/")) {
    return kind.starts_with("PartialObjectMetadata") ? find_type("meta/v1.PartialObjectMetadata") : nullptr;
  }
  if (const Type* type = find_kind(api_version, kind)) return type;
  if (api_version == "v1" && std::ranges::find(kDiscoveryKinds, kind) != kDiscoveryKinds.end())
    return find_type("meta/v1." + std::string(kind));
  if (!kind.ends_with(kList)) return nullptr;
  return find_kind(api_version, kind.substr(0, kind.size() - kList.size()));
}

std::string write_protobuf(const Type& type, const Json& document) {
  const std::string_view api_version = document.string_at({"apiVersion"});
  const std::string_view kind = document.string_at({"kind"});
  if (is_list_of(type, kind)) {
    std::string items;
    const Json* listed = document.find("items");
    if (const Json::Array* all = listed != nullptr ? listed->if_array() : nullptr) {
      for (const Json& item : *all) append_protobuf_item(type, item, items);
    }
    const Json* meta = document.find("metadata");
    return write_protobuf_list(api_version, kind, meta != nullptr ? *meta : Json(), items);
  }
  return object_bytes(type, TreeValue(document), kFirstBytes);
}

std::string write_protobuf(const Type& type, const FlatJson& document) {
  // Names are longer than tags: it is shorter than its text.
  return object_bytes(type, FlatValue(document, 0), document[0].text.size());
}

void append_protobuf_item(const Type& type, const Json& document, std::string& out) {
  BackwardBytes item;
  write_fields(type, TreeValue(document), item);
  item.close(kListItemsField, 0);
  out += item.view();
}

std::string write_protobuf_list(std::string_view api_version, std::string_view kind, const Json& meta,
                                std::string_view items) {
  BackwardBytes head;
  write_fields(*find_type("meta/v1.ListMeta"), TreeValue(meta), head);
  head.close(1, 0);
  return in_envelope(api_version, kind, std::move(head), items);
}

ProtobufListFrame protobuf_list_frame(std::string_view api_version, std::string_view kind, const Json& meta,
                                      std::size_t item_bytes) {
  BackwardBytes head;
  write_fields(*find_type("meta/v1.ListMeta"), TreeValue(meta), head);
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
