// A kind that a CustomResourceDefinition describes, as one value: its rows in the table of resources, and for each
// version the counterpart of built-in hooks: pruning and defaults, validation, columns, paths of the scale. A changed
// definition makes a new value; the old one lives for as long as a reader holds it.
// Thread: any (immutable). Bounds: kVersionsMax, the sizes of its schemas (policy/structural).
// Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions"; docs/adr/0049.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "api/schema/derived_types.h"
#include "apiserver/resource/kind_hooks.h"
#include "apiserver/resource/resource_registry.h"
#include "policy/structural/printer_columns.h"
#include "policy/structural/structural_schema.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// Bounds: definitions that one server holds, versions of each, and bytes of one (as many as etcd takes of any object).
inline constexpr std::size_t kDefinitionsMax = 500;
inline constexpr std::size_t kVersionsMax = 32;
inline constexpr std::size_t kDefinitionBytesMax = 3U << 19U;
/// Bytes of all definitions together.
inline constexpr std::size_t kDefinitionsBytesMax = 64U << 20U;

/// The paths of the members of an object's scale: ".spec.replicas".
struct ScalePaths {
  std::string spec_replicas;
  std::string status_replicas;
  std::string selector;  // empty: none
};

/// The webhook that converts the versions of a kind.
struct ConversionWebhook {
  api::Json client_config;     // url or service, caBundle
  std::string review_version;  // "v1" or "v1beta1"
};

struct CustomVersion {
  const CustomKind* kind = nullptr;
  std::string api_version;  // "stable.example.com/v1"
  bool served = false;
  bool storage = false;
  bool has_status = false;
  structural::Schema schema;
  std::optional<ScalePaths> scale;
  std::vector<TableColumn> table_columns;                       // the first is Name
  std::vector<std::optional<structural::PrinterColumn>> cells;  // by column, without Name; nullopt: always empty
  std::string deprecation;                                      // warning for clients of the version; empty: none
  /// The type of bodies: metadata are typed, fields unknown to the schema are removed, the rest stays unchanged.
  const api::Type* body = nullptr;
  /// The type by which fields have owners (server-side apply).
  const api::Type* fields = nullptr;

  bool converts() const;
  /// True if a webhook has to convert an object with this apiVersion before it has the form of this version.
  bool needs_webhook(std::string_view object_version) const;
  /// Replaces the name of the stored version by the requested one, and back; nothing else is converted. Objects of a
  /// kind with a conversion webhook stay unchanged (object_converter.h).
  api::Json from_stored(const api::Json& object) const;
  api::Json to_stored(const api::Json& object) const;

  void set_defaults(api::Json& object) const;
  void validate(const api::Json& object, const api::Json* old, api::FieldErrors& errors) const;
  TableRow table_row(const api::Json& object, WallTime now) const;
};

class CustomKind : public std::enable_shared_from_this<CustomKind> {
 public:
  /// The kind of a stored definition. kInvalid: the reason why it cannot be served.
  static Result<CustomKindPtr> make(const api::Json& definition);

  /// Use make().
  CustomKind() = default;
  CustomKind(const CustomKind&) = delete;
  CustomKind& operator=(const CustomKind&) = delete;

  /// "crontabs.stable.example.com"
  std::string_view name() const { return name_; }

  /// Versions that are served.
  std::span<const Resource> rows() const { return {rows_.data(), served_}; }

  /// The version that is stored, served or not.
  const Resource& stored() const { return rows_[stored_]; }

  bool converts() const { return versions_.size() > 1; }

  /// The row of a version of this kind, which lives as long as the kind.
  const Resource& row_of(const CustomVersion& version) const;

  /// Null: versions differ in name and schema alone.
  const ConversionWebhook* webhook() const { return webhook_ ? &*webhook_ : nullptr; }

  const std::deque<CustomVersion>& versions() const { return versions_; }

  /// True if objects that `older` has decoded have another form now.
  bool reshapes(const CustomKind& older) const;

  /// Digest of the definition: equal digests mean equal kinds.
  std::uint64_t digest() const { return digest_; }

  /// True if objects decoded by `older` need no new decoding: only the allowed operations differ.
  bool has_shape_of(const CustomKind& older) const { return shape_ == older.shape_; }

  static std::uint64_t digest_of(const api::Json& definition);
  static std::uint64_t shape_of(const api::Json& definition);

  /// An object from the store, converted to the version that is stored now and pruned by its schema. With a conversion
  /// webhook it keeps its version, and is pruned by the schema of that one.
  api::Json at_rest(api::Json document) const;

 private:
  Outcome read_names(const api::Json& definition);
  void read_conversion(const api::Json& definition);
  Outcome add_version(const api::Json& document);
  void add_columns(CustomVersion& version, const api::Json& document);
  void make_rows();

  std::string name_;
  std::string group_;
  std::string kind_;
  std::string list_kind_;
  std::string plural_;
  std::string singular_;
  std::uint64_t digest_ = 0;
  std::uint64_t shape_ = 0;  // digest_ without the state of deletion
  bool terminating_ = false;
  Scope scope_ = Scope::kNamespaced;
  std::optional<ConversionWebhook> webhook_;
  std::deque<std::string> texts_;  // owns the texts of the next three members
  std::vector<std::string_view> short_names_;
  std::vector<std::string_view> categories_;
  std::vector<SelectableField> fields_;
  api::DerivedTypes types_;
  std::deque<CustomVersion> versions_;
  std::vector<Resource> rows_;  // served versions first
  std::size_t served_ = 0;
  std::size_t stored_ = 0;
};

/// Sorts versions by preference: v2 before v1 before v1beta1 before names without a number.
bool is_preferred_version(std::string_view a, std::string_view b);

}  // namespace spillway::apiserver
