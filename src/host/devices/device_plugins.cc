#include "host/devices/device_plugins.h"

#include "agent/devices/device_pool.h"
#include "base/alive.h"
#include "base/check.h"
#include "base/unique_fd.h"
#include "host/devices/device_plugin.grpc.pb.h"
#include "host/devices/plugin_directory.h"
#include "host/files/checkpoint_files.h"
#include "host/kernel/kernel_file.h"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::string_view kSocketName = "kubelet.sock";
constexpr int kPluginsWaiting = 64;
constexpr Duration kAcceptAgainAfter = seconds(1);
constexpr std::chrono::seconds kConnectTimeout{10};
constexpr std::chrono::seconds kCallTimeout{30};
constexpr int kPluginMessageBytesMax = 16 << 20;

/// The status in the format of Go's gRPC, as in upstream's messages.
std::string text_of(const grpc::Status& status) {
  static constexpr std::array<std::string_view, 17> kNames{
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  const auto code = static_cast<std::size_t>(status.error_code());
  return fmt::format("rpc error: code = {} desc = {}", code < kNames.size() ? kNames[code] : "Unknown",
                     status.error_message());
}

Error plugin_error(const grpc::Status& status) {
  return {ErrorCode::kServiceUnavailable, text_of(status), {}};
}

std::vector<agent::Device> devices_of(const v1beta1::ListAndWatchResponse& response) {
  std::vector<agent::Device> devices;
  for (const v1beta1::Device& each : response.devices()) {
    if (devices.size() == agent::kDevicesPerPluginMax) break;
    agent::Device& device = devices.emplace_back();
    device.id = each.id();
    device.healthy = each.health() == "Healthy";
    for (const v1beta1::NUMANode& node : each.topology().nodes()) device.numa_nodes.push_back(node.id());
  }
  return devices;
}

Result<agent::DeviceGrant> grant_of(const v1beta1::AllocateResponse& response) {
  if (response.container_responses().empty()) {
    return make_error(ErrorCode::kServiceUnavailable, "no containers return in allocation response");
  }
  const v1beta1::ContainerAllocateResponse& given = response.container_responses(0);
  agent::DeviceGrant grant;
  for (const auto& [name, value] : given.envs()) grant.env.insert_or_assign(name, value);
  for (const auto& [name, value] : given.annotations()) grant.annotations.insert_or_assign(name, value);
  for (const v1beta1::Mount& each : given.mounts()) {
    grant.mounts.push_back({each.container_path(), each.host_path(), each.read_only()});
  }
  for (const v1beta1::DeviceSpec& each : given.devices()) {
    grant.nodes.push_back({each.container_path(), each.host_path(), each.permissions()});
  }
  for (const v1beta1::CDIDevice& each : given.cdi_devices()) grant.cdi_devices.push_back(each.name());
  return grant;
}

/// Counts calls that gRPC's threads have not finished. Thread: any.
class InFlight {
 public:
  void enter() {
    const std::scoped_lock lock(mutex_);
    ++count_;
  }

  void exit() {
    const std::scoped_lock lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
};

/// State that must outlive the service until gRPC's threads have finished.
struct Shared {
  runtime::Loop& loop;
  InFlight in_flight;
};

/// A unary call under way; deleted by its completion.
template <typename Request, typename Response>
struct Call {
  grpc::ClientContext context;
  Request request;
  Response response;
};

/// ListAndWatch of one plugin. Only the newest list is kept until the loop takes it. Thread: gRPC's, take() the loop.
class DeviceStream final : public grpc::ClientReadReactor<v1beta1::ListAndWatchResponse> {
 public:
  /// `listed` and `ended` run on gRPC's threads; after `ended` the stream is not touched by them any more.
  DeviceStream(std::function<void()> listed, std::function<void(const grpc::Status&)> ended)
      : listed_(std::move(listed)), ended_(std::move(ended)) {}

  void begin(v1beta1::DevicePlugin::Stub& stub) {
    stub.async()->ListAndWatch(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void cancel() { context_.TryCancel(); }

  std::optional<std::vector<agent::Device>> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(newest_, std::nullopt);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    bool is_first = false;
    {
      const std::scoped_lock lock(mutex_);
      is_first = !newest_;
      newest_ = devices_of(response_);
    }
    if (is_first) listed_();
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    const auto ended = std::move(ended_);  // the loop may destroy this stream before the call returns
    ended(status);
  }

  std::function<void()> listed_;
  std::function<void(const grpc::Status&)> ended_;
  grpc::ClientContext context_;
  v1beta1::Empty request_;
  v1beta1::ListAndWatchResponse response_;
  std::mutex mutex_;
  std::optional<std::vector<agent::Device>> newest_;
};

struct Plugin {
  std::string resource;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  std::shared_ptr<DeviceStream> stream;
};

struct Registered {
  std::string resource;
  std::string endpoint;
};

/// kubelet.sock. Thread: gRPC's.
class RegistrationService final : public v1beta1::Registration::CallbackService {
 public:
  explicit RegistrationService(std::function<void(Registered)> registered) : registered_(std::move(registered)) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context, const v1beta1::RegisterRequest* request,
                                     v1beta1::Empty*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const Outcome good = agent::check_registration(request->version(), request->resource_name(), request->endpoint());
    if (good) {
      registered_({request->resource_name(), request->endpoint()});
      reactor->Finish(grpc::Status::OK);
    } else {
      reactor->Finish(grpc::Status(grpc::StatusCode::UNKNOWN, good.error().message));
    }
    return reactor;
  }

 private:
  std::function<void(Registered)> registered_;
};

}  // namespace

struct DevicePlugins::Impl {
  Impl(runtime::Loop& on, PluginDirectory in, Receiver& to, telemetry::Log logger)
      : loop(on),
        directory(std::move(in)),
        receiver(to),
        log(std::move(logger)),
        checkpoints(on, directory.path(), log) {}

  ~Impl() {
    alive.end();
    if (listener) loop.unwatch_fd(listener.get());
    if (server) server->Shutdown(std::chrono::system_clock::time_point{});
    for (const auto& [id, cancel] : cancels) cancel();
    for (const auto& [id, plugin] : plugins) {
      if (plugin.stream) plugin.stream->cancel();
    }
    for (const auto& stream : ending) stream.second->cancel();
    shared->in_flight.wait();
    directory.remove_socket(kSocketName);
  }

  /// The socket is opened by this object: gRPC, its threads and its memory start with the first plugin.
  Outcome listen() {
    const std::string path = directory.path_of(kSocketName);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);  // the length has been checked
    listener.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener ||
        ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||  // NOLINT
        ::listen(listener.get(), kPluginsWaiting) != 0) {
      return errno_error(path, errno);
    }
    loop.watch_fd(listener.get(), POLLIN, [this] { on_connection(); });
    return {};
  }

  void on_connection() {
    const int connection = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) {
      if (!server) start_server();
      return grpc::AddInsecureChannelFromFd(server.get(), connection);
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    log.warning("device plugin cannot connect", {{"error", errno_error(std::string(kSocketName), errno).text()}});
    loop.rewatch_fd(listener.get(), 0);
    loop.at(loop.now().mono + kAcceptAgainAfter, alive.guard([this] { loop.rewatch_fd(listener.get(), POLLIN); }));
  }

  void start_server() {
    gpr_set_log_function([](gpr_log_func_args*) {});  // every status is reported by us
    service = std::make_unique<RegistrationService>([this, watch = alive.ref()](Registered request) {
      shared->loop.post(watch.guard([this, request = std::move(request)] { on_register(request); }));
    });
    grpc::ServerBuilder builder;
    builder.RegisterService(service.get());
    builder.SetMaxReceiveMessageSize(1 << 16);
    server = builder.BuildAndStart();
    SPILLWAY_CHECK(server != nullptr);  // cannot fail: without a TCP port there is nothing that could be in use
  }

  void on_register(const Registered& request) {
    if (plugins.size() >= 2 * agent::kPluginsMax) {
      log.warning("device plugin rejected", {{"resource", request.resource}, {"error", "too many of them"}});
      return;
    }
    for (auto it = plugins.begin(); it != plugins.end();) {
      it = it->second.resource == request.resource ? drop(it) : std::next(it);
    }
    const agent::PluginId id = ++last_plugin;
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kPluginMessageBytesMax);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel = grpc::CreateCustomChannel("unix:" + directory.path_of(request.endpoint),
                                                   grpc::InsecureChannelCredentials(), arguments);
    Plugin& plugin = plugins[id];
    plugin.resource = request.resource;
    plugin.stub = v1beta1::DevicePlugin::NewStub(channel);
    call<v1beta1::Empty, v1beta1::DevicePluginOptions>(
        id, kConnectTimeout, {},
        [](auto& stub, auto* context, auto* sent, auto* response, auto done) {
          stub.async()->GetDevicePluginOptions(context, sent, response, std::move(done));
        },
        [this, id](const grpc::Status& status, const v1beta1::DevicePluginOptions& options) {
          on_options(id, status, options);
        });
  }

  void on_options(agent::PluginId id, const grpc::Status& status, const v1beta1::DevicePluginOptions& options) {
    const auto plugin = plugins.find(id);
    if (plugin == plugins.end()) return;
    if (!status.ok()) {
      log.warning("device plugin registered but did not answer",
                  {{"resource", plugin->second.resource}, {"error", text_of(status)}});
      plugins.erase(plugin);
      return;
    }
    receiver.on_device_event(
        agent::PluginRegistered{id,
                                plugin->second.resource,
                                {.pre_start_required = options.pre_start_required(),
                                 .preferred_allocation_available = options.get_preferred_allocation_available()}});
    listen_to(id, plugin->second);
  }

  void listen_to(agent::PluginId id, Plugin& plugin) {
    const auto listed = [this, held = shared, watch = alive.ref(), id] {
      held->loop.post(watch.guard([this, id] { on_listed(id); }));
    };
    const auto ended = [this, held = shared, watch = alive.ref(), id](const grpc::Status& status) {
      held->loop.post(watch.guard([this, id, why = text_of(status)] { on_ended(id, why); }));
      held->in_flight.exit();
    };
    shared->in_flight.enter();
    plugin.stream = std::make_shared<DeviceStream>(listed, ended);
    plugin.stream->begin(*plugin.stub);
  }

  void on_listed(agent::PluginId id) {
    const auto plugin = plugins.find(id);
    if (plugin == plugins.end()) return;
    if (auto devices = plugin->second.stream->take()) {
      receiver.on_device_event(agent::PluginListed{id, std::move(*devices)});
    }
  }

  void on_ended(agent::PluginId id, const std::string& why) {
    if (const auto plugin = plugins.find(id); plugin != plugins.end()) {
      log.info("device plugin ended its stream", {{"resource", plugin->second.resource}, {"error", why}});
      plugins.erase(plugin);
      receiver.on_device_event(agent::PluginGone{id});
    }
    ending.erase(id);
  }

  /// Another registration replaces the plugin. The stream lives until gRPC has finished with it.
  std::map<agent::PluginId, Plugin>::iterator drop(std::map<agent::PluginId, Plugin>::iterator plugin) {
    if (plugin->second.stream) {
      plugin->second.stream->cancel();
      ending.emplace(plugin->first, plugin->second.stream);
    }
    return plugins.erase(plugin);
  }

  /// `then` runs on the loop, unless this object is gone by then; at once if the plugin is.
  template <typename Request, typename Response, typename Start, typename Then>
  void call(agent::PluginId id, std::chrono::seconds timeout, Request request, Start start, Then then) {
    const auto plugin = plugins.find(id);
    if (plugin == plugins.end()) {
      loop.post(alive.guard([then]() mutable {
        then(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the device plugin has stopped"), Response());
      }));
      return;
    }
    const auto pending = std::make_shared<Call<Request, Response>>();
    pending->request = std::move(request);
    pending->context.set_deadline(std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(loop.now().wall.time_since_epoch() + timeout)));
    pending->context.set_wait_for_ready(true);
    const std::uint64_t number = ++last_call;
    cancels[number] = [pending] { pending->context.TryCancel(); };
    shared->in_flight.enter();
    start(*plugin->second.stub, &pending->context, &pending->request, &pending->response,
          [this, held = shared, watch = alive.ref(), pending, number, then](const grpc::Status& status) {
            held->loop.post(watch.guard([this, pending, number, then, status]() mutable {
              cancels.erase(number);
              then(status, pending->response);
            }));
            held->in_flight.exit();
          });
  }

  void on_command(const agent::AllocateDevices& command) {
    v1beta1::AllocateRequest request;
    auto* container = request.add_container_requests();
    for (const std::string& id : command.ids) container->add_devicesids(id);
    call<v1beta1::AllocateRequest, v1beta1::AllocateResponse>(
        command.plugin, kCallTimeout, std::move(request),
        [](auto& stub, auto* context, auto* sent, auto* response, auto done) {
          stub.async()->Allocate(context, sent, response, std::move(done));
        },
        [this, number = command.call, asked = loop.now().mono](const grpc::Status& status,
                                                               const v1beta1::AllocateResponse& response) {
          receiver.on_device_event(agent::DevicesAllocated{
              number, status.ok() ? grant_of(response) : Result<agent::DeviceGrant>(plugin_error(status)),
              loop.now().mono - asked});
        });
  }

  void on_command(const agent::PreferDevices& command) {
    v1beta1::PreferredAllocationRequest request;
    auto* container = request.add_container_requests();
    for (const std::string& id : command.available) container->add_available_deviceids(id);
    for (const std::string& id : command.must_include) container->add_must_include_deviceids(id);
    container->set_allocation_size(command.size);
    call<v1beta1::PreferredAllocationRequest, v1beta1::PreferredAllocationResponse>(
        command.plugin, kCallTimeout, std::move(request),
        [](auto& stub, auto* context, auto* sent, auto* response, auto done) {
          stub.async()->GetPreferredAllocation(context, sent, response, std::move(done));
        },
        [this, number = command.call](const grpc::Status& status,
                                      const v1beta1::PreferredAllocationResponse& response) {
          Result<std::vector<std::string>> ids = std::vector<std::string>();
          if (!status.ok()) ids = plugin_error(status);
          if (ids && !response.container_responses().empty()) {
            const auto& wanted = response.container_responses(0).deviceids();
            ids->assign(wanted.begin(), wanted.end());
          }
          receiver.on_device_event(agent::DevicesPreferred{number, std::move(ids)});
        });
  }

  void on_command(const agent::PrepareDevices& command) {
    v1beta1::PreStartContainerRequest request;
    for (const std::string& id : command.ids) request.add_devicesids(id);
    call<v1beta1::PreStartContainerRequest, v1beta1::PreStartContainerResponse>(
        command.plugin, kCallTimeout, std::move(request),
        [](auto& stub, auto* context, auto* sent, auto* response, auto done) {
          stub.async()->PreStartContainer(context, sent, response, std::move(done));
        },
        [this, number = command.call](const grpc::Status& status, const v1beta1::PreStartContainerResponse&) {
          receiver.on_device_event(
              agent::DevicesPrepared{number, status.ok() ? Outcome() : Outcome(plugin_error(status))});
        });
  }

  void on_command(const agent::SaveDevices& command) {
    checkpoints.save(std::string(PluginDirectory::kCheckpointName), command.text);
  }

  runtime::Loop& loop;
  PluginDirectory directory;
  Receiver& receiver;
  telemetry::Log log;
  CheckpointFiles checkpoints;
  Alive alive;
  std::shared_ptr<Shared> shared = std::make_shared<Shared>(loop);
  UniqueFd listener;
  std::unique_ptr<RegistrationService> service;
  std::unique_ptr<grpc::Server> server;  // null until a plugin connects
  std::map<agent::PluginId, Plugin> plugins;
  std::map<agent::PluginId, std::shared_ptr<DeviceStream>> ending;
  std::map<std::uint64_t, std::function<void()>> cancels;  // calls under way
  agent::PluginId last_plugin = 0;
  std::uint64_t last_call = 0;
};

DevicePlugins::DevicePlugins(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

DevicePlugins::~DevicePlugins() = default;

Result<std::unique_ptr<DevicePlugins>> DevicePlugins::create(runtime::Loop& loop, const std::string& directory,
                                                             Receiver& receiver, telemetry::Log log) {
  SPILLWAY_TRY(opened, PluginDirectory::open(directory, kSocketName));
  auto impl = std::make_unique<Impl>(loop, std::move(opened), receiver, std::move(log));
  SPILLWAY_TRY_VOID(impl->listen());
  return std::unique_ptr<DevicePlugins>(new DevicePlugins(std::move(impl)));  // NOLINT: private constructor
}

void DevicePlugins::execute(agent::DeviceCommand command) {
  std::visit([this](const auto& each) { impl_->on_command(each); }, command);
}

void DevicePlugins::when_saved(runtime::Loop::Task then) {
  impl_->checkpoints.when_saved(std::move(then));
}

std::optional<std::string> DevicePlugins::checkpoint() const {
  return impl_->directory.checkpoint();
}

}  // namespace spillway::host
