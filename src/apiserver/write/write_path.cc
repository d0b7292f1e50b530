#include "apiserver/write/write_path.h"

#include "api/patch/apply.h"
#include "apiserver/read/object_converter.h"
#include "apiserver/request/body.h"
#include "apiserver/write/managed_fields.h"

#include <memory>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

StatusResult<void> check_name_matches(const Json& object, std::string_view name) {
  const std::string_view own = object.string_at({"metadata", "name"});
  if (own == name) return {};
  if (own.empty()) {
    return make_error(ErrorCode::kBadRequest,
                      "the name of the object ({} based on URL) was undeterminable: name must be provided", name);
  }
  return make_error(ErrorCode::kBadRequest, "the name of the object ({}) does not match the name on the URL ({})", own,
                    name);
}

/// Removes the namespace from the body of an object that belongs to the cluster.
StatusResult<void> fit_namespace(Json& object, const Route& route) {
  if (route.resource->namespaced()) return check_namespace_matches(object, route.ns);
  object.erase({"metadata", "namespace"});
  return {};
}

/// The patch of the request, which another thread may have read.
Result<api::DocumentPtr> patch_of(const Exchange& exchange, api::PatchType type) {
  const auto& read_ahead = exchange.read_ahead().patch;
  return read_ahead ? *read_ahead : parsed_patch(exchange.request(), *exchange.route.resource, type);
}

constexpr std::size_t kSweepWindow = 32;  // objects that one deletecollection removes at a time

SubresourceId part_of(const Route& route) {
  return route.subresource == nullptr ? SubresourceId::kNone : route.subresource->id;
}

}  // namespace

/// The state of one deletecollection.
struct WritePath::Sweep {
  ExchangePtr exchange;
  Rendering rendering;
  DeleteOptions options;
  std::vector<ObjectPtr> objects;  // objects as selected, then as removed; null: removed by another client
  std::size_t next = 0;
  std::size_t open = 0;
  bool starting = false;
  std::optional<api::Status> failure;
};

WriteContext WritePath::context_of(const ExchangePtr& exchange, const WriteOptions& options) {
  return {exchange->user(), exchange->manager(options), options.dry_run, exchange};
}

void WritePath::answer(const ExchangePtr& exchange, StatusResult<Written> result) {
  if (!result) return exchange->fail(result.error());
  exchange->warnings.insert(exchange->warnings.end(), result->warnings.begin(), result->warnings.end());
  const auto rendering = Rendering::of(*exchange->route.resource, exchange->form, exchange->target);
  if (!rendering) return exchange->fail(rendering.error());
  reader_.show_object(exchange, *rendering, result->object, result->created ? 201 : 200);
}

StatusResult<void> WritePath::check_create(const Exchange& exchange) const {
  RequestAttributes asked = exchange.asked;
  asked.verb = to_string(Verb::kCreate);
  const Verdict verdict = authorizer_.authorize(exchange.user(), asked);
  if (verdict.allowed) return {};
  return refusal_status(exchange.user(), asked, verdict);
}

void WritePath::create(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const auto options = parse_write_options(exchange->target, "CreateOptions");
  if (!options) return exchange->fail(options.error());
  auto object = read_object(*exchange, type_of(*route.resource), options->field_validation, exchange->warnings);
  if (!object) return exchange->fail(object.error());
  if (const auto same = fit_namespace(*object, route); !same) return exchange->fail(same.error());
  writer_.create({route.resource, route.ns, *std::move(object), false, context_of(exchange, *options)},
                 [this, exchange](StatusResult<Written> result) { answer(exchange, std::move(result)); });
}

/// The object that the route names, if its document in the form of that route is in memory.
api::DocumentPtr WritePath::kept_document(const Route& route) const {
  if (route.resource->is_view()) return nullptr;
  const ObjectPtr found = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  return found ? found->parsed : nullptr;
}

