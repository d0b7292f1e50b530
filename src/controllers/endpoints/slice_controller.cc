#include "controllers/endpoints/slice_controller.h"

#include <optional>
#include <utility>

namespace spillway::controllers {

SliceController::SliceController(Shared shared, client::Informer<api::Service>& services,
                                 client::Informer<api::EndpointSlice>& slices, const SelectedPods* selected,
                                 telemetry::Registry& metrics, std::string_view name)
    : ServiceController(shared, services, selected, metrics, name), writes_(shared.client, slices.cache()) {
  slices.cache().listen({[this](const auto& before, const auto& after, Now now) {
    slices_.change(before, after, [&](const std::string& key) { enqueue(key, now); });
  }});
}

void SliceController::carry_out(const std::string& key, endpoints::SlicePlan plan, OnFailure on_failure, Now now) {
  writes_.carry_out(
      key, std::move(plan),
      [this, key, on_failure = std::move(on_failure)](const std::optional<SliceWrites::Failure>& failure, Now then) {
        on_synced(key, failure ? SyncResult::kRefused : SyncResult::kDone);
        if (!failure) {
          end(key, then);
          return arm();
        }
        // Expected: another client wrote first, the namespace is gone, or writes are off (client::ShadowEngine).
        const ErrorCode code = failure->error.code;
        const bool expected = code == ErrorCode::kNotFound || code == ErrorCode::kConflict;
        if (!expected) on_failure(*failure, then);
        give_up(key, failure->verb, failure->error, then);
      },
      now);
}

}  // namespace spillway::controllers
