#include "cli/config/admission_config.h"

#include "api/text/names.h"
#include "cli/config/admission_source.h"
#include "cli/config/limited_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

using api::Json;

constexpr std::string_view kFileVersions[] = {"apiserver.config.k8s.io/v1"};
constexpr std::string_view kPodSecurityVersions[] = {"pod-security.admission.config.k8s.io/v1",
                                                     "pod-security.admission.config.k8s.io/v1beta1",
                                                     "pod-security.admission.config.k8s.io/v1alpha1"};

/// A PodSecurityConfiguration at `place` of a file.
class PodSecurityReader {
 public:
  PodSecurityReader(AdmissionSource& source, podsecurity::Configuration& into) : source_(source), into_(into) {}

  void read(const Json& value, const AdmissionPlace& place) {
    constexpr std::string_view kMembers[] = {"apiVersion", "kind", "defaults", "exemptions"};
    if (!source_.is_mapping(value, place, kMembers)) return;
    source_.check_kind(value, place, "PodSecurityConfiguration", kPodSecurityVersions);
    if (const Json* defaults = given(value, "defaults")) read_defaults(*defaults, place.member("defaults"));
    if (const Json* exemptions = given(value, "exemptions")) read_exemptions(*exemptions, place.member("exemptions"));
  }

 private:
  using Problems = std::vector<std::string> (*)(std::string_view);

  static const Json* given(const Json& value, std::string_view name) {
    const Json* found = value.find(name);
    return found == nullptr || found->is_null() ? nullptr : found;
  }

  void read_defaults(const Json& value, const AdmissionPlace& place) {
    constexpr std::string_view kMembers[] = {"enforce", "enforce-version", "audit", "audit-version",
                                             "warn",    "warn-version"};
    if (!source_.is_mapping(value, place, kMembers)) return;
    for (const podsecurity::Mode mode : podsecurity::kModes) {
      podsecurity::LevelVersion& standard = into_.defaults.of(mode);
      const std::string level(to_string(mode));
      read_word(value, place, level, podsecurity::parse_level, podsecurity::kLevelExpected, standard.level);
      read_word(value, place, level + "-version", podsecurity::parse_version, podsecurity::kVersionExpected,
                standard.version);
    }
  }

  template <typename Parse, typename Value>
  void read_word(const Json& value, const AdmissionPlace& place, const std::string& name, Parse parse,
                 std::string_view expected, Value& into) {
    const Json* found = given(value, name);
    if (found == nullptr || found->string_at({}).empty()) {
      if (found != nullptr && !found->is_string()) source_.wrong(place.member(name), "expected a string");
      return;
    }
    if (const auto parsed = parse(found->string_at({}))) {
      into = *parsed;
    } else {
      source_.wrong(place.member(name), fmt::format("Invalid value: \"{}\": {}", found->string_at({}), expected));
    }
  }

  void read_exemptions(const Json& value, const AdmissionPlace& place) {
    constexpr std::string_view kMembers[] = {"usernames", "runtimeClasses", "namespaces"};
    if (!source_.is_mapping(value, place, kMembers)) return;
    read_names(value, place, "usernames", nullptr, into_.exempt_users);
    read_names(value, place, "runtimeClasses", api::dns1123_subdomain_errors, into_.exempt_runtime_classes);
    read_names(value, place, "namespaces", api::dns1123_label_errors, into_.exempt_namespaces);
  }

  void read_names(const Json& value, const AdmissionPlace& place, std::string_view name, Problems problems,
                  std::vector<std::string>& into) {
    const Json* found = given(value, name);
    if (found == nullptr) return;
    const Json::Array* list = found->if_array();
    if (list == nullptr) return source_.wrong(place.member(name), "expected a list of strings");
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string* word = (*list)[i].if_string();
      const AdmissionPlace here = place.member(name).element(i);
      if (word == nullptr) {
        source_.wrong(here, "expected a string");
      } else if (word->empty() && problems == nullptr) {
        source_.wrong(here, "Required value");
      } else if (const auto bad = problems == nullptr ? std::vector<std::string>() : problems(*word); !bad.empty()) {
        source_.wrong(here, fmt::format("Invalid value: \"{}\": {}", *word, fmt::join(bad, ", ")));
      } else if (std::ranges::find(into, *word) != into.end()) {
        source_.wrong(here, fmt::format("Duplicate value: \"{}\"", *word));
      } else {
        into.push_back(*word);
      }
    }
  }

  AdmissionSource& source_;
  podsecurity::Configuration& into_;
};

