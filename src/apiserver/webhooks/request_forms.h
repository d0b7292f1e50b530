// The object of a request and its former state in each version in which the server serves them, for webhooks and
// policies whose rules match another version than the requested one. Built-in kinds and kinds without a conversion
// webhook are converted here; the others by their webhook, once for each version until the object changes. Thread:
// loop. Source: Kubernetes docs, "Dynamic Admission Control", matchPolicy.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/read/core.h"
#include "apiserver/request/route.h"
#include "policy/webhooks/match.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace spillway::apiserver {

/// The resource, then the others that show the same objects.
std::vector<const Resource*> served_as(const ResourceRegistry& registry, const Resource& asked);

/// The resource as rules name it.
webhooks::ResourceName rule_name(const Resource& resource);

class RequestForms {
 public:
  /// One resource as which the request's objects are served.
  struct Form {
    const Resource* resource;
    webhooks::ResourceName name;
  };

  using Done = std::move_only_function<void()>;
  using Taken = std::move_only_function<void(api::StatusResult<void>)>;

  RequestForms(Core& core, const Route& route);

  /// The resource that the request names.
  const Form& asked() const { return forms_.front(); }

  /// The names of all forms, that of asked() first.
  std::span<const webhooks::ResourceName> names() const { return names_; }

  /// `name`: one of names().
  const Form& of(const webhooks::ResourceName& name) const;

  /// Replaces the objects, which have the form of asked(). Null: there is none.
  void set(api::Json object, api::Json old);

  const api::Json& object() const { return object_; }

  const api::Json& old() const { return old_; }

  /// True if a webhook has to convert the objects before they have that form: call convert() first.
  bool lacks(const Form& form) const { return needs_webhook(form) && find(form) == nullptr; }

  /// The reason why the objects have no such form, in the words of the failed conversion; null: they have it.
  const api::Status* fault(const Form& form) const;

  /// An object in that form, which is not lacking and has no fault.
  api::Json object_as(const Form& form) const;
  api::Json old_as(const Form& form) const;

  /// Replaces the objects, which have the form of asked(). Null: there is no such object.
  void convert(const Form& form, Done done);

  /// Takes `made`, the object after a change in that form, as the new object. An error: it cannot be converted back.
  /// May call `done` from inside. This object must live until then.
  void take(const Form& form, api::Json made, Taken done);

 private:
  /// Object and old object, converted by the webhook.
  struct Made {
    const Form* form = nullptr;
    api::Json object = {};
    api::Json old = {};
    std::optional<api::Status> fault = {};
  };

  /// State of a convert() that waits for the webhook.
  struct Conversion {
    Made made;
    Done done;
  };

  /// State of a take() that waits for the webhook.
  struct Change {
    Made made;
    Taken done;
  };

  bool needs_webhook(const Form& form) const;
  const Made* find(const Form& form) const;
  api::Json shown_as(const Form& form, api::Json object) const;
  void ask(const Form& form, const api::Json& object, std::move_only_function<void(api::StatusResult<api::Json>)> done);

  void on_object(const std::shared_ptr<Conversion>& conversion, api::StatusResult<api::Json> object);
  void on_old(Conversion& conversion, api::StatusResult<api::Json> old);
  void finish(Conversion& conversion, std::optional<api::Status> fault);
  void on_back(Change& change, api::StatusResult<api::Json> object);

  Core& core_;
  bool has_own_kind_ = false;  // a subresource whose objects have a kind of their own, which no version changes
  std::vector<Form> forms_;
  std::vector<webhooks::ResourceName> names_;
  api::Json object_;
  api::Json old_;
  std::vector<Made> made_;  // by webhooks, of the objects as they are now
};

}  // namespace spillway::apiserver
