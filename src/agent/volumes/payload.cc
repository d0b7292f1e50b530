#include "agent/volumes/payload.h"

#include "agent/volumes/downward.h"
#include "api/text/base64.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace spillway::agent {
namespace {

using api::Json;
using Kind = DataReference::Kind;

constexpr std::uint32_t kTokenMode = 0600;
constexpr std::size_t kPathMax = 4096;
constexpr std::size_t kNameMax = 255;

const Json::Array& elements(const Json& value, std::string_view member) {
  static const Json::Array kNone;
  const Json* found = value.find(member);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNone : *list;
}

std::optional<std::uint32_t> mode_in(const Json& value, std::string_view member) {
  const Json* found = value.find(member);
  const auto number = found == nullptr ? std::nullopt : found->if_int64();
  return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

bool is_optional(const Json& source) {
  const Json* found = source.find("optional");
  return found != nullptr && found->if_bool().value_or(false);
}

/// Several problems as one, each once.
class Problems {
 public:
  void add(const Error& error) {
    if (std::ranges::find(messages_, error.message) == messages_.end()) messages_.push_back(error.message);
    code_ = error.code;
  }

  void add_all(const Problems& others) {
    for (const std::string& each : others.messages_) add(Error{others.code_, each, {}});
  }

  bool empty() const { return messages_.empty(); }

  Error error() const {
    if (messages_.size() == 1) return Error{code_, messages_.front(), {}};
    return make_error(code_, "[{}]", fmt::join(messages_, ", "));
  }

 private:
  std::vector<std::string> messages_;
  ErrorCode code_ = ErrorCode::kInvalid;
};

Result<Payload> all_keys(Kind kind, const Json& object, std::uint32_t mode) {
  Payload payload;
  for (const auto& [member, encoded] : {std::pair("data", kind == Kind::kSecret), std::pair("binaryData", true)}) {
    if (kind == Kind::kSecret && std::string_view(member) == "binaryData") continue;
    const Json* data = object.find(member);
    const Json::Object* entries = data == nullptr ? nullptr : data->if_object();
    if (entries == nullptr) continue;
    for (const auto& [key, value] : *entries) {
      std::string content(value.string_at({}));
      if (encoded) {
        SPILLWAY_TRY(decoded, api::decode_base64(content));
        content = std::move(decoded);
      }
      payload[key] = VolumeFile{.content = std::move(content), .mode = mode, .owner = {}};
    }
  }
  return payload;
}

Error no_mode() {
  return invalid({}, "no defaultMode used, not even the default value for it");
}

/// The files of a ConfigMap or Secret volume. `name`: the member of the source that names the object.
Result<Payload> object_payload(Kind kind, const Json& source, std::string_view name, std::optional<std::uint32_t> mode,
                               const DataObjects& objects) {
  const DataReference reference{kind, std::string(source.string_at({name}))};
  const auto found = objects.find(reference);
  if (found == objects.end() && !is_optional(source))
    return make_error(ErrorCode::kNotFound, "{} \"{}\" not found", kind == Kind::kSecret ? "secret" : "configmap",
                      reference.name);
  if (!mode) return no_mode();
  if (found == objects.end()) return Payload();
  SPILLWAY_TRY(all, all_keys(kind, found->second, *mode));
  const Json::Array& items = elements(source, "items");
  if (items.empty()) return all;
  Payload chosen;
  for (const Json& item : items) {
    const std::string key(item.string_at({"key"}));
    const auto entry = all.find(key);
    if (entry == all.end()) {
      if (is_optional(source)) continue;
      return make_error(
          ErrorCode::kNotFound, "{}: {}",
          kind == Kind::kSecret ? "references non-existent secret key" : "configmap references non-existent config key",
          key);
    }
    VolumeFile file = entry->second;
    file.mode = mode_in(item, "mode").value_or(*mode);
    chosen[std::string(item.string_at({"path"}))] = std::move(file);
  }
  return chosen;
}

api::ResourceFieldSelector resource_selector(const Json& reference) {
  api::ResourceFieldSelector selector;
  selector.container_name = reference.string_at({"containerName"});
  selector.resource = reference.string_at({"resource"});
  const Json* divisor = reference.find("divisor");
  if (divisor != nullptr) {
    const std::string text = divisor->if_string() != nullptr ? *divisor->if_string() : api::to_text(*divisor);
    if (const auto parsed = api::parse_quantity(text)) selector.divisor = *parsed;
  }
  return selector;
}

Payload downward_payload(const api::Pod& pod, const Json& source, std::uint32_t mode, const PayloadSources& sources,
                         Problems& problems) {
  Payload payload;
  for (const Json& item : elements(source, "items")) {
    const Json* field = item.find("fieldRef");
    const Json* resource = item.find("resourceFieldRef");
    Result<std::string> value = std::string();
    if (field != nullptr && !field->is_null()) {
      value = metadata_field(pod, field->string_at({"fieldPath"}));
    } else if (resource != nullptr && !resource->is_null()) {
      value = resource_field(pod, resource_selector(*resource), sources.allocatable, LimitDefaults::kAllContainers);
    }
    if (!value) {
      problems.add(value.error());
      continue;
    }
    payload[std::filesystem::path(item.string_at({"path"})).lexically_normal().string()] =
        VolumeFile{.content = *value, .mode = mode_in(item, "mode").value_or(mode), .owner = {}};
  }
  return payload;
}

TokenWish token_wish(const Json& source) {
  const Json* life = source.find("expirationSeconds");
  return {.audience = std::string(source.string_at({"audience"})),
          .expiration_seconds = life == nullptr ? 3600 : life->if_int64().value_or(3600)};
}

void overlay(Payload& onto, Payload files) {
  for (auto& [path, file] : files) onto.insert_or_assign(path, std::move(file));
}

Result<Payload> projected_payload(const api::Pod& pod, const Json& definition, std::uint32_t mode,
                                  const PayloadSources& sources) {
  Payload payload;
  Problems problems;
  const auto take = [&](Result<Payload> files) {
    if (files) {
      overlay(payload, *std::move(files));
    } else {
      problems.add(files.error());
    }
  };
  for (const Json& source : elements(definition, "sources")) {
    if (const Json* secret = source.find("secret")) {
      take(object_payload(Kind::kSecret, *secret, "name", mode, sources.objects));
    } else if (const Json* config = source.find("configMap")) {
      take(object_payload(Kind::kConfigMap, *config, "name", mode, sources.objects));
    } else if (const Json* downward = source.find("downwardAPI")) {
      Problems of_it;
      Payload files = downward_payload(pod, *downward, mode, sources, of_it);
      if (of_it.empty()) {
        overlay(payload, std::move(files));
      } else {
        problems.add_all(of_it);
      }
    } else if (const Json* asked = source.find("serviceAccountToken")) {
      const Result<std::string> token = sources.token(token_wish(*asked));
      if (!token) {
        problems.add(make_error(token.error().code, "failed to fetch token: {}", token.error().message));
        continue;
      }
      const bool owned = sources.fs_user || sources.has_fs_group;
      payload[std::string(asked->string_at({"path"}))] =
          VolumeFile{.content = *token, .mode = owned ? kTokenMode : mode, .owner = sources.fs_user};
    } else {
      problems.add(invalid({}, "a projected source of this kind is not supported"));
    }
  }
  if (!problems.empty()) return problems.error();
  return payload;
}

}  // namespace

Json token_request(const api::Pod& pod, const TokenWish& wish) {
  Json spec = Json::object(
      {{"boundObjectRef",
        Json::object({{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod.metadata.name}, {"uid", pod.metadata.uid}})},
       {"expirationSeconds", wish.expiration_seconds}});
  if (!wish.audience.empty()) spec["audiences"] = Json::array({wish.audience});
  return Json::object({{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenRequest"}, {"spec", spec}});
}

bool has_payload(const api::Volume& volume) {
  return volume.source == "configMap" || volume.source == "secret" || volume.source == "downwardAPI" ||
         volume.source == "projected";
}

std::set<DataReference> references_of(const api::Volume& volume) {
  std::set<DataReference> found;
  const auto add = [&](Kind kind, std::string_view name) {
    if (!name.empty()) found.insert({kind, std::string(name)});
  };
  if (volume.source == "configMap") add(Kind::kConfigMap, volume.definition.string_at({"name"}));
  if (volume.source == "secret") add(Kind::kSecret, volume.definition.string_at({"secretName"}));
  if (volume.source != "projected") return found;
  for (const Json& source : elements(volume.definition, "sources")) {
    add(Kind::kConfigMap, source.string_at({"configMap", "name"}));
    add(Kind::kSecret, source.string_at({"secret", "name"}));
  }
  return found;
}

std::set<TokenWish> tokens_of(const api::Volume& volume) {
  std::set<TokenWish> found;
  if (volume.source != "projected") return found;
  for (const Json& source : elements(volume.definition, "sources")) {
    if (const Json* asked = source.find("serviceAccountToken")) found.insert(token_wish(*asked));
  }
  return found;
}

Result<Payload> payload_of(const api::Pod& pod, const api::Volume& volume, const PayloadSources& sources) {
  const auto mode = mode_in(volume.definition, "defaultMode");
  if (volume.source == "configMap")
    return object_payload(Kind::kConfigMap, volume.definition, "name", mode, sources.objects);
  if (volume.source == "secret")
    return object_payload(Kind::kSecret, volume.definition, "secretName", mode, sources.objects);
  if (!mode) return no_mode();
  if (volume.source == "projected") return projected_payload(pod, volume.definition, *mode, sources);
  Problems problems;
  Payload payload = downward_payload(pod, volume.definition, *mode, sources, problems);
  if (!problems.empty()) return problems.error();
  return payload;
}

std::optional<std::int64_t> fs_user_of(const api::Pod& pod) {
  std::optional<std::int64_t> user;
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers, &pod.spec.ephemeral_containers}) {
    for (const api::Container& container : *list) {
      const auto& own = container.security.run_as_user ? container.security.run_as_user : pod.spec.security.run_as_user;
      if (!own || (user && *user != *own)) return std::nullopt;
      user = own;
    }
  }
  return user;
}

Outcome check_payload_paths(const Payload& payload) {
  for (const auto& [path, file] : payload) {
    if (path.empty()) return invalid({}, "invalid path: must not be empty: \"{}\"", path);
    if (path.starts_with('/')) return invalid({}, "invalid path: must be relative path: {}", path);
    if (path.size() > kPathMax)
      return invalid({}, "invalid path: must be less than or equal to {} characters", kPathMax);
    bool first = true;
    for (std::string_view rest = path;;) {
      const auto slash = rest.find('/');
      const std::string_view name = rest.substr(0, slash);
      if (name == "..") return invalid({}, "invalid path: must not contain '..': {}", path);
      if (name.size() > kNameMax)
        return invalid({}, "invalid path: filenames must be less than or equal to {} characters", kNameMax);
      if (first && name.starts_with("..")) return invalid({}, "invalid path: must not start with '..': {}", path);
      first = false;
      if (slash == std::string_view::npos) break;
      rest.remove_prefix(slash + 1);
    }
  }
  return {};
}

}  // namespace spillway::agent
