#include "api/json/json.h"

#include "api/json/indented_text.h"
#include "base/check.h"
#include "base/json_string.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

namespace spillway::api {
namespace {

constexpr std::size_t kKubectlIndent = 4;

template <typename T>
void append_number(T value, std::string& out) {
  std::array<char, 32> buffer;
  const auto [end, ec] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  SPILLWAY_CHECK(ec == std::errc{});
  out.append(buffer.data(), end);
}

void newline(std::size_t blanks, std::string& out) {
  out += '\n';
  out.append(blanks, ' ');
}

/// `indent`: blanks per level; 0: all in one line.
void append(const Json& value, std::size_t indent, std::size_t depth, std::string& out) {
  const bool pretty = indent > 0;
  switch (value.type()) {
    case Json::Type::kNull:
      out += "null";
      return;
    case Json::Type::kBool:
      out += *value.if_bool() ? "true" : "false";
      return;
    case Json::Type::kInt:
      append_number(*value.if_int64(), out);
      return;
    case Json::Type::kUint:
      append_number(*value.if_uint64(), out);
      return;
    case Json::Type::kDouble:
      if (const double number = *value.if_double(); std::isfinite(number)) {
        append_number(number, out);
      } else {
        out += "null";
      }
      return;
    case Json::Type::kString:
      append_json_string(*value.if_string(), out);
      return;
    case Json::Type::kArray: {
      out += '[';
      bool first = true;
      for (const Json& element : *value.if_array()) {
        if (!first) out += ',';
        first = false;
        if (pretty) newline((depth + 1) * indent, out);
        append(element, indent, depth + 1, out);
      }
      if (pretty && !first) newline(depth * indent, out);
      out += ']';
      return;
    }
    case Json::Type::kObject: {
      out += '{';
      bool first = true;
      for (const auto& [key, member] : *value.if_object()) {
        if (!first) out += ',';
        first = false;
        if (pretty) newline((depth + 1) * indent, out);
        append_json_string(key, out);
        out += pretty ? ": " : ":";
        append(member, indent, depth + 1, out);
      }
      if (pretty && !first) newline(depth * indent, out);
      out += '}';
      return;
    }
  }
}

/// Compares like a.compare(b). Most keys of an object differ in their first character, which needs no call.
int order(std::string_view a, std::string_view b) {
  if (!a.empty() && !b.empty() && a[0] != b[0])
    return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]) ? -1 : 1;
  return a.compare(b);
}

auto lower_bound(auto& members, std::string_view key) {
  return std::lower_bound(members.begin(), members.end(), key,
                          [](const JsonObject::Member& m, std::string_view k) { return order(m.key, k) < 0; });
}

/// The value of that member; nullptr: there is none.
auto find_value(auto& members, std::string_view key) -> decltype(&members.begin()->value) {
  std::size_t begin = 0;
  std::size_t end = members.size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    const int is = order(members[middle].key, key);
    if (is == 0) return &members[middle].value;
    if (is < 0) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return nullptr;
}

}  // namespace

JsonObject::JsonObject() = default;

JsonObject::JsonObject(std::initializer_list<std::pair<std::string_view, Json>> members) {
  members_.reserve(members.size());
  for (const auto& [key, value] : members) (*this)[key] = value;
}

JsonObject::JsonObject(const JsonObject& other) = default;
JsonObject::JsonObject(JsonObject&& other) noexcept = default;
JsonObject& JsonObject::operator=(const JsonObject& other) = default;
JsonObject& JsonObject::operator=(JsonObject&& other) noexcept = default;
JsonObject::~JsonObject() = default;

const Json* JsonObject::find(std::string_view key) const {
  return find_value(members_, key);
}

Json* JsonObject::find(std::string_view key) {
  return find_value(members_, key);
}

Json& JsonObject::operator[](std::string_view key) {
  const auto it = lower_bound(members_, key);
  if (it != members_.end() && it->key == key) return it->value;
  return members_.insert(it, Member{std::string(key), Json()})->value;
}

bool JsonObject::erase(std::string_view key) {
  const auto it = lower_bound(members_, key);
  if (it == members_.end() || it->key != key) return false;
  members_.erase(it);
  return true;
}

std::vector<std::string> JsonObject::assign_unsorted(Members members) {
  const auto out_of_order = [](const Member& a, const Member& b) { return a.key >= b.key; };
  if (std::adjacent_find(members.begin(), members.end(), out_of_order) == members.end()) {
    members_ = std::move(members);
    return {};
  }
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&members](std::size_t a, std::size_t b) {
    const int keys = members[a].key.compare(members[b].key);
    return keys != 0 ? keys < 0 : a < b;
  });
  std::vector<std::string> repeated;
  members_.clear();
  members_.reserve(members.size());
  for (const std::size_t i : order) {
    if (members_.empty() || members_.back().key != members[i].key) {
      members_.push_back(std::move(members[i]));
      continue;
    }
    if (repeated.empty() || repeated.back() != members[i].key) repeated.push_back(members[i].key);
    members_.back().value = std::move(members[i].value);
  }
  return repeated;
}

