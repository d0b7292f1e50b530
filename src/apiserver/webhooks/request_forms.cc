#include "apiserver/webhooks/request_forms.h"

#include "apiserver/read/object_converter.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

using api::Json;
using api::Status;
using api::StatusResult;

std::vector<const Resource*> served_as(const ResourceRegistry& registry, const Resource& asked) {
  std::vector<const Resource*> rows{&asked};
  for (const Resource& row : registry.all()) {
    if (asked.stored() && &row != &asked && row.storage == asked.storage) rows.push_back(&row);
  }
  return rows;
}

webhooks::ResourceName rule_name(const Resource& resource) {
  return {resource.group, resource.version, resource.plural};
}

RequestForms::RequestForms(Core& core, const Route& route)
    : core_(core), has_own_kind_(route.subresource != nullptr && !route.subresource->kind.empty()) {
  for (const Resource* row : served_as(core.registry, *route.resource)) {
    forms_.push_back({row, rule_name(*row)});
    names_.push_back(forms_.back().name);
  }
}

const RequestForms::Form& RequestForms::of(const webhooks::ResourceName& name) const {
  return *std::ranges::find(forms_, name, &Form::name);
}

void RequestForms::set(Json object, Json old) {
  object_ = std::move(object);
  old_ = std::move(old);
  made_.clear();
}

bool RequestForms::needs_webhook(const Form& form) const {
  return !has_own_kind_ && &form != &asked() && has_webhook(*form.resource);
}

const RequestForms::Made* RequestForms::find(const Form& form) const {
  const auto found = std::ranges::find(made_, &form, &Made::form);
  return found == made_.end() ? nullptr : &*found;
}

const Status* RequestForms::fault(const Form& form) const {
  const Made* made = find(form);
  return made != nullptr && made->fault ? &*made->fault : nullptr;
}

Json RequestForms::object_as(const Form& form) const {
  if (const Made* made = find(form)) return made->object;
  return shown_as(form, object_);
}

Json RequestForms::old_as(const Form& form) const {
  if (const Made* made = find(form)) return made->old;
  return shown_as(form, old_);
}

/// A conversion that needs no webhook.
Json RequestForms::shown_as(const Form& form, Json object) const {
  if (&form == &asked() || has_own_kind_ || object.is_null()) return object;
  return form.resource->from_stored(asked().resource->to_stored(object));
}

/// Calls the conversion webhook of the kind; null stays null.
void RequestForms::ask(const Form& form, const Json& object, std::move_only_function<void(StatusResult<Json>)> done) {
  if (object.is_null()) return done(Json());
  core_.converter->convert(*form.resource, object, std::move(done));
}

void RequestForms::convert(const Form& form, Done done) {
  const auto conversion = std::make_shared<Conversion>(Made{.form = &form}, std::move(done));
  ask(form, object_, [this, conversion](StatusResult<Json> object) { on_object(conversion, std::move(object)); });
}

void RequestForms::on_object(const std::shared_ptr<Conversion>& conversion, StatusResult<Json> object) {
  if (!object) return finish(*conversion, object.error());
  conversion->made.object = *std::move(object);
  ask(*conversion->made.form, old_,
      [this, conversion](StatusResult<Json> old) { on_old(*conversion, std::move(old)); });
}

void RequestForms::on_old(Conversion& conversion, StatusResult<Json> old) {
  if (!old) return finish(conversion, old.error());
  conversion.made.old = *std::move(old);
  finish(conversion, std::nullopt);
}

void RequestForms::finish(Conversion& conversion, std::optional<Status> fault) {
  conversion.made.fault = std::move(fault);
  made_.push_back(std::move(conversion.made));
  conversion.done();
}

void RequestForms::take(const Form& form, Json made, Taken done) {
  if (!needs_webhook(form)) {
    const bool is_asked = &form == &asked() || has_own_kind_;
    object_ = is_asked ? std::move(made) : asked().resource->from_stored(form.resource->to_stored(made));
    made_.clear();
    return done({});
  }
  const auto change =
      std::make_shared<Change>(Made{.form = &form, .object = std::move(made), .old = old_as(form)}, std::move(done));
  ask(asked(), change->made.object, [this, change](StatusResult<Json> object) { on_back(*change, std::move(object)); });
}

/// The changed form is kept, so that the next webhook of that version needs no conversion.
void RequestForms::on_back(Change& change, StatusResult<Json> object) {
  if (!object) return change.done(object.error());
  object_ = *std::move(object);
  made_.clear();
  made_.push_back(std::move(change.made));
  change.done({});
}

}  // namespace spillway::apiserver
