#include "apiserver/subresource/scale.h"

#include "api/json/document_bounds.h"
#include "api/patch/patch.h"
#include "apiserver/read/object_converter.h"
#include "apiserver/request/body.h"
#include "apiserver/resource/custom_kind.h"
#include "apiserver/write/write_path.h"
#include "policy/structural/json_path.h"

#include <memory>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

void append_term(std::string& out, const std::string& term) {
  if (!out.empty()) out += ',';
  out += term;
}

/// Labels that must equal, in the text form of labelSelector=.
std::string labels_text(const Json* labels) {
  std::string out;
  if (labels == nullptr || labels->if_object() == nullptr) return out;
  for (const auto& [key, value] : *labels->if_object()) append_term(out, key + "=" + std::string(value.string_at({})));
  return out;
}

/// A metav1.LabelSelector in the form of a query parameter.
std::string selector_text(const Json* selector) {
  if (selector == nullptr) return {};
  std::string out = labels_text(selector->find("matchLabels"));
  const Json* expressions = selector->find("matchExpressions");
  if (expressions == nullptr || expressions->if_array() == nullptr) return out;
  for (const Json& expression : *expressions->if_array()) {
    const std::string key(expression.string_at({"key"}));
    const std::string_view op = expression.string_at({"operator"});
    if (op == "Exists") append_term(out, key);
    if (op == "DoesNotExist") append_term(out, "!" + key);
    if (op != "In" && op != "NotIn") continue;
    std::string values;
    const Json* list = expression.find("values");
    if (list != nullptr && list->if_array() != nullptr) {
      for (const Json& value : *list->if_array()) append_term(values, std::string(value.string_at({})));
    }
    append_term(out, key + (op == "In" ? " in (" : " notin (") + values + ")");
  }
  return out;
}

/// The workload with the replicas of the Scale.
StatusResult<Json> with_scale(const Json& object, const Json& scale, std::string_view name) {
  Json workload = object;
  if (scale.string_at({"metadata", "name"}) != name) {
    return make_error(ErrorCode::kBadRequest, "the name of the object ({}) does not match the name on the URL ({})",
                      scale.string_at({"metadata", "name"}), name);
  }
  const Json* replicas = scale.at({"spec", "replicas"});
  const std::int64_t count = replicas == nullptr ? 0 : replicas->if_int64().value_or(0);
  if (count < 0) {
    api::FieldErrors errors;
    errors.invalid("spec.replicas", count, "must be greater than or equal to 0");
    return api::invalid_status({"autoscaling", "Scale"}, name, errors);
  }
  for (const std::string_view member : {"resourceVersion", "uid"}) {
    if (const std::string_view wanted = scale.string_at({"metadata", member}); !wanted.empty()) {
      workload["metadata"][member] = wanted;
    }
  }
  workload.make({"spec", "replicas"}) = count;
  return workload;
}

}  // namespace

Json scale_of(const Json& workload) {
  Json metadata = Json::object();
  for (const std::string_view member : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Json* value = workload.at({"metadata", member})) metadata[member] = *value;
  }
  Json spec = Json::object();
  if (const Json* replicas = workload.at({"spec", "replicas"})) spec["replicas"] = *replicas;
  Json status = Json::object({{"replicas", 0}});
  if (const Json* replicas = workload.at({"status", "replicas"})) status["replicas"] = *replicas;
  const Json* selector = workload.at({"spec", "selector"});
  const bool plain =
      workload.string_at({"apiVersion"}) == "v1" && workload.string_at({"kind"}) == "ReplicationController";
  if (std::string text = plain ? labels_text(selector) : selector_text(selector); !text.empty()) {
    status["selector"] = text;
  }
  return Json::object({{"kind", "Scale"},
                       {"apiVersion", "autoscaling/v1"},
                       {"metadata", std::move(metadata)},
                       {"spec", std::move(spec)},
                       {"status", std::move(status)}});
}

