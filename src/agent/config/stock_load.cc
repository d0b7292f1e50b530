#include "agent/config/stock_load.h"

#include "agent/config/registration_config.h"
#include "agent/config/stock_fields.h"
#include "api/text/duration.h"
#include "base/ascii.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

namespace spillway::agent {
namespace {

using api::Json;
using Fields = std::span<const StockField>;

constexpr std::string_view kStockVersion = "kubelet.config.k8s.io/v1beta1";
constexpr std::string_view kStockKind = "KubeletConfiguration";
constexpr std::string_view kDefaultEvictions =
    R"({"imagefs.available":"15%","imagefs.inodesFree":"5%","memory.available":"100Mi","nodefs.available":"10%",)"
    R"("nodefs.inodesFree":"5%"})";
/// Members of a file that are joined to its directory when they are relative; those of drop-ins are not.
constexpr auto kPaths = std::to_array<std::string_view>(
    {"staticPodPath", "tlsCertFile", "tlsPrivateKeyFile", "resolvConf", "volumePluginDir", "podLogsDir"});

enum class Names { kExact, kAnyCase };

std::string_view go_type(StockType type) {
  switch (type) {
    case StockType::kInt:
      return "int32";
    case StockType::kBool:
    case StockType::kGates:
      return "bool";
    case StockType::kFloat:
      return "float64";
    case StockType::kTextList:
      return "[]string";
    case StockType::kListMap:
      return "map[string][]string";
    case StockType::kObjects:
      return "[]object";
    case StockType::kObject:
      return "object";
    case StockType::kString:
    case StockType::kDuration:
    case StockType::kTextMap:
      return "string";
  }
  return "";
}

std::string json_type(const Json& value) {
  if (value.if_string() != nullptr) return "string";
  if (value.if_bool()) return "bool";
  if (value.if_array() != nullptr) return "array";
  return value.is_object() ? "object" : "number";
}

/// The error in the words of Go's encoding/json.
Error mismatch(const StockField& field, const std::string& found) {
  return Error{ErrorCode::kInvalid,
               fmt::format("json: cannot unmarshal {} into Go struct field KubeletConfiguration.{} of type {}", found,
                           field.name, go_type(field.type)),
               {}};
}

/// Reads values by a table of fields. The result has the members that are given and count.
class Decoder {
 public:
  explicit Decoder(Names names) : names_(names) {}

  Result<Json> object(Fields fields, const Json& value, const std::string& prefix) {
    Json out = Json::object();
    if (!value.is_object()) return out;
    for (const auto& [key, given] : *value.if_object()) {
      const StockField* field = find(fields, key);
      if (field == nullptr) {
        if (prefix.empty() && (key == "apiVersion" || key == "kind")) continue;
        unknown_.push_back(prefix + key);
        continue;
      }
      if (given.is_null()) continue;
      SPILLWAY_TRY(read, member(*field, given, prefix));
      if (counts(*field, read)) {
        out[field->name] = std::move(read);
      } else if (out.find(field->name) != nullptr) {
        out.if_object()->erase(std::string(field->name));
      }
    }
    return out;
  }

  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  const StockField* find(Fields fields, const std::string& key) const {
    if (names_ == Names::kExact) return find_stock_field(fields, key);
    const auto same = [&](const StockField& each) { return equal_ignoring_case(each.name, key); };
    const auto found = std::ranges::find_if(fields, same);
    return found == fields.end() ? nullptr : &*found;
  }

  static bool counts(const StockField& field, const Json& value) {
    if (field.zero == StockZero::kKept) return true;
    if (const std::string* text = value.if_string())
      return !text->empty() && !(field.type == StockType::kDuration && *text == "0s");
    if (const auto on = value.if_bool()) return *on;
    if (const auto number = value.if_int64()) return *number != 0;
    return true;  // an empty list or mapping is not an absent one
  }

