#include "host/cri/cri_calls.h"

#include "agent/cri/runtime_driver.h"
#include "host/cri/cri.grpc.pb.h"
#include "host/cri/cri_document.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <charconv>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace cri = ::runtime::v1;
namespace pb = google::protobuf;

constexpr int kMessageBytesMax = 16 << 20;
constexpr int kStartWaitMs = 10'000;
constexpr int kReconnectMinMs = 100;
constexpr int kReconnectMaxMs = 1000;
constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

Error error_of(const grpc::Status& status) {
  const auto code = static_cast<std::size_t>(status.error_code());
  ErrorCode mapped = ErrorCode::kInternalError;
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) mapped = ErrorCode::kNotFound;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) mapped = ErrorCode::kTimeout;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) mapped = ErrorCode::kServiceUnavailable;
  const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return {mapped, late ? "context deadline exceeded" : status.error_message(),
          std::string(code < kCodeNames.size() ? kCodeNames[code] : kCodeNames[2])};
}

const pb::MethodDescriptor* find_method(std::string_view name) {
  const auto* pool = pb::DescriptorPool::generated_pool();
  for (const char* service : {"runtime.v1.RuntimeService", "runtime.v1.ImageService"}) {
    const pb::ServiceDescriptor* described = pool->FindServiceByName(service);
    const pb::MethodDescriptor* found = described == nullptr ? nullptr : described->FindMethodByName(std::string(name));
    if (found != nullptr) return found;
  }
  return nullptr;
}

std::unique_ptr<pb::Message> make_message(const pb::Descriptor* type) {
  return std::unique_ptr<pb::Message>(pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

Result<grpc::ByteBuffer> encode(const pb::Descriptor* type, const api::Json& request) {
  const auto message = make_message(type);
  const auto parsed = pb::util::JsonStringToMessage(api::to_text(request), message.get());
  if (!parsed.ok())
    return make_error(ErrorCode::kInvalid, "{}: {}", type->name(),
                      std::string_view(parsed.message().data(), parsed.message().size()));
  const grpc::Slice slice(message->SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

Result<api::Json> decode(const pb::Descriptor* type, const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return invalid("answer", "it cannot be read");
  std::string text;
  for (const grpc::Slice& each : slices) text.append(reinterpret_cast<const char*>(each.begin()), each.size());
  const auto message = make_message(type);
  if (!message->ParseFromString(text)) return invalid("answer", "it is no {}", type->name());
  return document_of(*message);
}

}  // namespace

struct CriCalls::Impl : std::enable_shared_from_this<Impl> {
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::Status status;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    const pb::Descriptor* answers = nullptr;
    Answer answer;
  };

  Impl(runtime::Loop& loop_, const std::string& path) : loop(loop_) {
    // The services' descriptions are looked up by name: this one keeps them in the program.
    ignored_descriptor = cri::VersionRequest::descriptor();
    gpr_set_log_function([](gpr_log_func_args*) {});  // every status is reported by us
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMinMs);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMinMs);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments));
    thread = std::thread([this] { run(); });
  }

  void run() {
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
      std::unique_ptr<Call> call(static_cast<Call*>(tag));
      {
        const std::scoped_lock lock(mutex);
        under_way.erase(call.get());
        if (stopped) continue;
      }
      Result<api::Json> result =
          call->status.ok() ? decode(call->answers, call->response) : Result<api::Json>(error_of(call->status));
      post(std::move(call->answer), std::move(result));
    }
  }

  void post(Answer answer, Result<api::Json> result) {
    loop.post([self = weak_from_this(), answer = std::move(answer), result = std::move(result)]() mutable {
      if (!self.expired()) answer(std::move(result));
    });
  }

  runtime::Loop& loop;
  const pb::Descriptor* ignored_descriptor = nullptr;
  std::unique_ptr<grpc::GenericStub> stub;
  grpc::CompletionQueue queue;
  std::thread thread;
  std::mutex mutex;  // guards the members below
  std::set<Call*> under_way;
  bool stopped = false;
};

CriCalls::CriCalls(runtime::Loop& loop, const std::string& socket) : impl_(std::make_shared<Impl>(loop, socket)) {}