bool WritePath::renew(const ExchangePtr& exchange, RenewalForm form, std::string_view options,
                      std::function<void()> general) {
  if (!exchange->route.resource->renewed) return false;
  const auto parsed = parse_write_options(exchange->target, options);
  if (!parsed || parsed->force_given) return false;
  return renewals_.take(
      *exchange, form, *parsed,
      {[this, exchange](StatusResult<Written> result) { answer(exchange, std::move(result)); }, std::move(general)});
}

void WritePath::update(const ExchangePtr& exchange) {
  const auto general = [this, exchange] { update_generally(exchange); };
  if (!renew(exchange, RenewalForm::kUpdate, "UpdateOptions", general)) general();
}

void WritePath::update_generally(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const auto options = parse_write_options(exchange->target, "UpdateOptions");
  if (!options) return exchange->fail(options.error());
  const api::DocumentPtr current = kept_document(route);
  auto object =
      read_object(*exchange, type_of(*route.resource), options->field_validation, exchange->warnings, current.get());
  if (!object) return exchange->fail(object.error());
  if (const auto same = check_name_matches(*object, route.name); !same) return exchange->fail(same.error());
  if (const auto same = fit_namespace(*object, route); !same) return exchange->fail(same.error());

  UpdateJob job{.resource = route.resource,
                .ns = route.ns,
                .name = route.name,
                .part = part_of(route),
                .uid = std::string(object->string_at({"metadata", "uid"})),
                .context = context_of(exchange, *options)};
  auto body = std::make_shared<const Json>(*std::move(object));
  job.change = [body](const Json&) -> StatusResult<Json> { return *body; };
  if (route.resource->put_creates && route.subresource == nullptr) {
    job.create = [this, exchange, body]() -> StatusResult<Json> {
      SPILLWAY_TRY_VOID(check_create(*exchange));
      Json created = *body;
      created.erase({"metadata", "resourceVersion"});  // no object to compare with
      return created;
    };
  }
  writer_.update(std::move(job),
                 [this, exchange](StatusResult<Written> result) { answer(exchange, std::move(result)); });
}

void WritePath::patch(const ExchangePtr& exchange) {
  const std::optional<api::PatchType> type = api::parse_patch_type(exchange->request().header("content-type"));
  if (type == api::PatchType::kApply) return apply(exchange);
  if (!type) {
    return exchange->fail(
        make_error(ErrorCode::kUnsupportedMediaType,
                   "the body of the request was in an unknown format - accepted media types include: "
                   "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, "
                   "application/strategic-merge-patch+json"));
  }
  if (*type == api::PatchType::kStrategicMerge && exchange->route.resource->custom != nullptr) {
    return exchange->fail(
        make_error(ErrorCode::kUnsupportedMediaType,
                   "the body of the request was in an unknown format - accepted media types include: "
                   "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"));
  }
  const auto general = [this, exchange, type = *type] { patch_generally(exchange, type); };
  if (*type == api::PatchType::kJson || !renew(exchange, RenewalForm::kPatch, "PatchOptions", general)) general();
}

void WritePath::patch_generally(const ExchangePtr& exchange, api::PatchType type) {
  const Route& route = exchange->route;
  const auto options = parse_write_options(exchange->target, "PatchOptions");
  if (!options) return exchange->fail(options.error());
  if (options->force_given) {
    api::FieldErrors errors;
    errors.forbidden("force", "may not be specified for non-apply patch");
    return exchange->fail(api::invalid_status({"meta.k8s.io", "PatchOptions"}, "", errors));
  }
  if (const auto fits = check_size(exchange->request()); !fits) return exchange->fail(fits.error());
  const Result<api::DocumentPtr> patch = patch_of(*exchange, type);

  UpdateJob job{.resource = route.resource,
                .ns = route.ns,
                .name = route.name,
                .part = part_of(route),
                .context = context_of(exchange, *options)};
  job.change = [exchange, patch, type,
                validation = options->field_validation](const Json& current) -> StatusResult<Json> {
    if (!patch) return patch.error();
    const Resource& resource = *exchange->route.resource;
    return patched_object(type_of(resource), resource.kind, current, type, **patch, validation, exchange->warnings);
  };
  writer_.update(std::move(job),
                 [this, exchange](StatusResult<Written> result) { answer(exchange, std::move(result)); });
}

