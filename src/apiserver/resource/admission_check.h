// Port: checks that may refuse a write because of its user, after authorization and before validation; checks that take
// part in validation and are not pure functions; and checks of valid objects. Thread: loop. Source: spec "API server
// contract", 4.8, 19.5, 19.7.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// A write that has passed so far: the object is admitted, defaulted and valid.
struct ValidWrite {
  const api::UserInfo& user;
  const Resource& resource;
  SubresourceId part = SubresourceId::kNone;
  const api::Json& object;
  const api::Json* old = nullptr;  // null: the object is created
  std::vector<std::string>& warnings;
};

class AdmissionCheck {
 public:
  virtual ~AdmissionCheck() = default;

  /// `object` in stored form, with its final name and namespace. Default: admitted.
  virtual api::StatusResult<void> check_create(const api::UserInfo& /*user*/, const Resource& /*resource*/,
                                               const api::Json& /*object*/) const {
    return {};
  }

  virtual api::StatusResult<void> check_update(const api::UserInfo& /*user*/, const Resource& /*resource*/,
                                               SubresourceId /*part*/, const api::Json& /*object*/,
                                               const api::Json& /*old*/) const {
    return {};
  }

  /// True if this check may be skipped for updates of that object by that user that only renew the time of a heartbeat,
  /// because it would admit them. Called before each; the object has passed all checks in its present form. Default:
  /// false.
  virtual bool passes_renewal(const api::UserInfo& /*user*/, const Resource& /*resource*/, std::string_view /*ns*/,
                              std::string_view /*name*/) const {
    return false;
  }

  /// Called last, for valid objects only. Default: confirmed.
  virtual api::StatusResult<void> confirm(const ValidWrite& /*write*/) const { return {}; }

  /// Adds errors of an object that passed, where the hooks of its kind cannot detect them. Default: nothing.
  virtual void validate_create(const Resource& /*resource*/, const api::Json& /*object*/,
                               api::FieldErrors& /*errors*/) const {}

  virtual void validate_update(const Resource& /*resource*/, const api::Json& /*object*/, const api::Json& /*old*/,
                               api::FieldErrors& /*errors*/) const {}
};

}  // namespace spillway::apiserver
