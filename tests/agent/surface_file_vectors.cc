// vectors/kubelet-surface: container_log_link, credential_match, node_log_query.
#include "agent/contract/log_paths.h"
#include "agent/cri/credential_plugin.h"
#include "agent/cri/image_credentials.h"
#include "agent/cri/image_match.h"
#include "agent/serving/node_log_query.h"
#include "api/text/duration.h"
#include "host/node_logs.h"
#include "support/vectors.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

Json log_paths(const Json& in) {
  const api::PodKey pod{std::string(in.string_at({"namespace"})), std::string(in.string_at({"pod"}))};
  const std::string_view container = in.string_at({"container"});
  const auto attempt = static_cast<std::int32_t>(in.find("restart_count")->if_int64().value());
  const std::string directory = pod_log_directory(in.string_at({"pod_logs_dir"}), pod, in.string_at({"uid"}));
  return Json::object({{"pod_directory", directory},
                       {"container_directory", fmt::format("{}/{}", directory, container)},
                       {"cri_log_path", container_log_path(container, attempt)},
                       {"link", fmt::format("{}/{}", kLogLinksDirectory,
                                            log_link_name(pod, container, in.string_at({"container_id"})))},
                       {"uid_of_directory", uid_of_log_directory(directory)}});
}

std::optional<Mismatch> container_log_link(const Json& row) {
  const Json& in = *row.find("in");
  if (row.string_at({"op"}) == "paths") return support::compare(*row.find("want"), log_paths(in));
  const auto id = container_of_log_link(in.string_at({"link"}));
  return support::compare(*row.find("want"),
                          id ? Json::object({{"container_id", *id}}) : Json::object({{"error", id.error().message}}));
}

/// One image, the same after a wait, and another one, which all use the answer that the plug-in gave first.
Json cached(const Json& in) {
  CredentialProvider provider{.name = "p",
                              .match_images = {},
                              .default_cache_duration = *api::parse_duration(in.string_at({"default_cache_duration"})),
                              .api_version = "credentialprovider.kubelet.k8s.io/v1",
                              .arguments = {},
                              .environment = {}};
  for (const Json& each : *in.find("match_images")->if_array()) provider.match_images.emplace_back(each.string_at({}));
  CredentialPlugin plugin(std::move(provider));
  const std::string image(in.string_at({"image"}));
  Json answer = Json::object(
      {{"kind", "CredentialProviderResponse"},
       {"apiVersion", plugin.provider().api_version},
       {"cacheKeyType", in.string_at({"cache_key_type"})},
       {"auth", Json::object({{registry_of(image), Json::object({{"username", "u"}, {"password", "p"}})}})}});
  if (in.string_at({"cache_duration"}) != "absent") answer["cacheDuration"] = in.string_at({"cache_duration"});
  const auto runs = [&](std::string_view asked, Instant now) {
    return plugin.is_for(asked) && plugin.kept(asked, now) == nullptr;
  };
  Json got = Json::object({{"first_call_runs_plugin", runs(image, Instant{})}});
  const auto credentials = plugin.on_answer(image, api::to_text(answer), Instant{});
  got["credentials"] = credentials && !credentials->empty();
  got["cached_under"] = Json::array();
  // The widest key under which the answer is found.
  const std::string registry(registry_of(image));
  for (const auto& [probe, key] : {std::pair<std::string, std::string>("other.test/x", "global"),
                                   {registry + "/probe", registry},
                                   {image, image}}) {
    if (plugin.kept(probe, Instant{}) == nullptr) continue;
    got["cached_under"].if_array()->emplace_back(key);
    break;
  }
  got["other_image_runs_plugin"] = runs(in.string_at({"other_image"}), Instant{});
  const Instant later = Instant{} + *api::parse_duration(in.string_at({"then_wait"}));
  got["same_image_runs_plugin_again"] = runs(image, later);
  return got;
}

Json find_users(const Json& in) {
  Json auths = Json::object();
  for (const auto& [place, user] : *in.find("auths")->if_object())
    auths[place] = Json::object({{"username", user.string_at({})}, {"password", "p"}});
  const PullSecret secret{"kubernetes.io/dockerconfigjson", api::to_text(Json::object({{"auths", auths}}))};
  Json users = Json::array();
  for (const ImageCredential& each : credentials_for(std::string(in.string_at({"image"})), {secret}).value())
    users.if_array()->emplace_back(each.username);
  return Json::object({{"found", !users.if_array()->empty()}, {"users", users}});
}

std::optional<Mismatch> credential_match(const Json& row) {
  const Json& in = *row.find("in");
  const std::string_view op = row.string_at({"op"});
  Json got;
  if (op == "match") {
    const auto matches = is_image_below(in.string_at({"pattern"}), in.string_at({"image"}));
    got = Json::object({{"matches", matches.value_or(false)}});
    if (!matches) got["error"] = matches.error().message;
  }
  if (op == "cache") got = cached(in);
  if (op == "lookup") got = find_users(in);
  if (op == "registry") got = Json::object({{"registry", registry_of(in.string_at({"image"}))}});
  if (op == "config") {
    got = Json::object({{"errors", Json::array()}});
    for (const std::string& each : parse_credential_providers(in).errors) got["errors"].if_array()->emplace_back(each);
  }
  return support::compare(*row.find("want"), got);
}

Json texts(const std::vector<std::string>& list) {
  return Json(Json::Array(list.begin(), list.end()));
}

std::optional<Mismatch> node_log_query(const Json& row) {
  api::Target target;
  for (const auto& [name, values] : *row.find("in")->if_object())
    for (const Json& each : *values.if_array()) target.query.emplace_back(name, each.string_at({}));
  const ParsedNodeLogQuery parsed = parse_node_log_query(target);
  if (!parsed.errors.empty())
    return support::compare(*row.find("want"), Json::object({{"parse_errors", texts(parsed.errors)}}));
  if (!parsed.query) return support::compare(*row.find("want"), Json::object({{"plain_file_server", true}}));
  const std::vector<std::string> errors = node_log_query_errors(*parsed.query, host::missing_node_log);
  Json got = Json::object({{"services", texts(parsed.query->services)},
                           {"files", texts(parsed.query->files)},
                           {"validate_errors", texts(errors)}});
  if (errors.empty() && !parsed.query->services.empty())
    got["command"] = texts(journal_command(*parsed.query, parsed.query->services.front()));
  return support::compare(*row.find("want"), got);
}

const bool kContainerLogLink = support::add_vector_check("kubelet-surface/container_log_link", container_log_link);
const bool kNodeLogQuery = support::add_vector_check("kubelet-surface/node_log_query", node_log_query);
const bool kCredentialMatch = support::add_vector_check("kubelet-surface/credential_match", credential_match);

}  // namespace
}  // namespace spillway::agent