void WritePath::apply(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const auto options = parse_write_options(exchange->target, "PatchOptions");
  if (!options) return exchange->fail(options.error());
  if (options->field_manager.empty()) {
    api::FieldErrors errors;
    errors.required("fieldManager", "is required for apply patch");
    return exchange->fail(api::invalid_status({"meta.k8s.io", "PatchOptions"}, "", errors));
  }
  if (const auto fits = check_size(exchange->request()); !fits) return exchange->fail(fits.error());
  const Result<api::DocumentPtr> parsed = patch_of(*exchange, api::PatchType::kApply);
  if (!parsed && parsed.error().code == ErrorCode::kRequestEntityTooLarge) return exchange->fail(parsed.error());
  if (!parsed) return exchange->fail(make_error(ErrorCode::kBadRequest, "error decoding: {}", parsed.error().text()));
  auto config = std::make_shared<Json>(**parsed);
  if (config->is_object()) {
    if (const auto same = check_name_matches(*config, route.name); !same) return exchange->fail(same.error());
    if (const auto same = fit_namespace(*config, route); !same) return exchange->fail(same.error());
    if (route.resource->namespaced()) config->make({"metadata", "namespace"}) = route.ns;
  }

  UpdateJob job{.resource = route.resource,
                .ns = route.ns,
                .name = route.name,
                .part = part_of(route),
                .applied = true,
                .context = context_of(exchange, *options)};
  const auto merged = [this, exchange, config, force = options->force ? api::Force::kYes : api::Force::kNo,
                       manager = options->field_manager, part = job.part](const Json* live) -> StatusResult<Json> {
    const Resource& resource = *exchange->route.resource;
    const api::FieldWriter writer = field_writer(resource, part, manager, core_.now.wall, live == nullptr);
    return api::apply_config(field_type_of(resource), live, *config, writer, force);
  };
  job.change = [merged](const Json& current) { return merged(&current); };
  if (route.subresource == nullptr) {
    job.create = [this, exchange, merged]() -> StatusResult<Json> {
      SPILLWAY_TRY_VOID(check_create(*exchange));
      return merged(nullptr);
    };
  }
  writer_.update(std::move(job),
                 [this, exchange](StatusResult<Written> result) { answer(exchange, std::move(result)); });
}

StatusResult<DeleteOptions> WritePath::delete_options(const Exchange& exchange) {
  if (exchange.request().body.empty()) return parse_delete_options(exchange.target, nullptr);
  const api::Type* type = api::find_kind("v1", "DeleteOptions");
  std::vector<std::string> warnings;
  api::Request request = exchange.request();
  SPILLWAY_TRY(format, body_format(request.header("content-type")));
  SPILLWAY_TRY_VOID(check_size(request));
  if (format != BodyFormat::kProtobuf) {
    // Every group version has its DeleteOptions; a body may name any of them, or none.
    SPILLWAY_TRY(document, api::parse_bounded_json(request.body));
    if (!document.is_object()) return make_error(ErrorCode::kBadRequest, "DeleteOptions must be an object");
    document.erase({"apiVersion"});
    document.erase({"kind"});
    request.body = api::to_text(document);
    request.document = nullptr;
  }
  SPILLWAY_TRY(options, read_object(request, *type, FieldValidation::kIgnore, warnings));
  return parse_delete_options(exchange.target, &options);
}

