#include "host/containerd/container_list.h"

#include "host/containerd/containers.grpc.pb.h"
#include "host/containerd/content_store.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <chrono>

namespace spillway::host {
namespace {

namespace records = ::containerd::services::containers::v1;

constexpr int kListedBytesMax = 64 << 20;  // some kilobytes of each container

}  // namespace

Result<std::set<std::string>> list_containers(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kListedBytesMax);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto stub = records::Containers::NewStub(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(kContainerListMax).count();
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(millis, GPR_TIMESPAN)));
  context.AddMetadata("containerd-namespace", std::string(kCriNamespace));
  records::ListContainersResponse answer;
  const grpc::Status status = stub->List(&context, records::ListContainersRequest(), &answer);
  if (!status.ok()) {
    const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    return Error{late ? ErrorCode::kTimeout : ErrorCode::kServiceUnavailable, status.error_message(), socket};
  }
  std::set<std::string> ids;
  for (const records::Container& each : answer.containers()) ids.insert(each.id());
  return ids;
}

}  // namespace spillway::host
