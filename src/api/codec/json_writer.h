// Visits the description of a type and writes a value into a JSON object. Zero values are left out. An existing member
// with the same meaning keeps its spelling; members that the description does not name are not changed. Inside api/
// only. Thread: any.
#pragma once

#include "api/codec/json_fields.h"
#include "api/object/selector.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::api {

class Writer {
 public:
  static constexpr bool kReads = false;

  explicit Writer(Json::Object& target) : here_(&target) {}

  void type_meta(std::string_view api_version, std::string_view kind);

  template <typename T>
  void field(std::string_view name, const T& value) {
    write(name, value, Zero::kOmitted);
  }

  /// Written even when zero.
  template <typename T>
  void kept(std::string_view name, const T& value) {
    write(name, value, Zero::kKept);
  }

  void micro_time(std::string_view name, const std::optional<WallTime>& value);

  /// 1234 is written as 12.34.
  void hundredths(std::string_view name, std::int32_t value) {
    (*here_)[name] = value % 100 == 0 ? Json(std::int64_t{value / 100}) : Json(static_cast<double>(value) / 100);
  }

  void selector(std::string_view name, const LabelSelector& value);
  /// [{key: value}] unless the list starts with it already.
  void first_of(std::string_view name, std::string_view key, const std::string& value);

  template <typename T>
  void object(std::string_view name, const T& value) {
    nested(name, [&](Writer& inner) { describe(inner, value); });
  }

  template <typename T>
  void kept_object(std::string_view name, const T& value) {
    enter(name, Zero::kKept, [&](Writer& inner) { describe(inner, value); });
  }

  template <typename T>
  void object(std::string_view name, const std::optional<T>& value) {
    if (!value) {
      drop(name);
    } else {
      enter(name, Zero::kKept, [&](Writer& inner) { describe(inner, *value); });
    }
  }

  template <typename F>
  void nested(std::string_view name, F&& inside) {
    enter(name, Zero::kOmitted, std::forward<F>(inside));
  }

  /// Elements are written over the old element with the same string in member `key`, else (no key) over the one at the
  /// same position.
  template <typename T>
  void list(std::string_view name, const std::vector<T>& values, std::string_view key = {},
            std::string T::* key_member = nullptr) {
    if (values.empty()) return clear_list(name);
    Json::Array old = take_list(name);
    std::vector<bool> used(old.size(), false);
    Json::Array written;
    written.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string* wanted = key_member != nullptr ? &(values[i].*key_member) : nullptr;
      Json element = take_element(old, used, i, key, wanted);
      Writer inner(*element.if_object());
      describe(inner, values[i]);
      written.push_back(std::move(element));
    }
    (*here_)[name] = std::move(written);
  }

  Json::Object& here() { return *here_; }

  /// Removes a member unless it is null.
  void drop(std::string_view name);

 private:
  enum class Zero { kOmitted, kKept };

  /// T: the types of field_to_json(), and optionals of them; instantiated in json_writer.cc.
  template <typename T>
  void write(std::string_view name, const T& value, Zero zero);

  void write(std::string_view name, const ResourceList& value, Zero zero);

  template <typename F>
  void enter(std::string_view name, Zero zero, F&& inside) {
    Json* old = here_->find(name);
    if (old != nullptr && old->is_object()) {
      const bool was_empty = old->if_object()->empty();
      Writer inner(*old->if_object());
      inside(inner);
      if (zero == Zero::kOmitted && !was_empty && old->if_object()->empty()) here_->erase(name);
      return;
    }
    Json::Object fresh;
    Writer inner(fresh);
    inside(inner);
    if (zero == Zero::kKept || !fresh.empty()) (*here_)[name] = Json(std::move(fresh));
  }

  void clear_list(std::string_view name);
  Json::Array take_list(std::string_view name);
  static Json take_element(Json::Array& old, std::vector<bool>& used, std::size_t position, std::string_view key,
                           const std::string* wanted);

  Json::Object* here_;
};

template <typename T>
void write_with_description(const T& value, Json& base) {
  if (!base.is_object()) base = Json::object();
  Writer writer(*base.if_object());
  describe(writer, value);
}

}  // namespace spillway::api