  Result<Json> member(const StockField& field, const Json& given, const std::string& prefix) {
    switch (field.type) {
      case StockType::kString:
        if (given.if_string() == nullptr) return mismatch(field, json_type(given));
        return given;
      case StockType::kBool:
        if (!given.if_bool()) return mismatch(field, json_type(given));
        return given;
      case StockType::kInt:
        return integer(field, given);
      case StockType::kFloat:
        if (!given.if_double() && !given.if_int64()) return mismatch(field, json_type(given));
        return given;
      case StockType::kDuration:
        return duration(field, given);
      case StockType::kTextMap:
      case StockType::kGates:
        return mapping(field, given);
      case StockType::kTextList:
      case StockType::kObjects:
        if (given.if_array() == nullptr) return mismatch(field, json_type(given));
        return given;
      case StockType::kListMap:
        if (!given.is_object()) return mismatch(field, json_type(given));
        return given;
      case StockType::kObject:
        if (!given.is_object()) return mismatch(field, json_type(given));
        return object(field.members, given, fmt::format("{}{}.", prefix, field.name));
    }
    return given;
  }

  static Result<Json> integer(const StockField& field, const Json& given) {
    const auto number = given.if_int64();
    if (!number) return mismatch(field, json_type(given));
    constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
    if (*number < kMin || *number > kMax) return mismatch(field, fmt::format("number {}", *number));
    return given;
  }

  static Result<Json> duration(const StockField& field, const Json& given) {
    const auto nanoseconds_given = given.if_int64();
    if (nanoseconds_given && field.name == "flushFrequency")
      return Json(api::format_duration(nanoseconds(*nanoseconds_given)));
    if (given.if_string() == nullptr) return mismatch(field, json_type(given));
    const auto parsed = api::parse_duration(*given.if_string());
    if (!parsed)
      return Error{ErrorCode::kInvalid, fmt::format("time: invalid duration \"{}\"", *given.if_string()), {}};
    return Json(api::format_duration(*parsed));
  }

  static Result<Json> mapping(const StockField& field, const Json& given) {
    if (!given.is_object()) return mismatch(field, json_type(given));
    for (const auto& [key, value] : *given.if_object()) {
      const bool fits = field.type == StockType::kGates ? value.if_bool().has_value() : value.if_string() != nullptr;
      if (!fits) return mismatch(field, json_type(value));
    }
    return given;
  }

