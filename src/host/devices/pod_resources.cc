#include "host/devices/pod_resources.h"

#include "base/check.h"
#include "base/token_bucket.h"
#include "base/unique_fd.h"
#include "host/devices/plugin_directory.h"
#include "host/devices/pod_resources.grpc.pb.h"
#include "host/devices/pod_resources_v1alpha1.grpc.pb.h"
#include "host/kernel/kernel_file.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::string_view kResourcesSocket = "kubelet.sock";
constexpr int kClientsWaiting = 64;
constexpr Duration kListenAgainAfter = seconds(1);

void add_nodes(const std::vector<std::int64_t>& nodes, v1::TopologyInfo& topology) {
  for (const std::int64_t node : nodes) topology.add_nodes()->set_id(node);
}

/// A device with several NUMA nodes is named once for each of them, as upstream does. `add_node` writes the node.
template <typename Devices, typename AddNode>
void add_devices(const std::vector<agent::HeldDevice>& devices, Devices& list, AddNode add_node) {
  const auto add = [&list](const agent::HeldDevice& device) {
    auto* made = list.Add();
    made->set_resource_name(device.resource);
    made->add_device_ids(device.id);
    return made;
  };
  for (const agent::HeldDevice& each : devices) {
    if (each.numa_nodes.empty()) add(each);
    for (const std::int64_t node : each.numa_nodes) add_node(node, *add(each));
  }
}

/// The members that an answer about a container and one about the node share.
template <typename Message>
void add_parts(const agent::HeldParts& parts, Message& message) {
  add_devices(parts.devices, *message.mutable_devices(),
              [](std::int64_t node, v1::ContainerDevices& device) { add_nodes({node}, *device.mutable_topology()); });
  for (const std::int64_t cpu : parts.cpus) message.add_cpu_ids(cpu);
  for (const agent::HeldMemory& each : parts.memory) {
    auto* made = message.add_memory();
    made->set_memory_type(each.type);
    made->set_size(static_cast<std::uint64_t>(each.size_bytes));
    add_nodes(each.numa_nodes, *made->mutable_topology());
  }
}

/// Questions on their way to the loop. Each is finished once: by the loop, or when the service ends. Thread: any.
class Questions {
 public:
  using Fill = std::function<void()>;  // writes the answer; on the loop

  Questions(runtime::Loop& loop, PodResources::Pace pace)
      : loop_(loop), pace_(BucketKind::kContinuous, pace.calls_per_second, pace.calls_at_once, loop.now().mono) {}

  /// `self`: this object, kept until the loop has taken the question.
  static void ask(const std::shared_ptr<Questions>& self, grpc::ServerUnaryReactor* reactor, Fill fill) {
    std::uint64_t id = 0;
    {
      const std::scoped_lock lock(self->mutex_);
      if (self->ended_) return reactor->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the node is stopping"));
      id = ++self->last_;
      self->open_.emplace(id, reactor);
    }
    self->loop_.post([self, id, fill = std::move(fill)] {
      grpc::ServerUnaryReactor* asks = self->take(id);
      if (asks == nullptr) return;
      fill();
      asks->Finish(grpc::Status::OK);
    });
  }

  /// True while the calls stay below the allowed rate.
  bool may_ask() {
    const std::scoped_lock lock(mutex_);
    return pace_.try_take(loop_.now().mono);
  }

  void end() {
    std::map<std::uint64_t, grpc::ServerUnaryReactor*> open;
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
      open.swap(open_);
    }
    for (const auto& [id, reactor] : open)
      reactor->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the node is stopping"));
  }

 private:
  grpc::ServerUnaryReactor* take(std::uint64_t id) {
    const std::scoped_lock lock(mutex_);
    const auto found = open_.extract(id);
    return found.empty() ? nullptr : found.mapped();
  }

  runtime::Loop& loop_;
  std::mutex mutex_;  // guards the members below
  std::map<std::uint64_t, grpc::ServerUnaryReactor*> open_;
  TokenBucket pace_;
  std::uint64_t last_ = 0;
  bool ended_ = false;
};

/// Both versions of the API share one pace.
grpc::ServerUnaryReactor* answer(const std::shared_ptr<Questions>& questions, grpc::CallbackServerContext* context,
                                 Questions::Fill fill) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (!questions->may_ask()) {
    reactor->Finish(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit"));
  } else {
    Questions::ask(questions, reactor, std::move(fill));
  }
  return reactor;
}

/// Lists pods with their containers; `add_held` writes the resources of one.
template <typename List, typename AddHeld>
void add_pods(const std::vector<agent::PodParts>& pods, List& list, AddHeld add_held) {
  for (const agent::PodParts& pod : pods) {
    auto* made = list.add_pod_resources();
    made->set_name(pod.name);
    made->set_namespace_(pod.ns);
    for (const agent::ContainerParts& container : pod.containers) {
      auto* held = made->add_containers();
      held->set_name(container.name);
      add_held(container.held, *held);
    }
  }
}

