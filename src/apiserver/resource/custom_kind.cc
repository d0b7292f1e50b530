#include "apiserver/resource/custom_kind.h"

#include "api/text/time_text.h"
#include "apiserver/resource/field_types.h"
#include "base/elapsed.h"
#include "base/rng.h"
#include "policy/structural/object_rules.h"
#include "policy/structural/object_shape.h"
#include "policy/structural/printer_columns.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using enum Verb;

constexpr VerbSet kAllOfCustom{kGet, kList, kWatch, kCreate, kUpdate, kPatch, kDelete, kDeleteCollection};
constexpr VerbSet kReadAndWrite{kGet, kPatch, kUpdate};

constexpr Subresource kCustomStatus{SubresourceId::kStatus, "status", kReadAndWrite, {}, {}, {}};
constexpr Subresource kCustomScale{SubresourceId::kScale, "scale", kReadAndWrite, "autoscaling", "v1", "Scale"};
constexpr std::array kStatusOfCustom{kCustomStatus};
constexpr std::array kScaleOfCustom{kCustomScale};
constexpr std::array kBothOfCustom{kCustomScale, kCustomStatus};

constexpr MetadataChecks kCustomMetadata{.standard_finalizers = false};

constexpr std::string_view kNameColumn =
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

constexpr std::string_view kAgeColumn =
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.";

bool flag_at(const Json& document, std::string_view name) {
  const Json* value = document.find(name);
  return value != nullptr && value->if_bool().value_or(false);
}

const Json::Array& list_at(const Json& document, std::initializer_list<std::string_view> path) {
  static const Json::Array none;
  const Json* list = document.at(path);
  return list != nullptr && list->if_array() != nullptr ? *list->if_array() : none;
}

std::span<const Subresource> subresources_of(const CustomVersion& version) {
  if (version.scale && version.has_status) return kBothOfCustom;
  if (version.scale) return kScaleOfCustom;
  if (version.has_status) return kStatusOfCustom;
  return {};
}

/// The number of v1, v1beta2, v2alpha1: 3 for a stable one, 2 beta, 1 alpha, 0 for any other name.
struct VersionNumber {
  int stability = 0;
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
};

std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::size_t digits = 0;
  std::uint64_t number = 0;
  while (digits < text.size() && digits < 9 && text[digits] >= '0' && text[digits] <= '9') {
    number = number * 10 + static_cast<std::uint64_t>(text[digits++] - '0');
  }
  if (digits == 0 || text.front() == '0') return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

VersionNumber number_of(std::string_view name) {
  if (!name.starts_with('v')) return {};
  name.remove_prefix(1);
  const auto major = take_number(name);
  if (!major) return {};
  if (name.empty()) return {3, *major, 0};
  int stability = 0;
  if (name.starts_with("beta")) stability = 2;
  if (name.starts_with("alpha")) stability = 1;
  if (stability == 0) return {};
  name.remove_prefix(stability == 2 ? 4 : 5);
  const auto minor = take_number(name);
  if (!minor || !name.empty()) return {};
  return {stability, *major, *minor};
}

}  // namespace

bool is_preferred_version(std::string_view a, std::string_view b) {
  const VersionNumber one = number_of(a);
  const VersionNumber other = number_of(b);
  if (one.stability != other.stability) return one.stability > other.stability;
  if (one.stability == 0) return a < b;
  if (one.major != other.major) return one.major > other.major;
  return one.minor > other.minor;
}

bool CustomVersion::converts() const {
  return kind->converts();
}

bool CustomVersion::needs_webhook(std::string_view object_version) const {
  return kind->webhook() != nullptr && object_version != api_version;
}

Json CustomVersion::from_stored(const Json& object) const {
  if (!converts() || kind->webhook() != nullptr) return object;
  Json shown = object;
  shown["apiVersion"] = api_version;
  structural::prune(schema, shown);
  structural::apply_defaults(schema, shown);
  return shown;
}

Json CustomVersion::to_stored(const Json& object) const {
  if (!converts() || kind->webhook() != nullptr) return object;
  Json stored = object;
  stored["apiVersion"] = kind->stored().api_version();
  return stored;
}

void CustomVersion::set_defaults(Json& object) const {
  structural::apply_defaults(schema, object);
}

void CustomVersion::validate(const Json& object, const Json* old, api::FieldErrors& errors) const {
  const std::string_view expected = kind->stored().kind;
  if (const std::string_view named = object.string_at({"kind"}); named != expected) {
    errors.invalid("kind", named, fmt::format("must be {}", expected));
  }
  structural::validate_object(schema, object, old, errors);
}

TableRow CustomVersion::table_row(const Json& object, WallTime now) const {
  TableRow row;
  row.cells.emplace_back(object.string_at({"metadata", "name"}));
  for (const std::optional<structural::PrinterColumn>& column : cells) {
    Json cell = column ? structural::printer_cell(*column, object) : Json();
    if (column && column->type == "date" && cell.is_string()) {
      const auto at = api::parse_time(*cell.if_string());
      cell = at ? api::human_duration(elapsed(*at, now)) : "<invalid>";
    }
    row.cells.push_back(std::move(cell));
  }
  return row;
}

