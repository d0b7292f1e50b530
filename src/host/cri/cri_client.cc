#include "host/cri/cri_client.h"

#include "host/cri/cri.grpc.pb.h"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::host {
namespace {

namespace cri = ::runtime::v1;

constexpr int kAnswerBytesMax = 16 << 20;
constexpr int kClientReconnectMinMs = 200;
constexpr int kClientReconnectMaxMs = 2000;
constexpr std::string_view kInterfaceVersion = "0.1.0";  // upstream's client's value; no runtime reads it

WallTime wall_time_of(std::int64_t nanos) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(nanoseconds(nanos)));
}

/// nullopt: it was not measured; a time must be above zero, and runtimes return 0 for layers that they have not
/// measured yet.
std::optional<agent::LayerUsage> usage_of(const cri::FilesystemUsage& usage) {
  if (usage.timestamp() <= 0) return std::nullopt;
  agent::LayerUsage layer{.mountpoint = usage.fs_id().mountpoint(),
                          .at = wall_time_of(usage.timestamp()),
                          .used_bytes = {},
                          .inodes_used = {}};
  if (usage.has_used_bytes()) layer.used_bytes = usage.used_bytes().value();
  if (usage.has_inodes_used()) layer.inodes_used = usage.inodes_used().value();
  return layer;
}

Error error_of(std::string_view call, const grpc::Status& status) {
  const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  const bool other = status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
  return {late ? ErrorCode::kTimeout : ErrorCode::kServiceUnavailable,
          fmt::format("{}: {}{}", call, status.error_message(), other ? " (it does not support CRI v1)" : ""),
          {}};
}

Outcome check_count(std::string_view what, int count) {
  if (static_cast<std::size_t>(count) <= CriClient::kListedMax) return {};
  return make_error(ErrorCode::kInvalid, "{} {}, of which no more than {} are read", count, what,
                    CriClient::kListedMax);
}

}  // namespace

struct CriClient::Impl {
  Impl(const std::string& path, const std::string& image_path, Duration timeout)
      : socket(path), round_timeout(timeout) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // every status is reported by us
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kAnswerBytesMax);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kClientReconnectMinMs);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kClientReconnectMinMs);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kClientReconnectMaxMs);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto channel = grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
    pods = cri::RuntimeService::NewStub(channel);
    images = cri::ImageService::NewStub(
        image_path.empty()
            ? channel
            : grpc::CreateCustomChannel("unix:" + image_path, grpc::InsecureChannelCredentials(), arguments));
  }

  /// Makes one call, begun by `start`, and waits for its answer.
  template <typename Start>
  Outcome call(std::string_view name, Start start) {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    {
      const std::scoped_lock lock(mutex);
      if (stopped) return make_error(ErrorCode::kServiceUnavailable, "{}: no longer wanted", name);
      under_way = &context;
    }
    const grpc::Status status = start(&context);
    {
      const std::scoped_lock lock(mutex);
      under_way = nullptr;
    }
    if (status.ok()) return {};
    Error error = error_of(name, status);
    error.at = socket;
    return error;
  }

  Outcome ask_version(agent::RuntimeReport& report) {
    cri::VersionRequest request;
    request.set_version(std::string(kInterfaceVersion));
    cri::VersionResponse version;
    SPILLWAY_TRY_VOID(call("Version", [&](auto* context) { return pods->Version(context, request, &version); }));
    report.runtime = version.runtime_name() + " " + version.runtime_version();
    return {};
  }

  Outcome ask_sandboxes(agent::RuntimeReport& report) {
    cri::ListPodSandboxResponse list;
    SPILLWAY_TRY_VOID(call("ListPodSandbox", [&](auto* context) { return pods->ListPodSandbox(context, {}, &list); }));
    SPILLWAY_TRY_VOID(check_count("sandboxes", list.items_size()));
    for (const cri::PodSandbox& each : list.items()) {
      report.sandboxes.push_back({.id = each.id(),
                                  .uid = each.metadata().uid(),
                                  .ready = each.state() == cri::SANDBOX_READY,
                                  .created = wall_time_of(each.created_at())});
    }
    return {};
  }

  Outcome ask_containers(agent::RuntimeReport& report) {
    cri::ListContainersResponse list;
    SPILLWAY_TRY_VOID(call("ListContainers", [&](auto* context) { return pods->ListContainers(context, {}, &list); }));
    SPILLWAY_TRY_VOID(check_count("containers", list.containers_size()));
    for (const cri::Container& each : list.containers()) {
      report.containers.push_back({.id = each.id(),
                                   .sandbox = each.pod_sandbox_id(),
                                   .name = each.metadata().name(),
                                   .running = each.state() == cri::CONTAINER_RUNNING,
                                   .created = wall_time_of(each.created_at())});
    }
    return {};
  }

  Outcome ask_layers(agent::RuntimeReport& report) {
    cri::ListContainerStatsResponse list;
    SPILLWAY_TRY_VOID(
        call("ListContainerStats", [&](auto* context) { return pods->ListContainerStats(context, {}, &list); }));
    SPILLWAY_TRY_VOID(check_count("statistics of containers", list.stats_size()));
    for (const cri::ContainerStats& each : list.stats()) {
      if (auto layer = usage_of(each.writable_layer())) {
        report.writable_layers.insert_or_assign(each.attributes().id(), *std::move(layer));
      }
    }
    return {};
  }

  Outcome ask_images(agent::RuntimeReport& report) {
    cri::ImageFsInfoResponse info;
    SPILLWAY_TRY_VOID(call("ImageFsInfo", [&](auto* context) { return images->ImageFsInfo(context, {}, &info); }));
    if (info.image_filesystems_size() > 0) report.images = usage_of(info.image_filesystems(0));
    const bool apart = info.container_filesystems_size() > 0 && report.images &&
                       info.container_filesystems(0).fs_id().mountpoint() != report.images->mountpoint;
    if (apart) report.containers_apart = usage_of(info.container_filesystems(0));
    return {};
  }

  std::string socket;
  Duration round_timeout;
  gpr_timespec deadline{};  // the round's
  std::unique_ptr<cri::RuntimeService::Stub> pods;
  std::unique_ptr<cri::ImageService::Stub> images;
  std::mutex mutex;  // guards the members below
  bool stopped = false;
  grpc::ClientContext* under_way = nullptr;
};

CriClient::CriClient(const std::string& socket, const std::string& image_socket, Duration round_timeout)
    : impl_(std::make_unique<Impl>(socket, image_socket, round_timeout)) {}

CriClient::~CriClient() = default;

Result<agent::RuntimeReport> CriClient::report() {
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(impl_->round_timeout).count();
  impl_->deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(millis, GPR_TIMESPAN));
  agent::RuntimeReport report;
  SPILLWAY_TRY_VOID(impl_->ask_version(report));
  SPILLWAY_TRY_VOID(impl_->ask_sandboxes(report));
  SPILLWAY_TRY_VOID(impl_->ask_containers(report));
  SPILLWAY_TRY_VOID(impl_->ask_layers(report));
  SPILLWAY_TRY_VOID(impl_->ask_images(report));
  return report;
}

void CriClient::stop() {
  const std::scoped_lock lock(impl_->mutex);
  impl_->stopped = true;
  if (impl_->under_way != nullptr) impl_->under_way->TryCancel();
}

}  // namespace spillway::host
