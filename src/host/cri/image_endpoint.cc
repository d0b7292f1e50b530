#include "host/cri/image_endpoint.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::host {

bool is_image_method(std::string_view method) {
  constexpr auto kMethods =
      std::to_array<std::string_view>({"ImageFsInfo", "ImageStatus", "ListImages", "PullImage", "RemoveImage"});
  return std::ranges::find(kMethods, method) != kMethods.end();
}

ImageEndpoint::ImageEndpoint(std::unique_ptr<RuntimeCalls> runtime, std::unique_ptr<RuntimeCalls> images)
    : runtime_(std::move(runtime)), images_(std::move(images)) {}

void ImageEndpoint::call(std::string_view method, api::Json request, Duration deadline, Answer answer) {
  RuntimeCalls& calls = is_image_method(method) ? *images_ : *runtime_;
  calls.call(method, std::move(request), deadline, std::move(answer));
}

}  // namespace spillway::host
