// Port: what may refuse a write for who writes it, after authorization and before validation; and what takes part in
// validation though it is no pure function.
// Thread: loop. Source: spec "API server contract", 4.8, 19.5, 19.7.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"

#include <string>

namespace spillway::apiserver {

class AdmissionCheck {
 public:
  virtual ~AdmissionCheck() = default;
  /// `object` in stored form, with its final name and namespace.
  virtual api::StatusResult<void> check_create(const api::UserInfo& user, const Resource& resource,
                                               const api::Json& object) const = 0;
  virtual api::StatusResult<void> check_update(const api::UserInfo& user, const Resource& resource, SubresourceId part,
                                               const api::Json& object, const api::Json& old) const = 0;

  /// Adds what is wrong with an object that passed, where the hooks of its kind cannot see it. Default: nothing.
  virtual void validate_create(const Resource& /*resource*/, const api::Json& /*object*/,
                               api::FieldErrors& /*errors*/) const {}

  virtual void validate_update(const Resource& /*resource*/, const api::Json& /*object*/, const api::Json& /*old*/,
                               api::FieldErrors& /*errors*/) const {}
};

}  // namespace spillway::apiserver