CriCalls::~CriCalls() {
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->stopped = true;
    for (Impl::Call* each : impl_->under_way) each->context.TryCancel();
  }
  impl_->queue.Shutdown();
  impl_->thread.join();
}

void CriCalls::call(std::string_view method, api::Json request, Duration deadline, Answer answer) {
  const pb::MethodDescriptor* described = find_method(method);
  if (described == nullptr)
    return impl_->post(std::move(answer), make_error(ErrorCode::kInvalid, "{} is no call of the CRI", method));
  auto encoded = encode(described->input_type(), request);
  if (!encoded) return impl_->post(std::move(answer), encoded.error());
  auto call = std::make_unique<Impl::Call>();
  call->answers = described->output_type();
  call->answer = std::move(answer);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
  call->context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(millis, GPR_TIMESPAN)));
  {
    const std::scoped_lock lock(impl_->mutex);
    if (impl_->under_way.size() >= kUnderWayMax)
      return impl_->post(std::move(call->answer),
                         Error{ErrorCode::kServiceUnavailable, "too many calls are under way", "Unavailable"});
    impl_->under_way.insert(call.get());
  }
  call->reader = impl_->stub->PrepareUnaryCall(
      &call->context, fmt::format("/{}/{}", described->service()->full_name(), described->name()), *encoded,
      &impl_->queue);
  call->reader->StartCall();
  Impl::Call* tag = call.release();
  tag->reader->Finish(&tag->response, &tag->status, tag);
}

namespace {

std::unique_ptr<cri::RuntimeService::Stub> connect_at_start(const std::string& socket) {
  gpr_set_log_function([](gpr_log_func_args*) {});
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return cri::RuntimeService::NewStub(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
}

void limit_wait(grpc::ClientContext& context) {
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(kStartWaitMs, GPR_TIMESPAN)));
}

Error no_answer(const std::string& socket, const grpc::Status& status) {
  return {ErrorCode::kServiceUnavailable,
          fmt::format("the container runtime does not answer: {}", status.error_message()), socket};
}

}  // namespace

Result<std::optional<cgroups::CgroupDriver>> ask_cgroup_driver(const std::string& socket) {
  const auto stub = connect_at_start(socket);
  grpc::ClientContext asks_config;
  limit_wait(asks_config);
  cri::RuntimeConfigResponse config;
  const grpc::Status configured = stub->RuntimeConfig(&asks_config, cri::Nothing(), &config);
  if (configured.ok()) return agent::driver_in_config(document_of(config));
  if (configured.error_code() != grpc::StatusCode::UNIMPLEMENTED) return no_answer(socket, configured);
  grpc::ClientContext asks_status;
  limit_wait(asks_status);
  cri::StatusRequest request;
  request.set_verbose(true);
  cri::StatusResponse status;
  const grpc::Status answered = stub->Status(&asks_status, request, &status);
  if (!answered.ok()) return no_answer(socket, answered);
  const auto found = status.info().find("config");
  return found == status.info().end() ? std::nullopt : agent::driver_in_status(found->second);
}

Result<RuntimeName> ask_runtime_name(const std::string& socket) {
  const auto stub = connect_at_start(socket);
  grpc::ClientContext context;
  limit_wait(context);
  cri::VersionRequest request;
  request.set_version("0.1.0");  // upstream's client's value; no runtime reads it
  cri::VersionResponse answer;
  const grpc::Status status = stub->Version(&context, request, &answer);
  if (!status.ok()) return no_answer(socket, status);
  return RuntimeName{answer.runtime_name(), answer.runtime_version()};
}

std::string rpc_text(const Error& error) {
  return fmt::format("rpc error: code = {} desc = {}", error.at.empty() ? "Unknown" : error.at, error.message);
}

const api::Json::Array& list_in(const api::Json& document, std::string_view member) {
  static const api::Json::Array kNone;
  const api::Json* found = document.find(member);
  const api::Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNone : *list;
}

std::int64_t number_in(const api::Json& document, std::initializer_list<std::string_view> path) {
  const api::Json* found = document.at(path);
  if (found == nullptr) return 0;
  if (const auto number = found->if_int64()) return *number;
  const std::string* text = found->if_string();
  std::int64_t value = 0;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

}  // namespace spillway::host
