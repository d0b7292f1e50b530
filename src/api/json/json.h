// A JSON document as a value, of which objects, patches and schemas are made below the HTTP layer.
// Copies share their lists and objects until one of them is changed, so a copy costs no more than a pointer. A
// reference or pointer for changes is valid until its document is copied; get it anew afterwards. Objects keep their
// members sorted by key, so equality, output and hashes do not depend on the order of input. Integers are exact over
// the whole range of int64 and uint64; nothing goes through a double unless it has a fraction. Thread: any (a plain
// value). Source: RFC 8259; spec "API server contract", 5.1.
#pragma once

#include "base/copy_on_write.h"
#include "base/error.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::api {

class Json;

/// Members of a JSON object, sorted bytewise by key, keys unique.
class JsonObject {
 public:
  struct Member;
  using Members = std::vector<Member>;

  JsonObject();
  JsonObject(std::initializer_list<std::pair<std::string_view, Json>> members);
  JsonObject(const JsonObject& other);
  JsonObject(JsonObject&& other) noexcept;
  JsonObject& operator=(const JsonObject& other);
  JsonObject& operator=(JsonObject&& other) noexcept;
  ~JsonObject();

  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);

  bool contains(std::string_view key) const { return find(key) != nullptr; }

  /// The member, made null first if it was absent.
  Json& operator[](std::string_view key);
  /// False if there was no such member.
  bool erase(std::string_view key);

  std::size_t size() const;
  bool empty() const;
  Members::const_iterator begin() const;
  Members::const_iterator end() const;
  Members::iterator begin();
  Members::iterator end();

  /// Takes members in any order; of equal keys the last wins. Returns the keys that were given more than once.
  std::vector<std::string> assign_unsorted(Members members);

  friend bool operator==(const JsonObject& a, const JsonObject& b);

 private:
  Members members_;
};

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = JsonObject;
  enum class Type { kNull, kBool, kInt, kUint, kDouble, kString, kArray, kObject };

  Json() = default;

  Json(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): JSON literals read as data

  Json(bool value) : value_(value) {}  // NOLINT(google-explicit-constructor)

  Json(int value) : value_(std::int64_t{value}) {}  // NOLINT(google-explicit-constructor)

  Json(std::int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor)

  /// Values that fit int64 are kept as int64, so that equal numbers are equal values.
  Json(std::uint64_t value);  // NOLINT(google-explicit-constructor)

  Json(double value) : value_(value) {}  // NOLINT(google-explicit-constructor)

  Json(std::string value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT(google-explicit-constructor)

  Json(const char* value) : value_(std::string(value)) {}  // NOLINT(google-explicit-constructor)

  Json(Array value);  // NOLINT(google-explicit-constructor)

  Json(Object value);  // NOLINT(google-explicit-constructor)

  static Json object(std::initializer_list<std::pair<std::string_view, Json>> members = {}) {
    return Json(Object(members));
  }

  static Json array(std::initializer_list<Json> elements = {}) { return Json(Array(elements)); }

  Type type() const { return static_cast<Type>(value_.index()); }

  bool is_null() const { return type() == Type::kNull; }

  bool is_bool() const { return type() == Type::kBool; }

  /// Any integer, also one above the range of int64.
  bool is_integer() const { return type() == Type::kInt || type() == Type::kUint; }

  bool is_number() const { return is_integer() || type() == Type::kDouble; }

  bool is_string() const { return type() == Type::kString; }

  bool is_array() const { return type() == Type::kArray; }

  bool is_object() const { return type() == Type::kObject; }

  // Access to the value if it is of that type, else nullptr or nullopt. Access to a list or object of a document that
  // is not const is access to change it: it is no longer shared then.
  const std::string* if_string() const { return std::get_if<std::string>(&value_); }

  std::string* if_string() { return std::get_if<std::string>(&value_); }

  const Array* if_array() const {
    const auto* array = std::get_if<CopyOnWrite<Array>>(&value_);
    return array != nullptr ? &array->read() : nullptr;
  }

  Array* if_array() {
    auto* array = std::get_if<CopyOnWrite<Array>>(&value_);
    return array != nullptr ? &array->write() : nullptr;
  }

  const Object* if_object() const {
    const auto* object = std::get_if<CopyOnWrite<Object>>(&value_);
    return object != nullptr ? &object->read() : nullptr;
  }

  Object* if_object() {
    auto* object = std::get_if<CopyOnWrite<Object>>(&value_);
    return object != nullptr ? &object->write() : nullptr;
  }

  std::optional<bool> if_bool() const;
  std::optional<std::int64_t> if_int64() const;    // nullopt also for integers out of range
  std::optional<std::uint64_t> if_uint64() const;  // nullopt also for negative integers
  std::optional<double> if_double() const;         // any number

  /// The member of an object; nullptr if this is no object or has no such member.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  /// The member below a path of keys; nullptr as soon as one is missing.
  const Json* at(std::initializer_list<std::string_view> path) const;
  Json* at(std::initializer_list<std::string_view> path);
  /// The string below a path of keys; empty if it is absent or no string.
  std::string_view string_at(std::initializer_list<std::string_view> path) const;

  /// Makes this an object if it is null, then returns the member, made null if it was absent. Must not be another type.
  Json& operator[](std::string_view key);
  /// Walks and creates objects along the path (a non-object in between is replaced by an object).
  Json& make(std::initializer_list<std::string_view> path);
  /// Removes the member at the end of the path; false if it was absent.
  bool erase(std::initializer_list<std::string_view> path);

  /// True if both share the same list or object: equal without a comparison of the contents.
  bool shares(const Json& other) const;

  friend bool operator==(const Json& a, const Json& b);

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, CopyOnWrite<Array>,
               CopyOnWrite<Object>>
      value_;
};

struct JsonObject::Member {
  std::string key;
  Json value;

  friend bool operator==(const Member&, const Member&) = default;
};

// Here, where Member is complete.
inline std::size_t JsonObject::size() const {
  return members_.size();
}

inline bool JsonObject::empty() const {
  return members_.empty();
}

inline JsonObject::Members::const_iterator JsonObject::begin() const {
  return members_.begin();
}

inline JsonObject::Members::const_iterator JsonObject::end() const {
  return members_.end();
}

inline JsonObject::Members::iterator JsonObject::begin() {
  return members_.begin();
}

inline JsonObject::Members::iterator JsonObject::end() {
  return members_.end();
}

/// Parses one document. kBadRequest: where (byte offset) and what. Nesting deeper than 1,000 is an error.
/// `duplicates`, if given, receives the dotted paths of members that occur twice (the last value wins), at most 100.
Result<Json> parse_json(std::string_view text, std::vector<std::string>* duplicates = nullptr);

/// The type of a value as messages name it: "null", "a string", "a number with a fraction or exponent", "an object".
std::string_view type_phrase(const Json& value);

/// Compact text, members in key order, no final newline.
std::string to_text(const Json& value);
void append_text(const Json& value, std::string& out);
/// Indented by four blanks, as kubectl prints JSON.
std::string to_pretty_text(const Json& value);

}  // namespace spillway::api