/// Thread: gRPC's.
class ListerService final : public v1::PodResourcesLister::CallbackService {
 public:
  ListerService(std::shared_ptr<Questions> questions, PodResources::Source source)
      : questions_(std::move(questions)), source_(std::move(source)) {}

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListPodResourcesRequest*,
                                 v1::ListPodResourcesResponse* response) override {
    return answer(questions_, context, [this, response] {
      add_pods(source_.held(), *response,
               [](const agent::HeldParts& parts, v1::ContainerResources& held) { add_parts(parts, held); });
    });
  }

  grpc::ServerUnaryReactor* GetAllocatableResources(grpc::CallbackServerContext* context,
                                                    const v1::AllocatableResourcesRequest*,
                                                    v1::AllocatableResourcesResponse* response) override {
    return answer(questions_, context, [this, response] { add_parts(source_.allocatable(), *response); });
  }

  /// Upstream's gate KubeletPodResourcesGet is off in 1.32.
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetPodResourcesRequest*,
                                v1::GetPodResourcesResponse*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status(grpc::StatusCode::UNKNOWN, "PodResources API Get method disabled"));
    return reactor;
  }

 private:
  std::shared_ptr<Questions> questions_;
  PodResources::Source source_;
};

/// The version of old clients: devices alone. Thread: gRPC's.
class AlphaListerService final : public v1alpha1::PodResourcesLister::CallbackService {
 public:
  AlphaListerService(std::shared_ptr<Questions> questions, PodResources::Source source)
      : questions_(std::move(questions)), source_(std::move(source)) {}

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1alpha1::ListPodResourcesRequest*,
                                 v1alpha1::ListPodResourcesResponse* response) override {
    return answer(questions_, context, [this, response] {
      add_pods(source_.held(), *response, [](const agent::HeldParts& parts, v1alpha1::ContainerResources& held) {
        add_devices(parts.devices, *held.mutable_devices(), [](std::int64_t, v1alpha1::ContainerDevices&) {});
      });
    });
  }

 private:
  std::shared_ptr<Questions> questions_;
  PodResources::Source source_;
};

}  // namespace

struct PodResources::Impl {
  Impl(runtime::Loop& on, PluginDirectory in, Source source, Pace pace, telemetry::Log logger)
      : loop(on),
        directory(std::move(in)),
        log(std::move(logger)),
        questions(std::make_shared<Questions>(on, pace)),
        service(questions, source),
        alpha_service(questions, std::move(source)) {}

  ~Impl() {
    if (again) loop.cancel(*again);
    if (listener) loop.unwatch_fd(listener.get());
    questions->end();
    if (server) server->Shutdown(std::chrono::system_clock::time_point{});
    server.reset();
    directory.remove_socket(kResourcesSocket);
  }

  Outcome listen() {
    const std::string path = directory.path_of(kResourcesSocket);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);  // the length has been checked
    listener.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener ||
        ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||  // NOLINT
        ::listen(listener.get(), kClientsWaiting) != 0) {
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
    log.warning("a client of the pod-resources API cannot connect",
                {{"error", errno_error(std::string(kResourcesSocket), errno).text()}});
    loop.rewatch_fd(listener.get(), 0);
    again = loop.at(loop.now().mono + kListenAgainAfter, [this] {
      again.reset();
      loop.rewatch_fd(listener.get(), POLLIN);
    });
  }

  void start_server() {
    gpr_set_log_function([](gpr_log_func_args*) {});  // every status is reported by us
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    builder.RegisterService(&alpha_service);
    builder.SetMaxReceiveMessageSize(kQuestionBytesMax);
    server = builder.BuildAndStart();
    SPILLWAY_CHECK(server != nullptr);  // cannot fail: without a TCP port there is nothing that could be in use
  }

  runtime::Loop& loop;
  PluginDirectory directory;
  telemetry::Log log;
  std::shared_ptr<Questions> questions;
  ListerService service;
  AlphaListerService alpha_service;
  UniqueFd listener;
  std::optional<runtime::Loop::TimerId> again;  // when the socket is opened again
  std::unique_ptr<grpc::Server> server;         // null until a client connects
};

PodResources::PodResources(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

PodResources::~PodResources() = default;

Result<std::unique_ptr<PodResources>> PodResources::create(runtime::Loop& loop, const std::string& directory,
                                                           Source source, Pace pace, telemetry::Log log) {
  SPILLWAY_TRY(opened, PluginDirectory::open(directory, kResourcesSocket));
  auto impl = std::make_unique<Impl>(loop, std::move(opened), std::move(source), pace, std::move(log));
  SPILLWAY_TRY_VOID(impl->listen());
  return std::unique_ptr<PodResources>(new PodResources(std::move(impl)));  // NOLINT: private constructor
}

}  // namespace spillway::host
