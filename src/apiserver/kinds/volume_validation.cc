#include "api/text/names.h"
#include "api/text/quantity.h"
#include "apiserver/kinds/fields.h"
#include "apiserver/kinds/pod.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 8> kHostPathTypes{
    "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", ""};
constexpr std::int64_t kModeMax = 511;  // 0777

bool steps_up(std::string_view path) {
  return path == ".." || path.starts_with("../") || path.ends_with("/..") ||
         path.find("/../") != std::string_view::npos;
}

void validate_mode(const api::Json& source, std::string_view key, const std::string& path, api::FieldErrors& errors) {
  const std::optional<std::int64_t> mode = integer(source, key);
  if (mode && (*mode < 0 || *mode > kModeMax)) {
    errors.invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive");
  }
}

void validate_items(const api::Json& source, const std::string& path, api::FieldErrors& errors) {
  const api::Json::Array& items = elements(source, "items");
  for (std::size_t i = 0; i < items.size() && !errors.full(); ++i) {
    const std::string where = api::index_path(path + ".items", i);
    const std::string_view place = text(items[i], "path");
    if (text(items[i], "key").empty()) errors.required(where + ".key");
    if (place.empty()) {
      errors.required(where + ".path");
    } else if (place.front() == '/' || steps_up(place)) {
      errors.invalid(where + ".path", place, "must be a relative path that does not contain '..'");
    }
    validate_mode(items[i], "mode", where + ".mode", errors);
  }
}

void validate_host_path(const api::Json& source, const std::string& path, api::FieldErrors& errors) {
  const std::string_view place = text(source, "path");
  if (place.empty()) {
    errors.required(path + ".path");
  } else if (steps_up(place)) {
    errors.invalid(path + ".path", place, "must not contain '..'");
  }
  require_one_of(source, "type", path + ".type", kHostPathTypes, errors);
}

void validate_source(std::string_view name, const api::Json& source, const std::string& path,
                     api::FieldErrors& errors) {
  if (name == "emptyDir") {
    const auto limit = api::parse_quantity(text(source, "sizeLimit"));
    if (has(source, "sizeLimit") && limit && limit->sign() < 0) {
      errors.forbidden(path + ".sizeLimit", "SizeLimit field must be a valid resource quantity");
    }
  } else if (name == "hostPath") {
    validate_host_path(source, path, errors);
  } else if (name == "configMap" || name == "secret") {
    const std::string_view key = name == "secret" ? "secretName" : "name";
    if (text(source, key).empty()) errors.required(fmt::format("{}.{}", path, key));
    validate_mode(source, "defaultMode", path + ".defaultMode", errors);
    validate_items(source, path, errors);
  } else if (name == "persistentVolumeClaim" && text(source, "claimName").empty()) {
    errors.required(path + ".claimName");
  }
}

}  // namespace

void validate_volumes(const api::Json& spec, std::string_view path, api::FieldErrors& errors) {
  std::set<std::string_view> names;
  const api::Json::Array& volumes = elements(spec, "volumes");
  for (std::size_t i = 0; i < volumes.size() && !errors.full(); ++i) {
    const std::string where = fmt::format("{}.volumes[{}]", path, i);
    const std::string_view name = text(volumes[i], "name");
    if (name.empty()) {
      errors.required(where + ".name");
    } else if (const auto problems = api::dns1123_label_errors(name); !problems.empty()) {
      require_valid(problems, name, where + ".name", errors);
    } else if (!names.insert(name).second) {
      errors.duplicate(where + ".name", name);
    }
    bool seen = false;
    if (volumes[i].if_object() == nullptr) continue;
    for (const auto& [source, value] : *volumes[i].if_object()) {
      if (source == "name" || !value.is_object()) continue;
      if (seen) {
        errors.forbidden(fmt::format("{}.{}", where, source), "may not specify more than 1 volume type");
        continue;
      }
      seen = true;
      validate_source(source, value, fmt::format("{}.{}", where, source), errors);
    }
    if (!seen) errors.required(where, "must specify a volume type");
  }
}

}  // namespace spillway::apiserver::kinds
