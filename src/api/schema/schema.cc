#include "api/schema/schema.h"

#include "api/json/json.h"
#include "base/check.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>

namespace spillway::api {

extern const std::string_view kApiSchemaText;  // written at build time from schema/api-schema.json

namespace {

struct GroupRow {
  std::string_view prefix;  // in the names of the table
  std::string_view group;
};

constexpr std::array kGroups = {
    GroupRow{"admissionregistration", "admissionregistration.k8s.io"},
    GroupRow{"apiextensions", "apiextensions.k8s.io"},
    GroupRow{"apiregistration", "apiregistration.k8s.io"},
    GroupRow{"apps", "apps"},
    GroupRow{"authentication", "authentication.k8s.io"},
    GroupRow{"authorization", "authorization.k8s.io"},
    GroupRow{"autoscaling", "autoscaling"},
    GroupRow{"batch", "batch"},
    GroupRow{"certificates", "certificates.k8s.io"},
    GroupRow{"coordination", "coordination.k8s.io"},
    GroupRow{"core", ""},
    GroupRow{"discovery", "discovery.k8s.io"},
    GroupRow{"events", "events.k8s.io"},
    GroupRow{"flowcontrol", "flowcontrol.apiserver.k8s.io"},
    GroupRow{"meta", ""},
    GroupRow{"metrics", "metrics.k8s.io"},
    GroupRow{"networking", "networking.k8s.io"},
    GroupRow{"node", "node.k8s.io"},
    GroupRow{"policy", "policy"},
    GroupRow{"rbac", "rbac.authorization.k8s.io"},
    GroupRow{"scheduling", "scheduling.k8s.io"},
    GroupRow{"storage", "storage.k8s.io"},
};

struct KindOfName {
  std::string_view name;
  ValueKind kind;
};

constexpr std::array kValueKinds = {
    KindOfName{"string", ValueKind::kString},
    KindOfName{"bool", ValueKind::kBool},
    KindOfName{"int32", ValueKind::kInt32},
    KindOfName{"int64", ValueKind::kInt64},
    KindOfName{"bytes", ValueKind::kBytes},
    KindOfName{"meta/v1.Time", ValueKind::kTime},
    KindOfName{"meta/v1.MicroTime", ValueKind::kMicroTime},
    KindOfName{"resource.Quantity", ValueKind::kQuantity},
    KindOfName{"intstr.IntOrString", ValueKind::kIntOrString},
    KindOfName{"number", ValueKind::kNumber},
    KindOfName{"runtime.RawExtension", ValueKind::kRawJson},
    KindOfName{"meta/v1.FieldsV1", ValueKind::kRawJson},
    KindOfName{"authentication/v1.ExtraValue", ValueKind::kStrings},
    KindOfName{"authorization/v1.ExtraValue", ValueKind::kStrings},
    KindOfName{"certificates/v1.ExtraValue", ValueKind::kStrings},
    KindOfName{"meta/v1.Verbs", ValueKind::kStrings},
};

constexpr std::string_view kDeleteOptions = "meta/v1.DeleteOptions";
constexpr std::string_view kMapPrefix = "map<string,";

/// Messages with metadata that only occur inside others, or are a view of them.
bool is_part(std::string_view name) {
  return name == "batch/v1.JobTemplateSpec" || name == "core/v1.PodTemplateSpec" ||
         name == "core/v1.PersistentVolumeClaimTemplate" || name == "meta/v1.PartialObjectMetadata";
}

std::string_view take_word(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

const std::string& string_in(const Json& value) {
  SPILLWAY_CHECK(value.is_string());
  return *value.if_string();
}

}  // namespace

/// The parsed table. The text is part of the program: a mistake in it is a mistake of the program, hence the checks.
class Schema {
 public:
  Schema() {
    const Result<Json> document = parse_json(kApiSchemaText);
    SPILLWAY_CHECK(document.has_value());
    const Json* types = document->find("types");
    SPILLWAY_CHECK(types != nullptr && types->is_object());
    for (const auto& [name, fields] : *types->if_object()) {
      Type& type = types_.emplace_back();
      type.name_ = keep(name);
      by_name_.emplace(type.name_, &type);
    }
    for (const auto& [name, fields] : *types->if_object()) read_fields(*by_name_.at(name), fields);
    for (Type& type : types_) finish(type);
    for (const Json& name : *document->at({"about", "atomicTypes"})->if_array()) {
      by_name_.at(string_in(name))->atomic_ = true;
    }
  }

  const Type* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found != by_name_.end() ? found->second : nullptr;
  }

  const Type* find_kind(std::string_view api_version, std::string_view kind) const {
    if (kind == "DeleteOptions") return api_version.empty() ? nullptr : find(kDeleteOptions);
    if (api_version == "policy/v1beta1" && kind == "Eviction") api_version = "policy/v1";
    const auto found = by_kind_.find(std::pair(api_version, kind));
    return found != by_kind_.end() ? found->second : nullptr;
  }

 private:
  std::string_view keep(std::string_view text) { return *strings_.emplace(text).first; }

