#include "apiserver/subresource/pod_binding.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/request/body.h"
#include "apiserver/resource/object_condition.h"
#include "apiserver/write/server_members.h"
#include "apiserver/write/write_path.h"

#include <memory>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

StatusResult<void> check_binding(const Json& binding, std::string_view name) {
  const std::string_view own = binding.string_at({"metadata", "name"});
  if (!own.empty() && own != name) {
    return make_error(ErrorCode::kBadRequest, "the name of the binding ({}) does not match the name on the URL ({})",
                      own, name);
  }
  api::FieldErrors errors;
  const std::string_view kind = binding.string_at({"target", "kind"});
  constexpr std::string_view kKinds[] = {"Node", "<empty>"};
  if (!kind.empty() && kind != "Node") errors.not_supported("target.kind", kind, kKinds);
  if (binding.string_at({"target", "name"}).empty()) errors.required("target.name");
  if (!errors.empty()) return api::invalid_status({"", "Binding"}, name, errors);
  return {};
}

StatusResult<Json> bind(Json pod, const Json& binding, WallTime now) {
  const std::string name(pod.string_at({"metadata", "name"}));
  const api::GroupResource named{"", "pods/binding"};
  const std::string_view uid = binding.string_at({"metadata", "uid"});
  if (const std::string_view own = pod.string_at({"metadata", "uid"}); !uid.empty() && uid != own) {
    return uid_mismatch(named, name, uid, own);
  }
  if (!pod.string_at({"metadata", "deletionTimestamp"}).empty()) {
    return api::conflict_status(named, name, "pod " + name + " is being deleted, cannot be assigned to a host");
  }
  if (const std::string_view node = pod.string_at({"spec", "nodeName"}); !node.empty()) {
    return api::conflict_status(named, name,
                                "pod " + name + " is already assigned to node \"" + std::string(node) + "\"");
  }
  if (const std::string_view version = binding.string_at({"metadata", "resourceVersion"}); !version.empty()) {
    pod["metadata"]["resourceVersion"] = version;
  }
  for (const std::string_view member : {"annotations", "labels"}) {
    const Json* extra = binding.at({"metadata", member});
    if (extra == nullptr || extra->if_object() == nullptr) continue;
    for (const auto& [key, value] : *extra->if_object()) pod.make({"metadata", member})[key] = value;
  }
  pod.make({"spec", "nodeName"}) = binding.string_at({"target", "name"});
  pod.erase({"status", "nominatedNodeName"});
  set_condition(pod, "PodScheduled", "True", {}, {}, now);
  return pod;
}

}  // namespace

void PodBinding::create(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const auto options = parse_write_options(exchange->target, "CreateOptions");
  if (!options) return exchange->fail(options.error());
  auto body =
      read_object(exchange->request(), *api::find_kind("v1", "Binding"), options->field_validation, exchange->warnings);
  if (!body) return exchange->fail(body.error());
  if (const auto same = check_namespace_matches(*body, route.ns); !same) return exchange->fail(same.error());
  // POST …/bindings names the pod in the body, POST …/pods/NAME/binding in the path.
  const std::string name(route.name.empty() ? body->string_at({"metadata", "name"}) : route.name);
  if (name.empty()) {
    return exchange->fail(make_error(ErrorCode::kBadRequest, "name is required: metadata.name is the pod's"));
  }
  if (const auto good = check_binding(*body, name); !good) return exchange->fail(good.error());
  auto binding = std::make_shared<const Json>(*std::move(body));
  UpdateJob job{.resource = &core_.registry.get("pods"),
                .ns = route.ns,
                .name = name,
                .part = SubresourceId::kBinding,
                .change = [this, binding](const Json& pod) { return bind(pod, *binding, core_.now.wall); },
                .trusted = true,
                .context = WritePath::context_of(exchange, *options)};
  writer_.update(std::move(job), [exchange](StatusResult<Written> result) {
    if (!result) return exchange->fail(result.error());
    exchange->answer(201, api::created_status());
  });
}

}  // namespace spillway::apiserver
