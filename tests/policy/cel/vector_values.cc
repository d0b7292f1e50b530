#include "policy/cel/vector_values.h"

#include "api/text/base64.h"
#include "api/text/duration.h"
#include "base/check.h"
#include "policy/cel/functions.h"
#include "policy/cel/times.h"
#include "policy/cel/url_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace spillway::cel {

namespace {

using api::Json;

template <typename T>
T number_in(const Json& json) {
  if (const std::string* text = json.if_string()) {
    if (*text == "NaN") return static_cast<T>(std::numeric_limits<double>::quiet_NaN());
    if (text->ends_with("Infinity")) {
      const double infinity = std::numeric_limits<double>::infinity();
      return static_cast<T>(text->starts_with('-') ? -infinity : infinity);
    }
    T value{};
    std::from_chars(text->data(), text->data() + text->size(), value);
    return value;
  }
  if constexpr (std::is_same_v<T, double>) {
    return json.if_double().value_or(0);
  } else if constexpr (std::is_signed_v<T>) {
    return json.if_int64().value_or(0);
  } else {
    return json.if_uint64().value_or(0);
  }
}

/// Go's shortest text, with an exponent below 1e-4 and from 1e6 on.
std::string double_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  const double size = std::fabs(value);
  std::array<char, 64> text{};
  const auto shortest = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific);
  const std::string written(text.data(), shortest.ptr);
  const std::size_t mark = written.find('e');
  const int exponent = std::stoi(written.substr(mark + 1));
  const bool plain = size == 0 || (exponent >= -4 && exponent < 6);
  if (!plain) return written;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return {text.data(), end.ptr};
}

Json typed(std::string_view type, Json value) {
  Json made = Json::object();
  made["type"] = Json(std::string(type));
  made["value"] = std::move(value);
  return made;
}

/// The result of a function of texts for the value.
std::string text_by(std::string_view function, bool member, const Value& value) {
  Budget budget(1'000'000);
  for (const Overload& overload : overloads_of(function, member, 1)) {
    if (!fits(overload.parameters[0].kind, value)) continue;
    const Result<Value> text = overload.function({.arguments = {&value, 1}, .budget = budget});
    SPILLWAY_CHECK(text.has_value());
    return std::string(text->string());
  }
  return {};
}

Json list_of_values(const List& list) {
  Json made = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) made.if_array()->push_back(described(list.at(i)));
  return made;
}

Json entries_of(const Map& map) {
  std::vector<std::pair<std::string, Json>> sorted;
  for (std::size_t i = 0; i < map.size(); ++i) {
    Json pair = Json::array();
    pair.if_array()->push_back(described(map.key_at(i)));
    pair.if_array()->push_back(described(map.value_at(i)));
    sorted.emplace_back(api::to_text(pair.if_array()->front()), std::move(pair));
  }
  std::ranges::sort(sorted, {}, &std::pair<std::string, Json>::first);
  Json made = Json::array();
  for (auto& [key, pair] : sorted) made.if_array()->push_back(std::move(pair));
  return made;
}

}  // namespace

Type vector_type(std::string_view text) {
  if (text.starts_with("optional(")) return optional_of(vector_type(text.substr(9, text.size() - 10)));
  if (text.starts_with("list(")) return cel::list_of(vector_type(text.substr(5, text.size() - 6)));
  if (text.starts_with("map(")) {
    const std::size_t comma = text.find(',');
    return map_of(vector_type(text.substr(4, comma - 4)), vector_type(text.substr(comma + 1, text.size() - comma - 2)));
  }
  return parse_type(text);
}

Value vector_value(const Type& type, const Json& json) {
  if (type.kind == TypeKind::kInt) return Value(number_in<std::int64_t>(json));
  if (type.kind == TypeKind::kUint) return Value(number_in<std::uint64_t>(json));
  if (type.kind == TypeKind::kDouble) return Value(number_in<double>(json));
  if (type.kind == TypeKind::kBytes) return Value::bytes(api::decode_base64(*json.if_string()).value());
  if (type.kind == TypeKind::kTimestamp) return Value(parse_moment(*json.if_string()).value());
  if (type.kind == TypeKind::kDuration) return Value(api::parse_duration(*json.if_string()).value());
  if (type.kind == TypeKind::kOptional) {
    const Json::Array& list = *json.if_array();
    return list.empty() ? Value::none() : Value::some(vector_value(type.of[0], list[0]));
  }
  if (type.kind == TypeKind::kList) {
    std::vector<Value> made;
    for (const Json& each : *json.if_array()) made.push_back(vector_value(type.of[0], each));
    return Value(List(std::move(made)));
  }
  if (type.kind == TypeKind::kMap) {
    Map::Entries made;
    for (const auto& [key, value] : *json.if_object()) {
      made.emplace_back(Value::text(key), vector_value(type.of[1], value));
    }
    return Value(Map(std::move(made)));
  }
  return Value::of(json);
}

Json described(const Value& value) {
  if (value.is(Kind::kNull)) {
    Json made = Json::object();
    made["type"] = Json("null");
    return made;
  }
  if (value.is(Kind::kBool)) return typed("bool", Json(value.as<bool>()));
  if (value.is(Kind::kInt)) return typed("int", Json(fmt::format("{}", value.as<std::int64_t>())));
  if (value.is(Kind::kUint)) return typed("uint", Json(fmt::format("{}", value.as<std::uint64_t>())));
  if (value.is(Kind::kDouble)) return typed("double", Json(double_text(value.as<double>())));
  if (value.is(Kind::kString)) return typed("string", Json(std::string(value.string())));
  if (value.is(Kind::kBytes)) return typed("bytes", Json(api::encode_base64(value.as<Bytes>().bytes)));
  if (value.is(Kind::kList)) return typed("list", list_of_values(value.as<List>()));
  if (value.is(Kind::kMap)) return typed("map", entries_of(value.as<Map>()));
  if (value.is(Kind::kTimestamp)) {
    Moment time = value.as<Moment>();
    time.offset_seconds = 0;
    return typed("timestamp", Json(time_text(time)));
  }
  if (value.is(Kind::kDuration)) return typed("duration", Json(seconds_text(value.as<Duration>())));
  if (value.is(Kind::kType)) return typed("type", Json(std::string(value.as<TypeName>().name)));
  if (value.is(Kind::kQuantity)) return typed("kubernetes.Quantity", Json(value.as<Amount>().quantity->to_string()));
  if (value.is(Kind::kUrl)) return typed("kubernetes.URL", Json(value.as<Url>().parts->text));
  if (value.is(Kind::kIp)) return typed("net.IP", Json(text_by("string", false, value)));
  if (value.is(Kind::kCidr)) return typed("net.CIDR", Json(text_by("string", false, value)));
  Json made = Json::object();
  if (value.is(Kind::kOptional)) {
    made["type"] = Json("optional");
    if (value.as<Optional>().value != nullptr) made["value"] = described(*value.as<Optional>().value);
    return made;
  }
  made["type"] = Json(std::string(type_name(value)));
  made["opaque"] = Json(true);
  return made;
}

}  // namespace spillway::cel