  void read_fields(Type& type, const Json& rows) {
    SPILLWAY_CHECK(rows.is_array());
    type.fields_.reserve(rows.if_array()->size());
    for (const Json& row : *rows.if_array()) {
      SPILLWAY_CHECK(row.is_array() && row.if_array()->size() >= 3);
      const Json::Array& cells = *row.if_array();
      Field field;
      field.number = static_cast<std::uint32_t>(cells[0].if_int64().value_or(0));
      SPILLWAY_CHECK(field.number > 0);
      field.name = keep(string_in(cells[1]));
      std::string_view value_type = string_in(cells[2]);
      if (value_type.starts_with(kMapPrefix)) {
        field.shape = Shape::kMap;
        value_type = value_type.substr(kMapPrefix.size(), value_type.size() - kMapPrefix.size() - 1);
      }
      read_value_type(field, value_type);
      if (cells.size() > 3) read_flags(field, string_in(cells[3]));
      type.fields_.push_back(std::move(field));
    }
  }

  void read_value_type(Field& field, std::string_view name) const {
    for (const KindOfName& row : kValueKinds) {
      if (row.name != name) continue;
      field.kind = row.kind;
      return;
    }
    field.kind = ValueKind::kMessage;
    field.message = by_name_.at(name);
  }

  void read_flags(Field& field, std::string_view flags) {
    while (!flags.empty()) {
      const std::string_view flag = take_word(flags, ' ');
      if (flag == "rep") {
        field.shape = Shape::kList;
      } else if (flag == "ptr") {
        field.pointer = true;
      } else if (flag == "keep") {
        field.keep = field.required = true;
      } else if (flag == "req" || flag == "opt") {
        field.required = flag == "req";
      } else if (flag == "omitzero") {
        field.omit_zero = true;
      } else if (flag == "or") {
        field.or_other = true;
      } else if (flag == "inline") {
        field.inlined = true;
      } else if (flag.starts_with("mk=")) {
        field.merge_key = keep(flag.substr(3));
      } else if (flag == "mset") {
        field.merge_set = true;
      } else if (flag == "retain") {
        field.retain_keys = true;
      } else if (flag == "replace") {
        field.replace = true;
      } else if (flag == "lt=set") {
        field.list_type = ListType::kSet;
      } else if (flag == "atomic" || flag == "lt=atomic") {
        field.atomic = true;
      } else {
        SPILLWAY_CHECK(flag.starts_with("lt=map:"));
        field.list_type = ListType::kMap;
        for (std::string_view keys = flag.substr(7); !keys.empty();) {
          field.list_keys.push_back(keep(take_word(keys, '+')));
        }
      }
    }
  }

  void finish(Type& type) {
    add_json_fields(type, type.json_fields_);
    std::sort(type.json_fields_.begin(), type.json_fields_.end());
    for (const Field& field : type.fields_) type.wire_fields_.push_back(&field);
    std::ranges::sort(type.wire_fields_, {}, [](const Field* field) { return field->number; });
    const bool has_metadata = type.find("metadata") != nullptr && !is_part(type.name_);
    if (!has_metadata && type.name_ != kDeleteOptions) return;
    std::string_view rest = type.name_;
    const std::string_view prefix = take_word(rest, '/');
    const std::string_view version = take_word(rest, '.');
    for (const GroupRow& row : kGroups) {
      if (row.prefix != prefix) continue;
      type.api_version_ = row.group.empty() ? version : keep(fmt::format("{}/{}", row.group, version));
      type.kind_ = rest;
    }
    type.json_only_ = prefix == "apiextensions";
    if (type.json_only_) type.values_max_ = kDefinitionValuesMax;
    SPILLWAY_CHECK(!type.kind_.empty());
    by_kind_.emplace(std::pair(type.api_version_, type.kind_), &type);
  }

  static void add_json_fields(const Type& type, std::vector<std::pair<std::string_view, const Field*>>& out) {
    for (const Field& field : type.fields_) {
      if (field.inlined) {
        add_json_fields(*field.message, out);
      } else {
        out.emplace_back(field.name, &field);
      }
    }
  }

  std::set<std::string, std::less<>> strings_;
  std::deque<Type> types_;
  std::map<std::string_view, Type*> by_name_;
  std::map<std::pair<std::string_view, std::string_view>, const Type*> by_kind_;
};

namespace {

const Schema& schema() {
  static const Schema table;
  return table;
}

}  // namespace

std::string_view Type::group() const {
  const std::size_t slash = api_version_.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version_.substr(0, slash);
}

const Field* Type::find(std::string_view json_name) const {
  const auto found = std::lower_bound(json_fields_.begin(), json_fields_.end(), json_name,
                                      [](const auto& entry, std::string_view name) { return entry.first < name; });
  return found != json_fields_.end() && found->first == json_name ? found->second : nullptr;
}

const Field* Type::find_number(std::uint32_t number) const {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const Field& field) { return field.number == number; });
  return found != fields_.end() ? &*found : nullptr;
}

const Type* find_type(std::string_view name) {
  return schema().find(name);
}

const Type* find_kind(std::string_view api_version, std::string_view kind) {
  return schema().find_kind(api_version, kind);
}

}  // namespace spillway::api
