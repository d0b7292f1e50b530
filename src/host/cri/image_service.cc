#include "host/cri/image_service.h"

#include "api/json/json.h"
#include "host/cri/cri.grpc.pb.h"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <tuple>
#include <utility>

namespace spillway::host {
namespace {

namespace cri = ::runtime::v1;

constexpr int kImageAnswerBytesMax = 16 << 20;

Error image_error(std::string_view call, const grpc::Status& status) {
  ErrorCode code = ErrorCode::kInternalError;
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) code = ErrorCode::kNotFound;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) code = ErrorCode::kServiceUnavailable;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) code = ErrorCode::kTimeout;
  return {code, fmt::format("{}: {}", call, status.error_message()), {}};
}

std::vector<std::string> sorted_names(const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::vector<std::string> made(names.begin(), names.end());
  std::ranges::sort(made);
  return made;
}

/// True if one of the names is the image: "docker.io/library/busybox@sha256:…" and "sha256:…" name the same one.
bool is_named_in(const std::set<std::string>& names, const RuntimeImage& image) {
  const auto has = [&names](const std::string& name) { return names.contains(name); };
  return has(image.id) || std::ranges::any_of(image.tags, has) || std::ranges::any_of(image.digests, has);
}

}  // namespace

struct ImageService::Impl {
  explicit Impl(const std::string& path) : socket(path) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // every status is reported by us
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kImageAnswerBytesMax);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto channel = grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
    pods = cri::RuntimeService::NewStub(channel);
    images = cri::ImageService::NewStub(channel);
  }

  /// Makes one call, begun by `start`, and waits for its answer.
  template <typename Start>
  Outcome call(std::string_view name, Duration limit, Start start) {
    grpc::ClientContext context;
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(millis, GPR_TIMESPAN)));
    const grpc::Status status = start(&context);
    if (status.ok()) return {};
    Error error = image_error(name, status);
    error.at = socket;
    return error;
  }

  std::string socket;
  std::unique_ptr<cri::RuntimeService::Stub> pods;
  std::unique_ptr<cri::ImageService::Stub> images;
};

ImageService::ImageService(const std::string& socket) : impl_(std::make_unique<Impl>(socket)) {}

ImageService::~ImageService() = default;

Result<std::vector<RuntimeImage>> ImageService::list() {
  cri::ListImagesResponse answer;
  SPILLWAY_TRY_VOID(impl_->call("ListImages", kCallMax,
                                [&](auto* context) { return impl_->images->ListImages(context, {}, &answer); }));
  std::vector<RuntimeImage> made;
  for (const cri::Image& each : answer.images()) {
    made.push_back({.id = each.id(),
                    .tags = sorted_names(each.repo_tags()),
                    .digests = sorted_names(each.repo_digests()),
                    .size_bytes = each.size(),
                    .pinned = each.pinned()});
  }
  std::ranges::sort(made, {}, [](const RuntimeImage& image) { return std::tie(image.tags, image.id); });
  return made;
}

Result<bool> ImageService::has(const std::string& name) {
  cri::ImageRequest request;
  request.mutable_image()->set_image(name);
  cri::ImageStatusResponse answer;
  SPILLWAY_TRY_VOID(impl_->call("ImageStatus", kCallMax,
                                [&](auto* context) { return impl_->images->ImageStatus(context, request, &answer); }));
  return answer.has_image() && !answer.image().id().empty();
}

Result<std::string> ImageService::pull(const std::string& name) {
  cri::PullImageRequest request;
  request.mutable_image()->set_image(name);
  cri::PullImageResponse answer;
  SPILLWAY_TRY_VOID(impl_->call("PullImage", kPullMax,
                                [&](auto* context) { return impl_->images->PullImage(context, request, &answer); }));
  return answer.image_ref();
}

Outcome ImageService::remove(const std::string& id) {
  cri::ImageRequest request;
  request.mutable_image()->set_image(id);
  cri::Nothing answer;
  return impl_->call("RemoveImage", kCallMax,
                     [&](auto* context) { return impl_->images->RemoveImage(context, request, &answer); });
}

Result<std::string> ImageService::sandbox_image() {
  cri::StatusRequest request;
  request.set_verbose(true);
  cri::StatusResponse answer;
  SPILLWAY_TRY_VOID(
      impl_->call("Status", kCallMax, [&](auto* context) { return impl_->pods->Status(context, request, &answer); }));
  const auto found = answer.info().find("config");
  if (found == answer.info().end()) return std::string();
  const auto config = api::parse_json(found->second);
  return config ? std::string(config->string_at({"sandboxImage"})) : std::string();
}

Result<std::set<std::string>> ImageService::in_use() {
  cri::ListContainersResponse answer;
  SPILLWAY_TRY_VOID(impl_->call("ListContainers", kCallMax,
                                [&](auto* context) { return impl_->pods->ListContainers(context, {}, &answer); }));
  std::set<std::string> names;
  for (const cri::Container& each : answer.containers()) {
    names.insert(each.image().image());
    names.insert(each.image_ref());
  }
  return names;
}

std::vector<RuntimeImage> unused_images(const std::vector<RuntimeImage>& images, const std::set<std::string>& in_use,
                                        const std::set<std::string>& kept) {
  std::vector<RuntimeImage> unused;
  std::ranges::copy_if(images, std::back_inserter(unused), [&](const RuntimeImage& image) {
    return !image.pinned && !is_named_in(in_use, image) && !is_named_in(kept, image);
  });
  return unused;
}

}  // namespace spillway::host