Outcome CustomKind::read_names(const Json& definition) {
  const Json* spec = definition.find("spec");
  const Json* accepted = definition.at({"status", "acceptedNames"});
  if (spec == nullptr || accepted == nullptr) return make_error(ErrorCode::kInvalid, "no names have been accepted");
  name_ = definition.string_at({"metadata", "name"});
  group_ = spec->string_at({"group"});
  kind_ = accepted->string_at({"kind"});
  list_kind_ = accepted->string_at({"listKind"});
  if (list_kind_.empty()) list_kind_ = kind_ + "List";
  plural_ = accepted->string_at({"plural"});
  singular_ = accepted->string_at({"singular"});
  scope_ = spec->string_at({"scope"}) == "Cluster" ? Scope::kCluster : Scope::kNamespaced;
  terminating_ = !definition.string_at({"metadata", "deletionTimestamp"}).empty();
  if (group_.empty() || kind_.empty() || plural_.empty()) {
    return make_error(ErrorCode::kInvalid, "group, plural or kind is missing");
  }
  // A changed status must not make one kind's definition serve the objects of another.
  if (name_ != fmt::format("{}.{}", plural_, group_)) {
    return make_error(ErrorCode::kInvalid, "the plural is \"{}\" in the group \"{}\"", plural_, group_);
  }
  const auto keep = [this](const Json& text) -> std::string_view { return texts_.emplace_back(text.string_at({})); };
  for (const Json& text : list_at(*accepted, {"shortNames"})) short_names_.push_back(keep(text));
  for (const Json& text : list_at(*accepted, {"categories"})) categories_.push_back(keep(text));
  return {};
}

void CustomKind::add_columns(CustomVersion& version, const Json& document) {
  const auto keep = [this](std::string_view text) -> std::string_view { return texts_.emplace_back(text); };
  version.table_columns.push_back({"Name", "string", "name", 0, kNameColumn});
  static const Json age = Json::object(
      {{"name", "Age"}, {"type", "date"}, {"description", kAgeColumn}, {"jsonPath", ".metadata.creationTimestamp"}});
  const Json::Array& columns = list_at(document, {"additionalPrinterColumns"});
  for (const Json& column : columns.empty() ? Json::Array{age} : columns) {
    std::string described(column.string_at({"description"}));
    if (described.empty()) {
      described =
          fmt::format("Custom resource definition column (in JSONPath format): {}", column.string_at({"jsonPath"}));
    }
    const Json* priority = column.find("priority");
    version.table_columns.push_back(
        {keep(column.string_at({"name"})), keep(column.string_at({"type"})), keep(column.string_at({"format"})),
         static_cast<std::int32_t>(priority == nullptr ? 0 : priority->if_int64().value_or(0)), keep(described)});
    version.cells.push_back(structural::read_printer_column(column));
  }
}

void CustomKind::read_conversion(const Json& definition) {
  const Json* conversion = definition.at({"spec", "conversion"});
  if (conversion == nullptr || conversion->string_at({"strategy"}) != "Webhook" || versions_.size() < 2) return;
  const Json* client = conversion->at({"webhook", "clientConfig"});
  ConversionWebhook webhook{.client_config = client == nullptr ? Json::object() : *client, .review_version = "v1"};
  // The first version of the list that this server supports, as upstream.
  for (const Json& version : list_at(*conversion, {"webhook", "conversionReviewVersions"})) {
    const std::string_view name = version.string_at({});
    if (name != "v1" && name != "v1beta1") continue;
    webhook.review_version = name;
    break;
  }
  webhook_ = std::move(webhook);
}

Outcome CustomKind::add_version(const Json& document) {
  CustomVersion& version = versions_.emplace_back();
  version.kind = this;
  version.api_version = fmt::format("{}/{}", group_, document.string_at({"name"}));
  version.served = flag_at(document, "served");
  version.storage = flag_at(document, "storage");
  version.has_status = document.at({"subresources", "status"}) != nullptr;
  const Json* schema = document.at({"schema", "openAPIV3Schema"});
  const auto read = schema == nullptr ? std::optional(structural::Schema()) : structural::Schema::reread(*schema);
  if (!read) {
    return make_error(ErrorCode::kInvalid, "the schema of {} is not structural or beyond the bounds",
                      document.string_at({"name"}));
  }
  version.schema = *read;
  if (const Json* scale = document.at({"subresources", "scale"})) {
    version.scale = ScalePaths{std::string(scale->string_at({"specReplicasPath"})),
                               std::string(scale->string_at({"statusReplicasPath"})),
                               std::string(scale->string_at({"labelSelectorPath"}))};
  }
  add_columns(version, document);
  if (flag_at(document, "deprecated")) {
    const std::string_view warning = document.string_at({"deprecationWarning"});
    version.deprecation =
        warning.empty() ? fmt::format("{} {} is deprecated", version.api_version, kind_) : std::string(warning);
  }
  version.body = &types_.make({.name = kind_,
                               .api_version = version.api_version,
                               .kind = kind_,
                               .fields = {{.name = "metadata",
                                           .kind = api::ValueKind::kMessage,
                                           .message = api::find_type("meta/v1.ObjectMeta")}},
                               .open = true,
                               .trim = [known = version.schema](Json& object, std::vector<std::string>& dropped) {
                                 std::vector<std::string> gone = structural::prune(known, object);
                                 dropped.insert(dropped.end(), std::make_move_iterator(gone.begin()),
                                                std::make_move_iterator(gone.end()));
                               }});
  version.fields = &field_type(version.schema, version.api_version, kind_, types_);
  for (const Json& field : list_at(document, {"selectableFields"})) {
    std::string_view path = field.string_at({"jsonPath"});
    if (path.starts_with('.')) path.remove_prefix(1);
    if (path.empty() || std::ranges::find(fields_, path, &SelectableField::name) != fields_.end()) continue;
    fields_.push_back({texts_.emplace_back(path)});
  }
  return {};
}