  Names names_;
  std::vector<std::string> unknown_;
};

enum class Evictions { kDefault, kNone };

void add_defaults(Fields fields, Json& out) {
  for (const StockField& field : fields) {
    Json* known = out.find(field.name);
    if (field.type == StockType::kObject) {
      if (known == nullptr && field.zero == StockZero::kKept) continue;
      if (known == nullptr) out[field.name] = Json::object();
      add_defaults(field.members, out[field.name]);
    } else if (known == nullptr && !field.fallback.empty()) {
      out[field.name] = api::parse_json(field.fallback).value_or(Json());
    } else if (known == nullptr && field.type == StockType::kDuration && field.zero == StockZero::kAbsent) {
      out[field.name] = "0s";
    }
  }
}

/// `given`: the values of the file, without defaults.
Json with_defaults(Json given, Evictions evictions) {
  const Json* update = given.find("nodeStatusUpdateFrequency");
  if (update != nullptr && given.find("nodeStatusReportFrequency") == nullptr)
    given["nodeStatusReportFrequency"] = Json(*update);
  const Json* parallel = given.find("maxParallelImagePulls");
  if (parallel != nullptr && parallel->if_int64().value_or(0) >= 2 && given.find("serializeImagePulls") == nullptr)
    given["serializeImagePulls"] = false;
  if (evictions == Evictions::kDefault && given.find("evictionHard") == nullptr)
    given["evictionHard"] = api::parse_json(kDefaultEvictions).value_or(Json());
  add_defaults(stock_fields(), given);
  return given;
}

/// The configuration in the form in which it is written: empty lists and mappings of the outermost level are left out.
Json as_written(Json config) {
  std::vector<std::string> empty;
  for (const auto& [key, value] : *config.if_object()) {
    const StockField* field = find_stock_field(stock_fields(), key);
    if (field == nullptr || field->type == StockType::kObject) continue;
    const bool list = value.if_array() != nullptr && value.if_array()->empty();
    const bool mapping = value.if_object() != nullptr && value.if_object()->empty();
    if (list || mapping) empty.push_back(key);
  }
  for (const std::string& key : empty) config.if_object()->erase(key);
  return config;
}

/// nullopt: kind and version are right.
std::optional<std::string> header_error(const StockFile& file) {
  const std::string_view kind = file.value.string_at({"kind"});
  const std::string_view version = file.value.string_at({"apiVersion"});
  if (kind.empty()) return fmt::format("Object 'Kind' is missing in '{}'", file.text);
  if (version.empty()) return fmt::format("Object 'apiVersion' is missing in '{}'", file.text);
  if (kind == kStockKind && version == kStockVersion) return std::nullopt;
  return fmt::format(
      "no kind \"{}\" is registered for version \"{}\" in scheme \"pkg/kubelet/apis/config/scheme/scheme.go:33\"", kind,
      version);
}

void join_path(Json& members, std::string_view key, const std::string& directory) {
  Json* value = members.find(key);
  if (value == nullptr || value->if_string() == nullptr) return;
  const std::string& path = *value->if_string();
  if (!path.empty() && path.front() != '/') *value = Json(directory + "/" + path);
}

void resolve_paths(Json& config, const std::string& file) {
  const std::string directory = file.substr(0, file.rfind('/'));
  for (const std::string_view key : kPaths) join_path(config, key, directory);
  Json* authentication = config.find("authentication");
  Json* certificates = authentication == nullptr ? nullptr : authentication->find("x509");
  if (certificates != nullptr) join_path(*certificates, "clientCAFile", directory);
}

Result<Json> load_file(const StockFile& file, std::string& strict_error) {
  const auto failed = [&](std::string_view why) {
    return Error{
        ErrorCode::kInvalid, fmt::format("failed to load Kubelet config file {}, error {}", file.path, why), {}};
  };
  if (file.text.empty()) return failed(fmt::format("kubelet config file \"{}\" was empty", file.path));
  if (const auto wrong = header_error(file)) return failed("failed to decode: " + *wrong);
  Decoder decoder(Names::kExact);
  auto decoded = decoder.object(stock_fields(), file.value, "");
  if (!decoded) return failed("failed to decode: " + decoded.error().message);
  std::vector<std::string> strict;
  if (!file.repeated.empty()) {
    std::string repeated = "yaml: unmarshal errors:";
    for (const auto& [line, key] : file.repeated)
      repeated += fmt::format("\n  line {}: key \"{}\" already set in map", line, key);
    strict.push_back(std::move(repeated));
  }
  for (const std::string& each : decoder.unknown()) strict.push_back(fmt::format("unknown field \"{}\"", each));
  if (!strict.empty()) strict_error = fmt::format("strict decoding error: {}", fmt::join(strict, ", "));
  Json config = with_defaults(*std::move(decoded), Evictions::kDefault);
  resolve_paths(config, file.path);
  return config;
}

/// RFC 7386; null deletes.
void merge_patch(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Json::object();
  for (const auto& [key, value] : *patch.if_object()) {
    if (value.is_null()) {
      target.if_object()->erase(key);
    } else {
      merge_patch(target[key], value);
    }
  }
}

Result<Json> merge_drop_ins(Json config, const StockSources& sources, Evictions evictions) {
  std::vector<const StockFile*> files;
  for (const StockFile& each : *sources.drop_ins)
    if (each.path.ends_with(".conf")) files.push_back(&each);
  std::ranges::sort(files, {}, [](const StockFile* each) { return each->path; });
  for (const StockFile* file : files) {
    if (const auto wrong = header_error(*file)) {
      return Error{ErrorCode::kInvalid,
                   fmt::format("failed to walk through kubelet dropin directory \"{}\": failed to load kubelet dropin "
                               "file, path: {}, error: {}",
                               sources.drop_in_directory, file->path, *wrong),
                   {}};
    }
    Json merged = as_written(std::move(config));
    merge_patch(merged, file->value);
    Decoder decoder(Names::kAnyCase);
    auto decoded = decoder.object(stock_fields(), merged, "");
    if (!decoded) {
      return Error{ErrorCode::kInvalid,
                   "failed to unmarshal merged JSON into kubelet configuration: " + decoded.error().message,
                   {}};
    }
    config = with_defaults(*std::move(decoded), evictions);
  }
  return config;
}

// Flags.

struct FlagUse {
  std::string name;  // words separated by dashes
  std::optional<std::string> value;
};

FlagUse parse_use(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('-'), text.size()));
  const std::size_t equals = text.find('=');
  FlagUse use{std::string(text.substr(0, equals)), std::nullopt};
  if (equals != std::string_view::npos) use.value = std::string(text.substr(equals + 1));
  std::ranges::replace(use.name, '_', '-');
  return use;
}

