#include "host/probes/health_prober.h"

#include "base/followed_version.h"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

using End = containers::GrpcAnswer::End;

constexpr const char* kCheck = "/grpc.health.v1.Health/Check";
constexpr int kReconnectMs = 100;
constexpr unsigned char kTextField = 0x0a;    // field 1, as bytes
constexpr unsigned char kNumberField = 0x08;  // field 1, as a number
constexpr const char* kProbeCodeNames[] = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

void add_number(std::string& bytes, std::size_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

std::optional<std::uint64_t> take_number(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return number;
  }
  return std::nullopt;
}

/// Encodes a HealthCheckRequest, whose only field is the service.
grpc::ByteBuffer encoded(const std::string& service) {
  std::string bytes;
  if (!service.empty()) {
    bytes += static_cast<char>(kTextField);
    add_number(bytes, service.size());
    bytes += service;
  }
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

/// HealthCheckResponse: its only field is the status; without it 0. nullopt: this is none.
std::optional<int> status_in(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return std::nullopt;
  std::string text;
  for (const grpc::Slice& each : slices) text.append(reinterpret_cast<const char*>(each.begin()), each.size());
  std::string_view bytes = text;
  int status = 0;
  while (!bytes.empty()) {
    if (static_cast<unsigned char>(bytes.front()) != kNumberField) return std::nullopt;
    bytes.remove_prefix(1);
    const auto number = take_number(bytes);
    if (!number) return std::nullopt;
    status = static_cast<int>(static_cast<std::uint32_t>(*number));
  }
  return status;
}

std::string target_of(const agent::AskGrpc& command) {
  if (command.host.contains(':')) return fmt::format("ipv6:[{}]:{}", command.host, command.port);
  return fmt::format("ipv4:{}:{}", command.host, command.port);
}

}  // namespace

struct HealthProber::Impl {
  struct Call {
    std::uint64_t id = 0;
    grpc::ClientContext context;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<grpc::GenericStub> stub;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer response;
    grpc::Status status;
  };

  Impl(runtime::Loop& loop_, std::function<void(agent::HostEvent)> emit_) : loop(loop_), emit(std::move(emit_)) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // every status is reported by us
  }

  static containers::GrpcAnswer answer_of(const Call& call) {
    const grpc::Status& status = call.status;
    const auto code = static_cast<std::size_t>(status.error_code());
    if (status.ok()) {
      const auto said = status_in(call.response);
      if (said) return {.end = End::kAnswered, .status = *said, .text = {}};
      return {.end = End::kFailed, .status = 0, .text = "the answer is no HealthCheckResponse"};
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      const bool connected = call.channel->GetState(false) == GRPC_CHANNEL_READY;
      return {.end = connected ? End::kLate : End::kNotConnected, .status = 0, .text = {}};
    }
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
      return {.end = End::kUnimplemented, .status = 0, .text = status.error_message()};
    return {.end = End::kFailed,
            .status = 0,
            .text = fmt::format("rpc error: code = {} desc = {}",
                                kProbeCodeNames[code < std::size(kProbeCodeNames) ? code : 2], status.error_message())};
  }

  void run() {
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
      std::unique_ptr<Call> call(static_cast<Call*>(tag));
      agent::GrpcAnswered event{call->id, answer_of(*call)};
      const std::scoped_lock lock(mutex);
      under_way.erase(call.get());
      if (!stopped) post(self.lock(), std::move(event));
    }
  }

  void post(const std::weak_ptr<Impl>& alive, agent::GrpcAnswered event) {
    loop.post([alive, event = std::move(event)]() mutable {
      if (const auto there = alive.lock()) there->emit(std::move(event));
    });
  }

  runtime::Loop& loop;
  std::function<void(agent::HostEvent)> emit;
  std::weak_ptr<Impl> self;
  grpc::CompletionQueue queue;
  std::mutex mutex;  // guards the members below
  std::set<Call*> under_way;
  bool stopped = false;
  std::thread thread;
};

HealthProber::HealthProber(runtime::Loop& loop, std::function<void(agent::HostEvent)> emit)
    : loop_(loop), emit_(std::move(emit)) {}

HealthProber::~HealthProber() {
  if (!impl_) return;
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->stopped = true;
    for (Impl::Call* each : impl_->under_way) each->context.TryCancel();
  }
  impl_->queue.Shutdown();
  impl_->thread.join();
}

void HealthProber::ask(const agent::AskGrpc& command) {
  if (!impl_) {
    impl_ = std::make_shared<Impl>(loop_, emit_);
    impl_->self = impl_;
    impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
  }
  auto call = std::make_unique<Impl::Call>();
  call->id = command.id;
  {
    const std::scoped_lock lock(impl_->mutex);
    if (impl_->under_way.size() >= kUnderWayMax)
      return impl_->post(impl_,
                         {command.id, {.end = End::kFailed, .status = 0, .text = "too many probes are under way"}});
    impl_->under_way.insert(call.get());
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kAnswerMax);
  arguments.SetUserAgentPrefix(fmt::format("kube-probe/{}", kFollowedRelease));
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
  call->channel = grpc::CreateCustomChannel(target_of(command), grpc::InsecureChannelCredentials(), arguments);
  call->stub = std::make_unique<grpc::GenericStub>(call->channel);
  call->context.set_wait_for_ready(true);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(command.timeout).count();
  call->context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(millis, GPR_TIMESPAN)));
  call->reader = call->stub->PrepareUnaryCall(&call->context, kCheck, encoded(command.service), &impl_->queue);
  call->reader->StartCall();
  Impl::Call* tag = call.release();
  tag->reader->Finish(&tag->response, &tag->status, tag);
}

}  // namespace spillway::host
