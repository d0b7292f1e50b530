// Volumes of the node, of the API's own objects, and of repositories.
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/pod/rules.h"

#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 8> kHostPathTypes{
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"};
constexpr std::int64_t kFileModeMax = 0777;
constexpr std::int64_t kTokenSecondsMin = 600;
constexpr std::int64_t kTokenSecondsMax = std::int64_t{1} << 32U;
constexpr std::string_view kSamePath = "conflicting duplicate paths";

void check_file_mode(const CheckedField& mode) {
  const std::optional<std::int64_t> bits = mode.integer();
  if (bits && (*bits < 0 || *bits > kFileModeMax)) {
    mode.invalid("must be a number between 0 and 0777 (octal), both inclusive");
  }
}

void check_key_to_path(const CheckedField& item) {
  const CheckedField key = item["key"];
  const CheckedField path = item["path"];
  key.require_text();
  path.require_text();
  path.require_valid(unreserved_path_errors(path.text()));
  check_file_mode(item["mode"]);
}

void check_keyed_volume(const CheckedField& source) {
  check_file_mode(source["defaultMode"]);
  const CheckedField items = source["items"];
  items.each(check_key_to_path);
}

/// Errors are reported at the list's owner: upstream leaves the index out.
void check_downward_file(const CheckedField& owner, const api::Json& file) {
  const std::string at = owner.path();
  const CheckedField item(&file, at, owner.errors());
  const CheckedField path = item["path"];
  path.require_text();
  path.require_valid(unreserved_path_errors(path.text()));
  const CheckedField field = item["fieldRef"];
  const CheckedField resource = item["resourceFieldRef"];
  if (field) {
    check_field_reference(field, FieldUse::kVolume);
    if (resource) item.invalid("resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
  } else if (resource) {
    check_resource_reference(resource, FieldUse::kVolume);
  } else {
    item.required("one of fieldRef and resourceFieldRef is required");
  }
  check_file_mode(item["mode"]);
}

void check_downward_files(const CheckedField& source) {
  const CheckedField items = source["items"];
  for (const api::Json& file : items.elements()) {
    if (source.full()) return;
    check_downward_file(source, file);
  }
}

/// Adds an error to the volume for every path that an earlier item has.
void check_paths(const CheckedField& items, const CheckedField& projected, std::set<std::string_view>& taken) {
  for (const api::Json& item : items.elements()) {
    const std::string_view path = item.string_at({"path"});
    if (!path.empty() && !taken.insert(path).second) projected.invalid(path, kSamePath);
  }
}

void check_projected_token(const CheckedField& token, const CheckedField& projected) {
  const CheckedField seconds = token["expirationSeconds"];
  if (seconds.integer().value_or(0) < kTokenSecondsMin) {
    seconds.invalid("may not specify a duration less than 10 minutes");
  } else if (seconds.integer().value_or(0) > kTokenSecondsMax) {
    seconds.invalid("may not specify a duration larger than 2^32 seconds");
  }
  // The path is reported at the volume, not at the source.
  const CheckedField path = token["path"];
  const CheckedField shown = projected["path"];
  if (path.text().empty()) shown.required();
  for (const std::string& problem : unreserved_path_errors(path.text())) shown.invalid(path.json(), problem);
}

void check_projected_source(const CheckedField& source, const CheckedField& projected,
                            std::set<std::string_view>& taken) {
  int sources = 0;
  for (const std::string_view name : {"secret", "configMap"}) {
    const CheckedField keyed = source[name];
    if (!keyed) continue;
    ++sources;
    const CheckedField object = keyed["name"];
    object.require_text();
    const CheckedField items = keyed["items"];
    items.each(check_key_to_path);
    check_paths(items, projected, taken);
  }
  if (const CheckedField downward = source["downwardAPI"]) {
    ++sources;
    check_downward_files(downward);
    check_paths(downward["items"], projected, taken);
  }
  if (const CheckedField token = source["serviceAccountToken"]) {
    ++sources;
    check_projected_token(token, projected);
  }
  if (sources > 1) source.forbidden("may not specify more than 1 volume type per source");
}

}  // namespace

void check_host_path(const CheckedField& source) {
  const CheckedField path = source["path"];
  if (!path.require_text()) return;
  path.require_valid(backstep_errors(path.text()));
  const CheckedField type = source["type"];
  type.optional_one_of(kHostPathTypes);
}

void check_git_repo(const CheckedField& source) {
  const CheckedField directory = source["directory"];
  directory.require_valid(descending_path_errors(directory.text()));
}

void check_secret_volume(const CheckedField& source) {
  check_keyed_volume(source);
}

void check_config_map_volume(const CheckedField& source) {
  check_keyed_volume(source);
}

void check_downward_volume(const CheckedField& source) {
  check_file_mode(source["defaultMode"]);
  check_downward_files(source);
}

void check_image_volume(const CheckedField& source) {
  const CheckedField policy = source["pullPolicy"];
  if (!policy.text().empty()) policy.require_one_of(kPullPolicies);
}

void check_projected(const CheckedField& source) {
  check_file_mode(source["defaultMode"]);
  std::set<std::string_view> taken;
  const CheckedField sources = source["sources"];
  sources.each([&](const CheckedField& one) { check_projected_source(one, source, taken); });
}

}  // namespace spillway::apiserver::kinds