void WritePath::remove(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const auto options = delete_options(*exchange);
  if (!options) return exchange->fail(options.error());
  remover_.remove(
      {route.resource, route.ns, route.name, *options, exchange}, [this, exchange](StatusResult<Removed> result) {
        if (!result) return exchange->fail(result.error());
        const Resource& resource = *exchange->route.resource;
        if (!result->gone || resource.graceful) {
          return answer(exchange, Written{result->object});
        }
        exchange->answer(200, api::to_json(api::deleted_status(resource.group_resource(), result->object->name,
                                                               result->object->meta.uid)));
      });
}

void WritePath::remove_collection(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const auto options = delete_options(*exchange);
  if (!options) return exchange->fail(options.error());
  const auto list_options = parse_list_options(exchange->target, false);
  if (!list_options) return exchange->fail(list_options.error());
  const auto selection = parse_selection(route, exchange->target);
  if (!selection) return exchange->fail(selection.error());
  const auto rendering = Rendering::of(*route.resource, exchange->form, exchange->target);
  if (!rendering) return exchange->fail(rendering.error());

  if (has_webhook(*route.resource)) {
    return remove_converted(std::make_shared<Sweep>(Sweep{exchange, *rendering, *options, {}}), *selection);
  }
  auto selected = reader_.select(*route.resource, *selection);
  if (!selected) return exchange->fail(selected.error());
  continue_sweep(std::make_shared<Sweep>(Sweep{exchange, *rendering, *options, *std::move(selected)}));
}

/// Selectors of a kind with a conversion webhook are compared with objects of the requested version.
void WritePath::remove_converted(const std::shared_ptr<Sweep>& sweep, const Selection& selection) {
  const Resource& row = *sweep->exchange->route.resource;
  auto all = reader_.select(row, Selection{.ns = selection.ns});
  if (!all) return sweep->exchange->fail(all.error());
  sweep->objects = *all;
  core_.converter->convert(row, *std::move(all), ObjectConverter::Of::kList,
                           [this, sweep, selection](const StatusResult<std::vector<ObjectPtr>>& converted) {
                             sweep_converted(sweep, selection, converted);
                           });
}

void WritePath::sweep_converted(const std::shared_ptr<Sweep>& sweep, const Selection& selection,
                                const StatusResult<std::vector<ObjectPtr>>& converted) {
  if (sweep->exchange->finished()) return;
  if (!converted) return sweep->exchange->fail(converted.error());
  if (selection.steps() * converted->size() > kSelectStepsMax) return sweep->exchange->fail(too_long_selector());
  for (std::size_t i = 0; i < converted->size(); ++i) {
    if (!selection.matches(*(*converted)[i])) sweep->objects[i] = nullptr;
  }
  std::erase(sweep->objects, nullptr);
  continue_sweep(sweep);
}

/// Removes a window of objects at a time; the answer lists what has been removed.
void WritePath::continue_sweep(const std::shared_ptr<Sweep>& sweep) {
  if (sweep->starting) return;
  sweep->starting = true;
  const Route& route = sweep->exchange->route;
  while (sweep->open < kSweepWindow && sweep->next < sweep->objects.size()) {
    const std::size_t i = sweep->next++;
    const ObjectPtr object = sweep->objects[i];
    ++sweep->open;
    remover_.remove({route.resource, object->ns, object->name, sweep->options, sweep->exchange},
                    [this, sweep, i](const StatusResult<Removed>& result) {
                      --sweep->open;
                      sweep->objects[i] = result ? result->object : nullptr;
                      if (!result && result.error().code != 404) sweep->failure = result.error();
                      continue_sweep(sweep);
                    });
  }
  sweep->starting = false;
  if (sweep->open != 0 || sweep->next < sweep->objects.size()) return;
  if (sweep->failure) return sweep->exchange->fail(*sweep->failure);
  std::erase(sweep->objects, nullptr);
  reader_.answer(sweep->exchange, sweep->rendering, std::move(sweep->objects));
}

}  // namespace spillway::apiserver
