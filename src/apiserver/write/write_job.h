// A create or an update, with its options and its result. Thread: loop. Source: spec "API server contract", 4.8, 8.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/request/exchange.h"
#include "apiserver/resource/resource_registry.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// The user and the manner of a write.
struct WriteContext {
  api::UserInfo user;
  std::string manager;  // manager in managedFields; empty: not recorded
  bool dry_run = false;
  ExchangePtr asked = nullptr;  // the request whose webhooks are called; null: none are
};

struct Written {
  ObjectPtr object;
  bool created = false;
  bool deleted = false;  // the update removed the last finalizer
  std::vector<std::string> warnings;
};

using WriteDone = std::move_only_function<void(api::StatusResult<Written>)>;

/// Conversion to and from the form of an endpoint that shows something other than the object (scale).
struct EndpointForm {
  std::function<api::Json(const api::Json& object)> show;
  /// Computes the object to store from the present one. 400, 422: impossible.
  std::function<api::StatusResult<api::Json>(const api::Json& object, const api::Json& shown, std::string_view name)>
      take;
};

struct CreateJob {
  const Resource* resource = nullptr;
  std::string ns;
  api::Json object;      // typed
  bool applied = false;  // the managedFields of the object are final (server-side apply)
  WriteContext context;
};

struct UpdateJob {
  const Resource* resource = nullptr;
  std::string ns;
  std::string name;
  SubresourceId part = SubresourceId::kNone;
  /// Computes the wanted object from the present one (both typed, in the form of `resource`). Called again after a lost
  /// race; an error ends the update.
  std::function<api::StatusResult<api::Json>(const api::Json& current)> change;
  /// The object to create if none exists. Empty: 404.
  std::function<api::StatusResult<api::Json>()> create;
  /// The uid that the object must have, else 409 (PUT). Empty: any; a change that sets another is 422 (patches).
  std::string uid;
  /// The change is the server's own: no isolation, no hooks, no validation; its uid and times are replaced by those of
  /// the stored object.
  bool trusted = false;
  /// The managedFields that `change` returns are final (server-side apply).
  bool applied = false;
  std::optional<EndpointForm> form = {};  // nullopt: the object itself
  WriteContext context;
};

}  // namespace spillway::apiserver
