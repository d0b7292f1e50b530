// Bounds of what clients may store as FlowSchemas and PriorityLevelConfigurations: every request is compared with them.
// The server's own objects do not count. Thread: loop. Source: policy/flow/schema.h.
#pragma once

#include "apiserver/flow/flow_feed.h"
#include "apiserver/resource/admission_check.h"

namespace spillway::apiserver {

class FlowLimits final : public AdmissionCheck {
 public:
  explicit FlowLimits(const FlowFeed& feed) : feed_(feed) {}

  api::StatusResult<void> check_create(const api::UserInfo& user, const Resource& resource,
                                       const api::Json& object) const override;
  api::StatusResult<void> check_update(const api::UserInfo& user, const Resource& resource, SubresourceId part,
                                       const api::Json& object, const api::Json& old) const override;

  bool passes_renewal(const api::UserInfo& /*user*/, const Resource& /*resource*/, std::string_view /*ns*/,
                      std::string_view /*name*/) const override {
    return true;
  }

 private:
  api::StatusResult<void> check_words(const Resource& resource, const api::Json& object) const;

  const FlowFeed& feed_;
};

}  // namespace spillway::apiserver
