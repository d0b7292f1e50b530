// A container runtime whose images are served at another socket (imageServiceEndpoint): calls of the image service go
// there, all others to the runtime. Thread: loop. Source: Kubernetes docs, "Container Runtime Interface (CRI)".
#pragma once

#include "host/cri/cri_calls.h"

#include <memory>
#include <string_view>

namespace spillway::host {

/// True for the methods of the image service: "PullImage", "ListImages".
bool is_image_method(std::string_view method);

class ImageEndpoint final : public RuntimeCalls {
 public:
  ImageEndpoint(std::unique_ptr<RuntimeCalls> runtime, std::unique_ptr<RuntimeCalls> images);

  void call(std::string_view method, api::Json request, Duration deadline, Answer answer) override;

 private:
  std::unique_ptr<RuntimeCalls> runtime_;
  std::unique_ptr<RuntimeCalls> images_;
};

}  // namespace spillway::host
