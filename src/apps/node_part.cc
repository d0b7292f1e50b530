#include "apps/node_part.h"

#include "api/codec.h"
#include "apps/node_options.h"
#include "host/machine_info.h"

#include <filesystem>
#include <utility>

namespace spillway::apps {

namespace {

constexpr Duration kShutdownGrace = seconds(2);

Outcome make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error{ErrorCode::kInternalError, "cannot create: " + error.message(), path};
  return {};
}

std::string pod_list(const agent::Agent& agent) {
  api::Json items = api::Json::array();
  for (const api::Pod& pod : agent.pods()) items.if_array()->push_back(api::encode(pod));
  return api::to_text(api::Json::object(
      {{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", api::Json::object()}, {"items", std::move(items)}}));
}

}  // namespace

NodePart::NodePart(Process& process, std::string name, host::NodeSlice slice,
                   std::unique_ptr<client::Transport> transport)
    : process_(process), name_(std::move(name)), slice_(std::move(slice)), transport_(std::move(transport)) {}

NodePart::~NodePart() = default;

Result<std::unique_ptr<NodePart>> NodePart::create(Process& process, NodePartOptions options,
                                                   std::unique_ptr<client::Transport> transport) {
  SPILLWAY_TRY_VOID(make_directory(options.state_dir));
  SPILLWAY_TRY(mounts, host::read_cgroup_mounts());
  SPILLWAY_TRY(root, host::find_writable_root(mounts));
  host::NodeSliceOptions wanted{.root = options.args.memory ? host::NodeRoot::kSlice : host::NodeRoot::kHost,
                                .instance = options.instance,
                                .node = options.name,
                                .memory = options.args.memory,
                                .pids_max = options.args.pids_max};
  SPILLWAY_TRY(slice, host::NodeSlice::create(std::move(root), std::move(wanted)));
  std::unique_ptr<NodePart> part(  // NOLINT: private constructor
      new NodePart(process, options.name, std::move(slice), std::move(transport)));
  if (const Outcome started = part->start_agent(options); !started) {
    part->runtime_.reset();
    ignored(part->slice_.remove(), "the first error is the one to report");
    return started.error();
  }
  return part;
}

Outcome NodePart::start_agent(const NodePartOptions& options) {
  runtime::Loop& loop = process_.loop();
  SPILLWAY_TRY(machine, host::read_machine_info(slice_, options.state_dir));
  machine.hostname = options.name;  // as the kubelet's --hostname-override: several nodes share this machine
  SPILLWAY_TRY(agent_options, make_agent_options(options.args, options.name, machine.memory));
  agent_options.daemon_port = 0;
  if (options.client_authority_pem) {
    SPILLWAY_TRY(server,
                 NodeServer::create(process_, options.state_dir, machine.internal_ip, *options.client_authority_pem));
    server_ = std::move(server);
    agent_options.daemon_port = server_->port();
  }
  SPILLWAY_TRY(journal, host::JournalFile::open(options.state_dir + "/journal.jsonl", process_.log()));
  journal_ = std::move(journal);
  SPILLWAY_TRY(history, journal_->read());
  SPILLWAY_TRY(runtime, host::ProcessRuntime::create(loop, slice_, *this, process_.log(),
                                                     {.state_dir = options.state_dir, .logs = {}}));
  runtime_ = std::move(runtime);
  SPILLWAY_TRY(reaction, host::MemoryReaction::create(
                             loop, slice_,
                             {.receiver = *this,
                              .find_target = [this](const std::string& uid) { return runtime_->find_target(uid); },
                              .journal = journal_.get()},
                             process_.log()));
  reaction_ = std::move(reaction);
  if (host::protect_process() == host::MemoryLock::kNotAllowed)
    process_.log().info("memory not locked: no right to (CAP_IPC_LOCK)");
  runtime_->listen([this] { reaction_->report(); }, [this] { reaction_->refresh_targets(); });
  const Rng rng(fnv1a64(options.name, static_cast<std::uint64_t>(loop.now().wall.time_since_epoch().count())));
  SPILLWAY_TRY(agent,
               agent::Agent::create(std::move(agent_options), std::move(machine), rng,
                                    {process_.log(), &process_.metrics(), journal_.get(), reaction_.get()}, history));
  agent_ = std::move(agent);
  driver_ = std::make_unique<runtime::EngineDriver>(loop, *agent_, *transport_);
  driver_->after_step([this] {
    for (agent::HostCommand& command : agent_->take_host_commands()) runtime_->execute(std::move(command));
  });
  endpoint_ = std::make_unique<host::KubeletEndpoint>(
      loop, *runtime_, host::KubeletEndpoint::Options{.pods = [this] { return pod_list(*agent_); }});
  if (server_) server_->set_endpoint(endpoint_.get());
  driver_->start();
  return {};
}

void NodePart::on_host_event(agent::HostEvent event) {
  driver_->step([this, event = std::move(event)](Now now) { agent_->on_host_event(event, now); });
}

void NodePart::stop(runtime::Loop::Task done) {
  runtime_->listen({}, {});
  driver_->stop();
  reaction_.reset();
  if (server_) server_->set_endpoint(nullptr);
  // std::function wants something it can copy.
  const auto finish = std::make_shared<runtime::Loop::Task>(std::move(done));
  runtime_->shutdown(kShutdownGrace, [this, finish] {
    process_.loop().post([this, finish] {
      endpoint_.reset();
      runtime_.reset();
      if (const Outcome removed = slice_.remove(); !removed) {
        process_.log().warning("cgroup was not removed", {{"node", name_}, {"error", removed.error().text()}});
      }
      if (!server_) return (*finish)();
      server_->stop([finish] { (*finish)(); });
    });
  });
}

}  // namespace spillway::apps
