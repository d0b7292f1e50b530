// The base of the controllers that write EndpointSlices: the slices they wrote, by Service, and their writes, with the
// retry after a refused one. Thread: loop. Bounds: as ServiceController.
#pragma once

#include "api/object/endpoints.h"
#include "controllers/endpoints/service_controller.h"
#include "controllers/endpoints/slice_writes.h"
#include "controllers/endpoints/slices_by_service.h"

#include <functional>
#include <string>
#include <string_view>

namespace spillway::controllers {

class SliceController : public ServiceController {
 protected:
  /// `slices`: those of this controller alone.
  SliceController(Shared shared, client::Informer<api::Service>& services, client::Informer<api::EndpointSlice>& slices,
                  const SelectedPods* selected, telemetry::Registry& metrics, std::string_view name);

  /// Reports a refused write to users, if the cause will not end by itself.
  using OnFailure = std::function<void(const SliceWrites::Failure&, Now)>;

  /// Carries the plan out, and then ends the sync of `key` or requeues it.
  void carry_out(const std::string& key, endpoints::SlicePlan plan, OnFailure on_failure, Now now);

  enum class SyncResult { kDone, kRefused };

  /// carry_out() has ended.
  virtual void on_synced(const std::string& /*key*/, SyncResult /*result*/) {}

  SlicesByService slices_;
  SliceWrites writes_;
};

}  // namespace spillway::controllers