void CustomKind::make_rows() {
  const auto row_of = [this](const CustomVersion& version) {
    const std::string_view name = std::string_view(version.api_version).substr(group_.size() + 1);
    return Resource{.group = group_,
                    .version = name,
                    .plural = plural_,
                    .singular = singular_,
                    .kind = kind_,
                    .list_kind = list_kind_,
                    .scope = scope_,
                    .verbs = terminating_ ? kAllOfCustom.without(kCreate) : kAllOfCustom,
                    .storage = fmt::format("/registry/{}/{}/", group_, plural_),
                    .short_names = short_names_,
                    .categories = categories_,
                    .subresources = subresources_of(version),
                    .fields = fields_,
                    .status_subresource = version.has_status,
                    .counts_generation = true,
                    .metadata = kCustomMetadata,
                    .custom = &version};
  };
  rows_.reserve(versions_.size());
  for (const bool served : {true, false}) {
    for (const CustomVersion& version : versions_) {
      if (version.served != served) continue;
      if (version.storage) stored_ = rows_.size();
      rows_.push_back(row_of(version));
      if (served) ++served_;
    }
  }
}

Result<CustomKindPtr> CustomKind::make(const Json& definition) {
  auto kind = std::make_shared<CustomKind>();
  SPILLWAY_TRY_VOID(kind->read_names(definition));
  const Json::Array& versions = list_at(definition, {"spec", "versions"});
  const auto stored = std::ranges::count_if(versions, [](const Json& version) { return flag_at(version, "storage"); });
  if (stored != 1) return make_error(ErrorCode::kInvalid, "{} versions are stored, expected one", stored);
  if (versions.size() > kVersionsMax) {
    return make_error(ErrorCode::kInvalid, "{} versions, expected at most {}", versions.size(), kVersionsMax);
  }
  for (const Json& version : versions) SPILLWAY_TRY_VOID(kind->add_version(version));
  kind->read_conversion(definition);
  kind->make_rows();
  kind->digest_ = digest_of(definition);
  kind->shape_ = shape_of(definition);
  return CustomKindPtr(std::move(kind));
}

std::uint64_t CustomKind::digest_of(const Json& definition) {
  const bool deleting = !definition.string_at({"metadata", "deletionTimestamp"}).empty();
  return shape_of(definition) + (deleting ? 1 : 0);
}

std::uint64_t CustomKind::shape_of(const Json& definition) {
  Json parts = Json::object();
  if (const Json* spec = definition.find("spec")) parts["spec"] = *spec;
  if (const Json* names = definition.at({"status", "acceptedNames"})) parts["names"] = *names;
  return fnv1a64(api::to_text(parts));
}

const Resource& CustomKind::row_of(const CustomVersion& version) const {
  return *std::ranges::find(rows_, &version, &Resource::custom);
}

bool CustomKind::reshapes(const CustomKind& older) const {
  const CustomVersion& now = *stored().custom;
  const CustomVersion& before = *older.stored().custom;
  const bool same_fields =
      std::ranges::equal(fields_, older.fields_, {}, &SelectableField::name, &SelectableField::name);
  const bool same_conversion = (webhook() == nullptr) == (older.webhook() == nullptr);
  return !same_fields || !same_conversion || now.api_version != before.api_version ||
         !(now.schema.document() == before.schema.document());
}

Json CustomKind::at_rest(Json document) const {
  const CustomVersion* version = stored().custom;
  if (webhook() != nullptr) {
    const std::string_view own = document.string_at({"apiVersion"});
    const auto known = std::ranges::find(versions_, own, &CustomVersion::api_version);
    if (known != versions_.end()) version = &*known;
  }
  document["apiVersion"] = version->api_version;
  structural::prune(version->schema, document);
  structural::apply_defaults(version->schema, document);
  return document;
}

}  // namespace spillway::apiserver
