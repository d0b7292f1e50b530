// The wire schema of every served type: fields with their protobuf numbers, JSON names and merge rules. Read once, on
// first use, from the table that is built into the program (schema/api-schema.json), then immutable.
// Thread: any. Source: Kubernetes API reference and published protobuf definitions, 1.32; spec "API server
// contract", 5.
#pragma once

#include "api/json/document_bounds.h"
#include "api/json/json.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::api {

class Type;

/// The type of one value of a field; for lists and maps, of one element.
enum class ValueKind : std::uint8_t {
  kString,
  kBool,
  kInt32,
  kInt64,
  kBytes,        // JSON: base64
  kTime,         // RFC 3339, whole seconds; null when zero
  kMicroTime,    // RFC 3339, six digits; null when zero
  kQuantity,     // "500m"
  kIntOrString,  // 80 or "http"
  kNumber,       // with or without a fraction
  kRawJson,      // any JSON (FieldsV1, RawExtension)
  kStrings,      // a list of strings (ExtraValue)
  kMessage,      // an object described by another Type
};

enum class Shape : std::uint8_t { kSingle, kList, kMap };

/// Ownership of a list under server-side apply.
enum class ListType : std::uint8_t { kAtomic, kSet, kMap };

struct Field {
  std::uint32_t number = 0;  // protobuf
  std::string_view name;     // JSON; of an inlined field: never seen in JSON
  Shape shape = Shape::kSingle;
  ValueKind kind = ValueKind::kString;
  const Type* message = nullptr;  // kMessage only
  bool pointer = false;           // presence matters: a zero value is kept
  bool keep = false;              // written to JSON even when zero or empty
  bool omit_zero = false;         // left out of JSON when zero, although it is a struct in the Go types
  bool required = false;          // as in OpenAPI; validation refuses a document without it
  bool inlined = false;           // its fields are members of the parent's JSON object
  bool or_other = false;          // for kMessage: values that are no object are taken as they are

  // Strategic merge
  std::string_view merge_key;  // lists merged by this key; empty: replaced, unless merge_set
  bool merge_set = false;      // lists of primitives merged as a set
  bool retain_keys = false;
  bool replace = false;  // an object replaced, not merged

  // Server-side apply
  ListType list_type = ListType::kAtomic;
  std::vector<std::string_view> list_keys;  // the keys of a ListType::kMap, in declared order
  bool atomic = false;                      // one owner for the whole map, struct or atomic list
};

/// One message. Lookup costs O(log fields).
class Type {
 public:
  /// "core/v1.Pod".
  std::string_view name() const { return name_; }

  /// "v1" and "Pod" of a type that is a kind; empty for all others.
  std::string_view api_version() const { return api_version_; }

  std::string_view kind() const { return kind_; }

  /// "apps"; empty for the core group and for types that are no kind.
  std::string_view group() const;

  /// Carries kind and apiVersion in JSON.
  bool has_type_meta() const { return !kind_.empty(); }

  /// True: the whole object has one owner under server-side apply, wherever it occurs.
  bool atomic() const { return atomic_; }

  /// Documents have no protobuf form: numbers with a fraction, or whatever a schema of the cluster allows.
  bool json_only() const { return json_only_; }

  /// Values that a document may have.
  std::size_t values_max() const { return values_max_; }

  /// Members that are no field are taken as they are. Under server-side apply objects among them are owned member by
  /// member, everything else as a whole.
  bool open() const { return open_; }

  /// Made at run time (derived_types.h): not in the table.
  bool derived() const { return derived_; }

  /// Removes members from a document that it must not hold; `dropped` receives their paths ("spec.foo").
  using Trim = std::function<void(Json& document, std::vector<std::string>& dropped)>;

  /// Set for a type that was made at run time; may be empty.
  const Trim& trim() const { return trim_; }

  /// The fields as declared; inlined fields are one entry.
  std::span<const Field> fields() const { return fields_; }

  /// The fields by their numbers; inlined fields are one entry.
  std::span<const Field* const> wire_fields() const { return wire_fields_; }

  /// The fields by JSON name, sorted; the fields of inlined messages replace them.
  std::span<const std::pair<std::string_view, const Field*>> json_fields() const { return json_fields_; }

  /// nullptr if there is no such field. Finds the fields of inlined messages too.
  const Field* find(std::string_view json_name) const;
  /// nullptr if there is no such field. Inlined messages are found by their own number.
  const Field* find_number(std::uint32_t number) const;

 private:
  friend class Schema;
  friend class DerivedTypes;

  std::string_view name_;
  std::string_view api_version_;
  std::string_view kind_;
  bool atomic_ = false;
  bool json_only_ = false;
  std::size_t values_max_ = kDocumentValuesMax;
  bool open_ = false;
  bool derived_ = false;
  Trim trim_;
  std::vector<Field> fields_;
  std::vector<const Field*> wire_fields_;
  std::vector<std::pair<std::string_view, const Field*>> json_fields_;
};

/// The type by its name in the table, "core/v1.PodSpec"; nullptr if unknown.
const Type* find_type(std::string_view name);

/// The type by apiVersion and kind: ("v1", "Pod"), ("apps/v1", "Deployment"). DeleteOptions belongs to every group
/// version, Eviction also to policy/v1beta1. nullptr if unknown or if the type is no kind.
const Type* find_kind(std::string_view api_version, std::string_view kind);

}  // namespace spillway::api