/// The member that a flag sets, and the path to it.
struct FlagTarget {
  const StockField* field = nullptr;
  std::vector<std::string> path;
};

bool find_target(Fields fields, std::string_view flag, FlagTarget& target) {
  for (const StockField& field : fields) {
    target.path.emplace_back(field.name);
    target.field = &field;
    if (!field.flag.empty() && field.flag == flag) return true;
    if (!field.members.empty() && find_target(field.members, flag, target)) return true;
    target.path.pop_back();
  }
  return false;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// "a=b:NoSchedule".
Json taint_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string key = text.substr(0, colon);
  const std::size_t equals = key.find('=');
  Json taint = Json::object({{"key", key.substr(0, equals)}});
  if (equals != std::string::npos) taint["value"] = key.substr(equals + 1);
  if (colon != std::string::npos) taint["effect"] = text.substr(colon + 1);
  return taint;
}

/// The value of a flag, in the shape of its member.
Result<Json> value_of_flag(const StockField& field, const FlagUse& use) {
  const std::string text = use.value.value_or(field.type == StockType::kBool ? "true" : "");
  const auto wrong = [&](std::string_view why) {
    return Error{
        ErrorCode::kInvalid, fmt::format("invalid argument \"{}\" for \"--{}\" flag: {}", text, use.name, why), {}};
  };
  switch (field.type) {
    case StockType::kBool:
      if (text != "true" && text != "false") return wrong("expected true or false");
      return Json(text == "true");
    case StockType::kInt: {
      const auto number = api::parse_json(text);
      if (!number || !number->if_int64()) return wrong("invalid syntax");
      return *number;
    }
    case StockType::kFloat:
    case StockType::kString:
      return Json(text);
    case StockType::kDuration: {
      const auto parsed = api::parse_duration(text);
      if (!parsed) return wrong(fmt::format("time: invalid duration \"{}\"", text));
      return Json(api::format_duration(*parsed));
    }
    case StockType::kTextMap:
    case StockType::kListMap:
    case StockType::kGates: {
      const bool compares = use.name == "eviction-hard" || use.name == "eviction-soft";
      Json map = Json::object();
      for (const std::string& each : split(text, ',')) {
        const std::size_t at = each.find(compares ? '<' : '=');
        if (at == std::string::npos) return wrong("expected pairs");
        const std::string value = each.substr(at + 1);
        map[each.substr(0, at)] = field.type == StockType::kGates ? Json(value == "true") : Json(value);
      }
      return map;
    }
    case StockType::kTextList:
    case StockType::kObjects:
    case StockType::kObject: {
      Json list = Json::array();
      for (const std::string& each : split(text, ','))
        list.if_array()->push_back(field.type == StockType::kObjects ? taint_of(each) : Json(each));
      return list;
    }
  }
  return Json(text);
}