bool operator==(const JsonObject& a, const JsonObject& b) {
  return a.members_ == b.members_;
}

Json::Json(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    value_ = static_cast<std::int64_t>(value);
  } else {
    value_ = value;
  }
}

// Empty ones need no room of their own.
Json::Json(Array value) : value_(value.empty() ? CopyOnWrite<Array>() : CopyOnWrite<Array>(std::move(value))) {}

Json::Json(Object value) : value_(value.empty() ? CopyOnWrite<Object>() : CopyOnWrite<Object>(std::move(value))) {}

std::optional<bool> Json::if_bool() const {
  const bool* value = std::get_if<bool>(&value_);
  return value != nullptr ? std::optional<bool>(*value) : std::nullopt;
}

std::optional<std::int64_t> Json::if_int64() const {
  const std::int64_t* value = std::get_if<std::int64_t>(&value_);
  return value != nullptr ? std::optional<std::int64_t>(*value) : std::nullopt;
}

std::optional<std::uint64_t> Json::if_uint64() const {
  if (const std::uint64_t* value = std::get_if<std::uint64_t>(&value_)) return *value;
  const std::int64_t* value = std::get_if<std::int64_t>(&value_);
  if (value == nullptr || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<double> Json::if_double() const {
  if (const double* value = std::get_if<double>(&value_)) return *value;
  if (const std::int64_t* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  if (const std::uint64_t* value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

const Json* Json::find(std::string_view key) const {
  const Object* object = if_object();
  return object != nullptr ? object->find(key) : nullptr;
}

Json* Json::find(std::string_view key) {
  return std::as_const(*this).find(key) != nullptr ? if_object()->find(key) : nullptr;
}

const Json* Json::at(std::initializer_list<std::string_view> path) const {
  const Json* here = this;
  for (const std::string_view key : path) {
    here = here->find(key);
    if (here == nullptr) return nullptr;
  }
  return here;
}

Json* Json::at(std::initializer_list<std::string_view> path) {
  if (std::as_const(*this).at(path) == nullptr) return nullptr;
  Json* here = this;
  for (const std::string_view key : path) here = here->if_object()->find(key);
  return here;
}

std::string_view Json::string_at(std::initializer_list<std::string_view> path) const {
  const Json* found = at(path);
  const std::string* text = found != nullptr ? found->if_string() : nullptr;
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = CopyOnWrite<Object>();
  SPILLWAY_CHECK(is_object());
  return (*if_object())[key];
}

Json& Json::make(std::initializer_list<std::string_view> path) {
  Json* here = this;
  for (const std::string_view key : path) {
    if (!here->is_object()) here->value_ = CopyOnWrite<Object>();
    here = &(*here->if_object())[key];
  }
  return *here;
}

bool Json::erase(std::initializer_list<std::string_view> path) {
  SPILLWAY_CHECK(path.size() > 0);
  if (std::as_const(*this).at(path) == nullptr) return false;
  Json* here = this;
  for (const std::string_view* key = path.begin(); key != path.end() - 1; ++key) here = here->find(*key);
  return here->if_object()->erase(*(path.end() - 1));
}

bool Json::shares(const Json& other) const {
  if (const auto* array = std::get_if<CopyOnWrite<Array>>(&value_)) {
    const auto* its = std::get_if<CopyOnWrite<Array>>(&other.value_);
    return its != nullptr && array->shares(*its);
  }
  const auto* object = std::get_if<CopyOnWrite<Object>>(&value_);
  const auto* its = std::get_if<CopyOnWrite<Object>>(&other.value_);
  return object != nullptr && its != nullptr && object->shares(*its);
}

bool operator==(const Json& a, const Json& b) {
  return a.value_ == b.value_;
}

std::string_view type_phrase(const Json& value) {
  switch (value.type()) {
    case Json::Type::kNull:
      return "null";
    case Json::Type::kBool:
      return "a boolean";
    case Json::Type::kInt:
    case Json::Type::kUint:
      return "a number";
    case Json::Type::kDouble:
      return "a number with a fraction or exponent";
    case Json::Type::kString:
      return "a string";
    case Json::Type::kArray:
      return "a list";
    case Json::Type::kObject:
      return "an object";
  }
  return "";
}

void append_text(const Json& value, std::string& out) {
  append(value, 0, 0, out);
}

/// Written where there is room, and then as long as it is: texts are kept, and do not grow.
std::string to_text(const Json& value) {
  constexpr std::size_t kKeptBytesMax = 64U << 10U;
  thread_local std::string room;
  room.clear();
  append_text(value, room);
  std::string out(room);
  if (room.capacity() > kKeptBytesMax) room = std::string();
  return out;
}

std::string to_pretty_text(const Json& value) {
  return to_indented_text(value, kKubectlIndent);
}

std::string to_indented_text(const Json& value, std::size_t blanks) {
  std::string out;
  append(value, blanks, 0, out);
  return out;
}

}  // namespace spillway::api
