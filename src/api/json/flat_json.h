// A small JSON document as a list of views into its text, without a tree and without allocations: for bodies that are
// read once and then dropped. Accepts less than JSON: only ASCII in strings and no escapes but
// \" and \\ in keys below "fieldsV1" (which stay as they are spelled: no caller takes recorded fields apart), integers
// alone, at most 128 values. A caller whose document is not accepted parses it in full. Thread: any (pure). Source: RFC
// 8259.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::api {

class FlatJson {
 public:
  enum class Kind : std::uint8_t { kNull, kBool, kInteger, kString, kArray, kObject };

  /// Position of a value in the document; 0 is the document itself.
  using At = std::size_t;

  struct Value {
    Kind kind = Kind::kNull;
    std::uint16_t end = 0;      // position behind it and all that is in it
    std::uint16_t members = 0;  // members of an object or array
    std::string_view key;       // the key, if the value is a member of an object
    std::string_view text;      // the value as it is written; a string without its quotes
  };

  static constexpr std::size_t kValuesMax = 128;

  /// nullopt: malformed, or more than is taken here. The document holds views into `text`.
  static std::optional<FlatJson> parse(std::string_view text);

  const Value& operator[](At at) const { return values_[at]; }

  /// Changes the text of a string, which must outlive the document. The values around it keep their old text.
  void put_text(At at, std::string_view text) { values_[at].text = text; }

  /// The first child of an object or array; the next one is at value.end, until that is its parent's.
  static At first(At parent) { return parent + 1; }

  /// The member of an object; nullopt: there is none. Of equal keys the first.
  std::optional<At> find(At object, std::string_view key) const;

 private:
  static constexpr int kDepthMax = 16;

  class Parser;

  std::array<Value, kValuesMax> values_;
  std::size_t size_ = 0;
};

/// Equal as JSON values, whatever the order of members. False also where members of `a` are repeated, which those of
/// `b` are not, or there are too many.
bool same_value(const FlatJson& a, FlatJson::At at, const FlatJson& b, FlatJson::At other);

}  // namespace spillway::api
