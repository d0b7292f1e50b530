// Visits the description of a type and fills a value from a JSON document. The first problem ends it.
// Inside api/ only. Thread: any.
#pragma once

#include "api/codec/json_fields.h"
#include "api/object/selector.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

class Decoder {
 public:
  static constexpr bool kReads = true;

  /// The problem, with its path, once there is one.
  const std::optional<Error>& error() const { return error_; }

  /// Enters the document and describes `value`.
  template <typename T>
  void run(const Json& document, T& value) {
    with_object(document, [&] { describe(*this, value); });
  }

  /// "kind" may be absent (items of lists), but not another one.
  void type_meta(std::string_view api_version, std::string_view kind);

  /// Reads the member into `value`, which is not changed if the member is absent or null. T: the types of read_field(),
  /// and optionals of them; instantiated in json_decoder.cc, because six hundred fields inline it otherwise.
  template <typename T>
  void field(std::string_view name, T& value);

  template <typename T>
  void kept(std::string_view name, T& value) {
    field(name, value);
  }

  void micro_time(std::string_view name, std::optional<WallTime>& value) { field(name, value); }

  /// 12.34 is read as 1234.
  void hundredths(std::string_view name, std::int32_t& value);

  /// An absent selector matches nothing.
  void selector(std::string_view name, LabelSelector& value);

  /// `value` if it is absent in its own field: the member `key` of the first element.
  void first_of(std::string_view name, std::string_view key, std::string& value);

  /// The members `key` of the elements behind the first.
  void rest_of(std::string_view name, std::string_view key, std::vector<std::string>& values);

  /// A described struct in a field of its own.
  template <typename T>
  void object(std::string_view name, T& value) {
    nested(name, [&](Decoder& inner) { describe(inner, value); });
  }

  template <typename T>
  void kept_object(std::string_view name, T& value) {
    object(name, value);
  }

  template <typename T>
  void object(std::string_view name, std::optional<T>& value) {
    nested(name, [&](Decoder& inner) { describe(inner, value.emplace()); });
  }

  template <typename F>
  void nested(std::string_view name, F&& inside) {
    const Json* found = member(name);
    if (found == nullptr) return;
    path_.push_back({name, 0});
    with_object(*found, [&] { inside(*this); });
    path_.pop_back();
  }

  /// A list of described structs; `key` matters to the writer alone.
  template <typename T>
  void list(std::string_view name, std::vector<T>& values, std::string_view /*key*/ = {},
            std::string T::* /*key_member*/ = nullptr) {
    const Json* found = member(name);
    if (found == nullptr) return;
    const Json::Array* array = found->if_array();
    if (array == nullptr) return check(name, unexpected_type("a list", *found));
    values.clear();
    values.reserve(array->size());
    for (const Json& element : *array) {
      path_.push_back({name, values.size() + 1});
      T& value = values.emplace_back();
      if (!element.is_null()) with_object(element, [&] { describe(*this, value); });
      path_.pop_back();
      if (error_) return;
    }
  }

  /// The object being read, for descriptions that read member names.
  const Json::Object& here() const { return *here_; }

 private:
  struct Step {
    std::string_view name;
    std::size_t position = 0;  // in a list, from 1; 0: no list
  };

  template <typename F>
  void with_object(const Json& document, F&& inside) {
    if (error_) return;
    const Json::Object* object = document.if_object();
    if (object == nullptr) return check({}, unexpected_type("an object", document));
    const Json::Object* outer = here_;
    here_ = object;
    inside();
    here_ = outer;
  }

  /// nullptr if absent, null, or something is wrong already.
  const Json* member(std::string_view name) const;
  void check(std::string_view name, FieldOutcome outcome);
  std::string path_to(std::string_view name) const;

  const Json::Object* here_ = nullptr;
  std::vector<Step> path_;
  std::optional<Error> error_;
};

template <typename T>
Result<T> decode_with_description(const Json& document) {
  Decoder decoder;
  T value;
  decoder.run(document, value);
  if (const std::optional<Error>& error = decoder.error()) return *error;
  return value;
}

}  // namespace spillway::api
