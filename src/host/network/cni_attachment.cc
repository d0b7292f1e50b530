#include "host/network/cni_attachment.h"

#include "base/file.h"
#include "host/network/plugin_call.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

namespace spillway::host {

namespace {

using api::Json;

Result<std::string> find_plugin(const CniTools& tools, std::string_view type) {
  for (const std::string& directory : tools.directories) {
    std::string path = fmt::format("{}/{}", directory, type);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return make_error(ErrorCode::kNotFound, "failed to find plugin \"{}\" in path [{}]", type,
                    fmt::join(tools.directories, " "));
}

/// A plain file in its place means that the machine was started again: plug-ins get no namespace then.
std::string living_netns(const std::string& path) {
  struct statfs about = {};
  return ::statfs(path.c_str(), &about) == 0 && about.f_type == NSFS_MAGIC ? path : "";
}

/// The words of a plug-in's error, as the specification has them on its standard output.
std::string words_of(const PluginAnswer& answer) {
  const Result<Json> document = api::parse_json(answer.output);
  if (document && document->if_object() != nullptr && !document->string_at({"msg"}).empty()) {
    const std::string_view details = document->string_at({"details"});
    return fmt::format("{}{}{}", document->string_at({"msg"}), details.empty() ? "" : ": ", details);
  }
  const std::size_t from = answer.errors.find_first_not_of(" \n");
  if (from != std::string::npos) return answer.errors.substr(from, answer.errors.find('\n', from) - from);
  return fmt::format("it ended with code {}", answer.code);
}

struct Operation {
  std::string_view command;  // "ADD"
  std::string_view verb;     // "add": the word in errors, as in other runtimes
};

Result<Json> call(const CniAttachment& attachment, const CniList& list, const Json& plugin, const Operation& operation,
                  const Json& previous, const CniTools& tools) {
  const std::string_view type = plugin.string_at({"type"});
  const auto failed = [&](std::string_view why) {
    return make_error(ErrorCode::kInternalError, "plugin type=\"{}\" failed ({}): {}", type, operation.verb, why);
  };
  const Result<std::string> program = find_plugin(tools, type);
  if (!program) return failed(program.error().message);
  const bool adds = operation.command == "ADD";
  const PluginCall request{
      .program = *program,
      .environment = {fmt::format("CNI_COMMAND={}", operation.command),
                      fmt::format("CNI_CONTAINERID={}", attachment.id),
                      fmt::format("CNI_NETNS={}", adds ? attachment.netns : living_netns(attachment.netns)),
                      fmt::format("CNI_IFNAME={}", kPodInterface), fmt::format("CNI_ARGS={}", attachment.arguments),
                      fmt::format("CNI_PATH={}", fmt::join(tools.directories, ":"))},
      .input = cni_input(list, plugin, attachment.capabilities, previous),
      .time_max = tools.plugin_time_max};
  const Result<PluginAnswer> answer = call_plugin(request);
  if (!answer) return failed(answer.error().message);
  if (answer->code != 0) return failed(words_of(*answer));
  if (!adds) return Json();
  Result<Json> result = api::parse_json(answer->output);
  if (!result || result->if_object() == nullptr) return failed("its answer is no result");
  return result;
}

Result<CniList> list_of(const CniAttachment& attachment) {
  return parse_cni_list(attachment.configuration, "cached network configuration.conflist");
}

}  // namespace

std::string CniAttachment::text() const {
  return api::to_text(Json::object({{"kind", "cniCacheV1"},
                                    {"containerId", id},
                                    {"ifName", kPodInterface},
                                    {"netns", netns},
                                    {"cniArgs", arguments},
                                    {"capabilityArgs", capabilities},
                                    {"config", configuration},
                                    {"result", result}}));
}

Result<CniAttachment> CniAttachment::parse(std::string_view text) {
  const Result<Json> document = api::parse_json(text);
  if (!document) return document.error();
  CniAttachment made;
  made.id = document->string_at({"containerId"});
  made.netns = document->string_at({"netns"});
  made.arguments = document->string_at({"cniArgs"});
  made.configuration = document->string_at({"config"});
  if (const Json* capabilities = document->find("capabilityArgs")) made.capabilities = *capabilities;
  if (const Json* result = document->find("result")) made.result = *result;
  if (made.id.empty()) return make_error(ErrorCode::kInvalid, "containerId is missing");
  SPILLWAY_TRY_VOID(list_of(made));
  return made;
}

std::string cni_text(const CniList& list) {
  Json plugins = Json::array();
  *plugins.if_array() = list.plugins;
  return api::to_text(Json::object({{"cniVersion", list.version},
                                    {"name", list.name},
                                    {"disableCheck", list.disable_check},
                                    {"plugins", std::move(plugins)}}));
}

std::string cni_arguments(const api::PodKey& pod, const std::string& uid, const std::string& id) {
  return fmt::format(
      "IgnoreUnknown=1;K8S_POD_NAMESPACE={};K8S_POD_NAME={};K8S_POD_INFRA_CONTAINER_ID={};K8S_POD_UID={}", pod.ns,
      pod.name, id, uid);
}

Outcome cni_add(CniAttachment& attachment, const CniTools& tools) {
  SPILLWAY_TRY(list, list_of(attachment));
  Json result;
  for (const Json& plugin : list.plugins) {
    Result<Json> next = call(attachment, list, plugin, {"ADD", "add"}, result, tools);
    if (!next) {
      ignored(cni_remove(attachment, tools), "the first error is the one to report");
      return next.error();
    }
    result = *std::move(next);
  }
  attachment.result = std::move(result);
  return {};
}

Outcome cni_remove(const CniAttachment& attachment, const CniTools& tools) {
  SPILLWAY_TRY(list, list_of(attachment));
  Outcome first;
  const Json previous = cni_has_check(list) ? attachment.result : Json();
  for (const Json& plugin : std::views::reverse(list.plugins)) {
    const Result<Json> removed = call(attachment, list, plugin, {"DEL", "delete"}, previous, tools);
    if (!removed && first) first = removed.error();
  }
  return first;
}

Outcome cni_check(const CniAttachment& attachment, const CniTools& tools) {
  SPILLWAY_TRY(list, list_of(attachment));
  if (!cni_has_check(list) || list.disable_check) return {};
  for (const Json& plugin : list.plugins) {
    const Result<Json> checked = call(attachment, list, plugin, {"CHECK", "check"}, attachment.result, tools);
    if (!checked) return checked.error();
  }
  return {};
}

}  // namespace spillway::host
