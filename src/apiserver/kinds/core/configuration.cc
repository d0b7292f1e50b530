// ConfigMaps, Secrets and ServiceAccounts.
#include "api/text/base64.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/core/core_tables.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::size_t kDataBytesMax = std::size_t{1024} * 1024;

std::size_t decoded_size(const api::Json& value) {
  const auto bytes = api::decode_base64(value.string_at({}));
  return bytes ? bytes->size() : 0;
}

void validate_keys(const api::Json& object, std::string_view list, api::FieldErrors& errors) {
  const api::Json& entries = value_of(object, list);
  if (entries.if_object() == nullptr) return;
  for (const auto& [key, value] : *entries.if_object()) {
    if (errors.full()) return;
    const std::vector<std::string> problems = config_key_errors(key);
    if (!problems.empty()) require_valid(problems, key, api::key_path(list, key), errors);
  }
}

void validate_config_map(const api::Json& object, api::FieldErrors& errors) {
  validate_keys(object, "data", errors);
  validate_keys(object, "binaryData", errors);
  std::size_t total = 0;
  const api::Json& data = value_of(object, "data");
  const api::Json& binary = value_of(object, "binaryData");
  if (data.if_object() != nullptr) {
    for (const auto& [key, value] : *data.if_object()) {
      total += value.string_at({}).size();
      if (binary.find(key) != nullptr && !errors.full()) {
        errors.invalid(api::key_path("data", key), key, "duplicate of key present in binaryData");
      }
    }
  }
  if (binary.if_object() != nullptr) {
    for (const auto& [key, value] : *binary.if_object()) total += decoded_size(value);
  }
  if (total > kDataBytesMax) errors.too_long("", kDataBytesMax);
}

/// Once `immutable` is true it stays so, and the data cannot change.
void require_frozen(const api::Json& object, const api::Json& old, std::string_view list, api::FieldErrors& errors) {
  if (!(value_of(object, list) == value_of(old, list))) {
    errors.forbidden(list, "field is immutable when `immutable` is set");
  }
}

void validate_freeze(const api::Json& object, const api::Json& old, std::string_view second_list,
                     api::FieldErrors& errors) {
  if (!is_true(old, "immutable")) return;
  if (!is_true(object, "immutable")) errors.forbidden("immutable", "field is immutable when `immutable` is set");
  require_frozen(object, old, "data", errors);
  if (!second_list.empty()) require_frozen(object, old, second_list, errors);
}

void validate_config_map_update(const api::Json& object, const api::Json& old, Endpoint, api::FieldErrors& errors) {
  validate_config_map(object, errors);
  validate_freeze(object, old, "binaryData", errors);
}

void default_secret(api::Json& secret) {
  set_default(secret, "type", "Opaque");
  const api::Json* plain = secret.find("stringData");
  if (plain == nullptr || plain->if_object() == nullptr) return;
  // All entries are inserted at once: one by one, each would move those behind it.
  api::JsonObject::Members entries;
  const api::Json& data = value_of(secret, "data");
  if (data.if_object() != nullptr) entries.assign(data.if_object()->begin(), data.if_object()->end());
  for (const auto& [key, value] : *plain->if_object()) {
    entries.push_back({key, api::encode_base64(value.string_at({}))});
  }
  api::JsonObject joined;
  joined.assign_unsorted(std::move(entries));
  secret["data"] = api::Json(std::move(joined));
  secret.erase({"stringData"});
}

void require_keys(const api::Json& data, std::initializer_list<std::string_view> keys, api::FieldErrors& errors) {
  for (const std::string_view key : keys) {
    if (data.find(key) == nullptr) errors.required(api::key_path("data", key));
  }
}

void validate_json_key(const api::Json& data, std::string_view key, api::FieldErrors& errors) {
  const api::Json* value = data.find(key);
  if (value == nullptr) {
    errors.required(api::key_path("data", key));
    return;
  }
  const auto content = api::decode_base64(value->string_at({}));
  const auto parsed = content ? api::parse_json(*content) : Result<api::Json>(api::Json(false));
  if (!parsed || !(parsed->is_object() || parsed->is_null()))
    errors.invalid(api::key_path("data", key), "<secret contents redacted>", "must be JSON");
}