using ReadFile = std::function<Result<yaml::Document>(const std::string&)>;

/// `path` as seen from the folder of `file`.
std::string beside(const std::string& file, std::string_view path) {
  const std::size_t slash = file.rfind('/');
  if (path.starts_with('/') || slash == std::string::npos) return std::string(path);
  return file.substr(0, slash + 1) + std::string(path);
}

/// Parses the configuration of one plug-in, found at `place` of a file.
using ReadPlugin = void (*)(AdmissionSource& source, const Json& value, const AdmissionPlace& place,
                            AdmissionFile& into);

void read_pod_security(AdmissionSource& source, const Json& value, const AdmissionPlace& place, AdmissionFile& into) {
  PodSecurityReader(source, into.pod_security).read(value, place);
}

void read_resource_quota(AdmissionSource& source, const Json& value, const AdmissionPlace& place, AdmissionFile& into) {
  read_limited_resources(source, value, place, into.limited_resources);
}

/// nullptr: the plug-in takes no configuration here.
ReadPlugin reader_of(std::string_view plugin) {
  if (plugin == "PodSecurity") return read_pod_security;
  return plugin == "ResourceQuota" ? read_resource_quota : nullptr;
}

/// Parses one of plugins[]: its configuration is inline or in a file of its own.
Outcome read_plugin(const std::string& file, AdmissionSource& source, const Json& plugin, const AdmissionPlace& place,
                    const ReadFile& read, AdmissionFile& into, std::vector<std::string>& errors) {
  constexpr std::string_view kMembers[] = {"name", "path", "configuration"};
  if (!source.is_mapping(plugin, place, kMembers)) return {};
  const ReadPlugin reader = reader_of(plugin.string_at({"name"}));
  if (reader == nullptr) {
    into.warnings.push_back(fmt::format("{}: {}: \"{}\" has no effect here", source.at(place.member("name")),
                                        place.member("name").path, plugin.string_at({"name"})));
    return {};
  }
  const Json* configuration = plugin.find("configuration");
  if (configuration != nullptr && !configuration->is_null()) {
    reader(source, *configuration, place.member("configuration"), into);
    return {};
  }
  const std::string_view path = plugin.string_at({"path"});
  if (path.empty()) return {};
  const std::string other = beside(file, path);
  SPILLWAY_TRY(document, read(other));
  AdmissionSource more(other, document, errors);
  reader(more, more.root(), {}, into);
  return {};
}

}  // namespace

Result<AdmissionFile> read_admission_file(const std::string& file, const ReadFile& read) {
  constexpr std::string_view kMembers[] = {"apiVersion", "kind", "plugins"};
  SPILLWAY_TRY(document, read(file));
  AdmissionFile found;
  std::vector<std::string> errors;
  AdmissionSource source(file, document, errors);
  if (source.is_mapping(source.root(), {}, kMembers)) {
    source.check_kind(source.root(), {}, "AdmissionConfiguration", kFileVersions);
    const Json* plugins = source.root().find("plugins");
    const Json::Array* list = plugins == nullptr ? nullptr : plugins->if_array();
    const AdmissionPlace place = AdmissionPlace{}.member("plugins");
    if (plugins != nullptr && !plugins->is_null() && list == nullptr) source.wrong(place, "expected a list");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      SPILLWAY_TRY_VOID(read_plugin(file, source, (*list)[i], place.element(i), read, found, errors));
    }
  }
  if (!errors.empty()) return make_error(ErrorCode::kInvalid, "{}", fmt::join(errors, "; "));
  return found;
}

}  // namespace spillway::cli
