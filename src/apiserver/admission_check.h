// Port: what may refuse a write for who writes it, after authorization and before validation.
// Thread: loop. Source: spec "API server contract", 4.8, 19.5, 19.7.
#pragma once

#include "api/exchange.h"
#include "api/json.h"
#include "api/status.h"
#include "apiserver/resource_registry.h"

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
};

}  // namespace spillway::apiserver