void validate_secret(const api::Json& secret, api::FieldErrors& errors) {
  validate_keys(secret, "data", errors);
  const api::Json& data = value_of(secret, "data");
  std::size_t total = 0;
  if (data.if_object() != nullptr) {
    for (const auto& [key, value] : *data.if_object()) total += decoded_size(value);
  }
  if (total > kDataBytesMax) errors.too_long("data", kDataBytesMax);
  const std::string_view type = text(secret, "type");
  if (type == "kubernetes.io/basic-auth") {
    if (data.find("username") == nullptr && data.find("password") == nullptr)
      require_keys(data, {"username", "password"}, errors);
  } else if (type == "kubernetes.io/ssh-auth") {
    if (decoded_size(value_of(data, "ssh-privatekey")) == 0) errors.required("data[ssh-privatekey]");
  } else if (type == "kubernetes.io/tls") {
    require_keys(data, {"tls.crt", "tls.key"}, errors);
  } else if (type == "kubernetes.io/dockerconfigjson") {
    validate_json_key(data, ".dockerconfigjson", errors);
  } else if (type == "kubernetes.io/dockercfg") {
    validate_json_key(data, ".dockercfg", errors);
  } else if (type == "kubernetes.io/service-account-token" &&
             secret.string_at({"metadata", "annotations", "kubernetes.io/service-account.name"}).empty()) {
    errors.required("metadata.annotations[kubernetes.io/service-account.name]");
  }
}

void validate_secret_update(const api::Json& secret, const api::Json& old, Endpoint, api::FieldErrors& errors) {
  validate_secret(secret, errors);
  if (text(secret, "type") != text(old, "type")) errors.invalid("type", value_of(secret, "type"), kImmutable);
  validate_freeze(secret, old, {}, errors);
}

/// Keeps only the names of an account's secrets.
void keep_names(api::Json& account) {
  api::Json::Array* secrets = elements(account, "secrets");
  if (secrets == nullptr) return;
  for (api::Json& secret : *secrets) {
    api::Json name = value_of(std::as_const(secret), "name");
    secret = name.is_null() ? api::Json::object() : api::Json::object({{"name", std::move(name)}});
  }
}

void keep_names_update(api::Json& account, const api::Json&, Endpoint) {
  keep_names(account);
}

}  // namespace

Resource component_status_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"cs"};
  const TableDefinition table = component_status_table();
  static const KindHooks kHooks{.columns = table.columns, .table_row = table.row};
  return {.version = "v1",
          .plural = "componentstatuses",
          .singular = "componentstatus",
          .kind = "ComponentStatus",
          .scope = Scope::kCluster,
          .verbs = kMeasured,
          .short_names = kShortNames,
          .hooks = &kHooks};
}

Resource config_map_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"cm"};
  const TableDefinition table = config_map_table();
  static const KindHooks kHooks{.validate_create = validate_config_map,
                                .validate_update = validate_config_map_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.version = "v1",
          .plural = "configmaps",
          .singular = "configmap",
          .kind = "ConfigMap",
          .verbs = kAllVerbs,
          .storage = below("configmaps"),
          .short_names = kShortNames,
          .hooks = &kHooks};
}

Resource secret_kind() {
  static constexpr std::array kFields{SelectableField{"type"}};
  const TableDefinition table = secret_table();
  static const KindHooks kHooks{.set_defaults = default_secret,
                                .validate_create = validate_secret,
                                .validate_update = validate_secret_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.version = "v1",
          .plural = "secrets",
          .singular = "secret",
          .kind = "Secret",
          .verbs = kAllVerbs,
          .storage = below("secrets"),
          .fields = kFields,
          .hooks = &kHooks};
}

Resource service_account_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"sa"};
  static constexpr std::array kSubresources{
      Subresource{SubresourceId::kToken, "token", kCreateOnly, "authentication.k8s.io", "v1", "TokenRequest"}};
  const TableDefinition table = service_account_table();
  static const KindHooks kHooks{.prepare_create = keep_names,
                                .prepare_update = keep_names_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.version = "v1",
          .plural = "serviceaccounts",
          .singular = "serviceaccount",
          .kind = "ServiceAccount",
          .verbs = kAllVerbs,
          .storage = below("serviceaccounts"),
          .short_names = kShortNames,
          .subresources = kSubresources,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