/// Adds a value to that of an earlier use; the first use replaces the file's, but for gates.
void put_flag(Json& config, const FlagTarget& target, Json value, bool is_first) {
  Json* place = &config;
  for (const std::string& each : target.path) place = &(*place)[each];
  const bool adds = target.field->type == StockType::kGates || !is_first;
  if (adds && place->is_object() && value.is_object()) {
    for (auto& [key, each] : *value.if_object()) (*place)[key] = std::move(each);
  } else if (adds && place->if_array() != nullptr && value.if_array() != nullptr) {
    for (Json& each : *value.if_array()) place->if_array()->push_back(std::move(each));
  } else {
    *place = std::move(value);
  }
}

Outcome check_labels(std::string_view text) {
  api::StringMap labels;
  for (const std::string& each : split(text, ',')) {
    const std::size_t equals = std::min(each.find('='), each.size());
    labels[each.substr(0, equals)] = each.substr(std::min(equals + 1, each.size()));
  }
  const Outcome checked = check_node_labels(labels);
  if (checked) return {};
  std::string message = checked.error().message;
  // The kubelet breaks the line here.
  constexpr std::string_view kJoint = "; --node-labels in";
  if (const std::size_t at = message.find(kJoint); at != std::string::npos) message.replace(at, 2, "\n");
  return Error{ErrorCode::kInvalid, std::move(message), {}};
}

/// The uses that set a member, in order. An error: the flags cannot be parsed.
Result<std::vector<std::pair<FlagTarget, Json>>> parse_flags(const std::vector<std::string>& flags) {
  std::vector<std::pair<FlagTarget, Json>> values;
  std::string labels;
  for (const std::string& each : flags) {
    const FlagUse use = parse_use(each);
    FlagTarget target;
    if (find_target(stock_fields(), use.name, target)) {
      SPILLWAY_TRY(value, value_of_flag(*target.field, use));
      values.emplace_back(std::move(target), std::move(value));
    } else if (!is_plain_stock_flag(use.name)) {
      return Error{ErrorCode::kInvalid, "unknown flag: --" + use.name, {}};
    } else if (use.name == "node-labels") {
      labels = use.value.value_or("");
    }
  }
  SPILLWAY_TRY_VOID(check_labels(labels));
  return values;
}

/// The defaults of flags differ from those of the file in four places; they hold without a file.
Json without_file() {
  Json config = with_defaults(Json::object(), Evictions::kNone);
  config["authentication"]["anonymous"]["enabled"] = true;
  config["authentication"]["webhook"]["enabled"] = false;
  config["authorization"]["mode"] = "AlwaysAllow";
  config["readOnlyPort"] = 10255;
  return config;
}

StockLoad failure(std::string stage, std::vector<std::string> errors, std::string strict_error = {}) {
  return {.failed_stage = std::move(stage),
          .errors = std::move(errors),
          .strict_error = std::move(strict_error),
          .config = {}};
}

}  // namespace

StockLoad load_as_kubelet(const StockSources& sources) {
  // 1. The command line.
  auto flags = parse_flags(sources.flags);
  if (!flags) return failure("flags", {flags.error().message});
  // 2. The file, then the drop-ins over it, each with defaults.
  std::string strict_error;
  const Evictions evictions = sources.file ? Evictions::kDefault : Evictions::kNone;
  Result<Json> config = sources.file ? load_file(*sources.file, strict_error) : Result<Json>(without_file());
  if (!config) return failure("load", {config.error().message});
  if (sources.drop_ins) config = merge_drop_ins(*std::move(config), sources, evictions);
  if (!config) return failure("merge", {config.error().message}, std::move(strict_error));
  // 3. Apply the flags over it.
  std::vector<const StockField*> used;
  for (auto& [target, value] : *flags) {
    const bool is_first = std::ranges::find(used, target.field) == used.end();
    put_flag(*config, target, std::move(value), is_first);
    used.push_back(target.field);
  }
  // 4. Validate the result.
  std::vector<std::string> errors = validate_as_kubelet(*config, sources.version);
  if (!errors.empty()) return failure("validate", std::move(errors), std::move(strict_error));
  return {.failed_stage = {}, .errors = {}, .strict_error = std::move(strict_error), .config = as_written(*config)};
}

}  // namespace spillway::agent