namespace {

/// Reads the scale of a custom object at the paths of its definition.
Json custom_scale(const CustomVersion& version, const Json& object) {
  Json scale = scale_of(object);
  Json spec = Json::object();
  if (const Json* replicas = structural::member_at(object, version.scale->spec_replicas)) spec["replicas"] = *replicas;
  Json status = Json::object({{"replicas", 0}});
  if (const Json* replicas = structural::member_at(object, version.scale->status_replicas)) {
    status["replicas"] = *replicas;
  }
  const Json* selector =
      version.scale->selector.empty() ? nullptr : structural::member_at(object, version.scale->selector);
  if (selector != nullptr && selector->is_string() && !selector->if_string()->empty()) status["selector"] = *selector;
  scale["spec"] = std::move(spec);
  scale["status"] = std::move(status);
  return scale;
}

StatusResult<Json> with_custom_scale(const CustomVersion& version, const Json& object, const Json& scale,
                                     std::string_view name) {
  SPILLWAY_TRY(checked, with_scale(object, scale, name));
  Json changed = object;
  changed["metadata"] = *checked.find("metadata");
  const Json* replicas = scale.at({"spec", "replicas"});
  const Json count = replicas == nullptr ? Json(0) : *replicas;
  if (!structural::set_member_at(changed, version.scale->spec_replicas, count)) {
    return make_error(ErrorCode::kInternalError, "the replicas cannot be set at {}", version.scale->spec_replicas);
  }
  return changed;
}

EndpointForm form_of(const Resource& resource) {
  if (resource.custom == nullptr) return {.show = scale_of, .take = with_scale};
  const CustomVersion& version = *resource.custom;
  return {.show = [&version](const Json& object) { return custom_scale(version, version.from_stored(object)); },
          .take = [&version](const Json& object, const Json& scale,
                             std::string_view name) { return with_custom_scale(version, object, scale, name); }};
}

void answer_scale(Exchange& exchange, const StatusResult<std::vector<ObjectPtr>>& converted) {
  if (exchange.finished()) return;
  if (!converted) return exchange.fail(converted.error());
  exchange.answer(200, form_of(*exchange.route.resource).show(converted->front()->document()));
}

}  // namespace

void ScalePath::perform(const ExchangePtr& exchange) {
  if (exchange->route.verb == Verb::kGet) return get(exchange);
  change(exchange);
}

void ScalePath::get(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const ObjectPtr found = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  if (!found) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
  show(exchange, found);
}

/// The scale of an object as the answer; the object has the version of the request, or is converted to it.
void ScalePath::show(const ExchangePtr& exchange, const ObjectPtr& object) {
  core_.converter->convert(
      *exchange->route.resource, {object}, ObjectConverter::Of::kObject,
      [exchange](const StatusResult<std::vector<ObjectPtr>>& converted) { answer_scale(*exchange, converted); });
}

void ScalePath::change(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const bool patches = route.verb == Verb::kPatch;
  const auto options = parse_write_options(exchange->target, patches ? "PatchOptions" : "UpdateOptions");
  if (!options) return exchange->fail(options.error());
  const api::Type& type = *api::find_kind("autoscaling/v1", "Scale");
  const EndpointForm form = form_of(*route.resource);

  UpdateJob job{.resource = route.resource,
                .ns = route.ns,
                .name = route.name,
                .part = SubresourceId::kScale,
                .form = form,
                .context = WritePath::context_of(exchange, *options)};
  if (patches) {
    const auto patch_type = api::parse_patch_type(exchange->request().header("content-type"));
    if (!patch_type || *patch_type == api::PatchType::kApply) {
      return exchange->fail(make_error(ErrorCode::kUnsupportedMediaType,
                                       "a scale takes application/json-patch+json, application/merge-patch+json and "
                                       "application/strategic-merge-patch+json"));
    }
    if (const auto fits = check_size(exchange->request()); !fits) return exchange->fail(fits.error());
    auto patch = std::make_shared<const Result<Json>>(api::parse_bounded_json(exchange->request().body));
    job.change = [exchange, patch, &type, form, patch_type = *patch_type,
                  validation = options->field_validation](const Json& current) -> StatusResult<Json> {
      if (!*patch) return patch->error();
      SPILLWAY_TRY(scale, patched_object(type, "Scale", form.show(current), patch_type, **patch, validation,
                                         exchange->warnings));
      return form.take(current, scale, exchange->route.name);
    };
  } else {
    auto body = read_object(exchange->request(), type, options->field_validation, exchange->warnings);
    if (!body) return exchange->fail(body.error());
    if (const auto same = check_namespace_matches(*body, route.ns); !same) return exchange->fail(same.error());
    job.uid = body->string_at({"metadata", "uid"});
    auto scale = std::make_shared<const Json>(*std::move(body));
    job.change = [scale, exchange, form](const Json& current) {
      return form.take(current, *scale, exchange->route.name);
    };
  }
  writer_.update(std::move(job), [this, exchange](StatusResult<Written> result) {
    if (!result) return exchange->fail(result.error());
    show(exchange, result->object);
  });
}

}  // namespace spillway::apiserver
