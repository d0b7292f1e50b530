#include "apiserver/webhooks/admission_options.h"

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using webhooks::Operation;

Json options_of(std::string_view kind, bool dry_run) {
  Json options = Json::object({{"kind", kind}, {"apiVersion", "meta.k8s.io/v1"}});
  if (dry_run) options["dryRun"] = Json::array({"All"});
  return options;
}

void take(Json& options, const api::Target& target, std::string_view name) {
  const std::string* value = target.find(name);
  if (value != nullptr && !value->empty()) options[name] = *value;
}

std::string_view policy_text(Propagation propagation) {
  switch (propagation) {
    case Propagation::kUnset:
      return "";
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
  }
  return "";
}

}  // namespace

Json admission_options(const Exchange& exchange, Operation operation, bool dry_run) {
  if (operation == Operation::kConnect) return {};
  const bool patches = exchange.request().method == api::Method::kPatch;
  const std::string_view kind = operation == Operation::kCreate   ? "CreateOptions"
                                : operation == Operation::kDelete ? "DeleteOptions"
                                : patches                         ? "PatchOptions"
                                                                  : "UpdateOptions";
  Json options = options_of(kind, dry_run);
  take(options, exchange.target, "fieldManager");
  take(options, exchange.target, "fieldValidation");
  if (kind == "PatchOptions" && query_flag(exchange.target, "force")) options["force"] = true;
  return options;
}

Json admission_options(const DeleteOptions& options) {
  Json document = options_of("DeleteOptions", options.dry_run);
  if (options.grace_period_seconds) document["gracePeriodSeconds"] = *options.grace_period_seconds;
  if (options.uid) document.make({"preconditions", "uid"}) = *options.uid;
  if (options.resource_version) document.make({"preconditions", "resourceVersion"}) = *options.resource_version;
  if (const std::string_view policy = policy_text(options.propagation); !policy.empty()) {
    document["propagationPolicy"] = policy;
  }
  return document;
}

namespace {

/// The path behind the subresource's name; empty if there is none.
std::string path_below_proxy(const Exchange& exchange) {
  constexpr std::size_t kOfCluster = 5;    // /api/v1/nodes/NAME/proxy
  constexpr std::size_t kOfNamespace = 7;  // /api/v1/namespaces/NAMESPACE/pods/NAME/proxy
  const std::string& target = exchange.request().target;
  std::string path;
  for (std::size_t i = exchange.route.ns.empty() ? kOfCluster : kOfNamespace; i < exchange.target.segments.size();
       ++i) {
    path += "/" + exchange.target.segments[i];
  }
  if (std::string_view(target).substr(0, target.find_first_of("?#")).ends_with('/')) path += "/";
  return path;
}

}  // namespace

Json connect_options(const Exchange& exchange) {
  const Subresource& part = *exchange.route.subresource;
  Json options = Json::object({{"kind", part.kind}, {"apiVersion", part.version}});
  Json::Array command;
  Json::Array ports;
  for (const auto& [name, value] : exchange.target.query) {
    if (name == "command") command.emplace_back(value);
    if (name != "ports") continue;
    std::int64_t port = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), port);
    if (problem == std::errc() && end == value.data() + value.size()) ports.emplace_back(port);
  }
  if (part.id == SubresourceId::kProxy) {
    if (std::string path = path_below_proxy(exchange); !path.empty()) options["path"] = std::move(path);
    return options;
  }
  if (part.name == "portforward") {
    if (!ports.empty()) options["ports"] = std::move(ports);
    return options;
  }
  for (const std::string_view stream : {"stdin", "stdout", "stderr", "tty"}) {
    if (query_flag(exchange.target, stream)) options[stream] = true;
  }
  take(options, exchange.target, "container");
  if (part.name == "exec" && !command.empty()) options["command"] = std::move(command);
  return options;
}

}  // namespace spillway::apiserver
