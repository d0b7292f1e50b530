#include "apps/node/client_identity.h"

#include "api/text/identities.h"
#include "base/rng.h"
#include "runtime/entropy.h"
#include "wire/client/http_client.h"

#include <utility>

namespace spillway::apps {
namespace {

constexpr std::string_view kClusterName = "spillway";

Rng rotation_rng() {
  return Rng(runtime::entropy()).fork("client-certificate");
}

/// The address of the server, without credentials.
wire::Kubeconfig address_of(const wire::Kubeconfig& config) {
  wire::Kubeconfig address;
  address.server = config.server;
  address.authority_pem = config.authority_pem;
  address.verify = config.verify;
  address.tls_server_name = config.tls_server_name;
  return address;
}

}  // namespace

std::optional<WallTime> identity_end(const std::string& kubeconfig, WallTime now) {
  const auto config = wire::read_kubeconfig(kubeconfig);
  if (!config || config->certificate_pem.empty()) return std::nullopt;
  const Result<WallTime> end = wire::end_of({config->certificate_pem, config->key_pem});
  return end && *end > now ? std::optional(*end) : std::nullopt;
}

NodeClientKeys::NodeClientKeys(const std::string& node_name, std::string kubeconfig, wire::Kubeconfig cluster,
                               std::function<void(const wire::Kubeconfig&)> used)
    : wanted_{.use = wire::CertificateRequest::Use::kClient,
              .common_name = std::string(api::kNodeUserPrefix) + node_name,
              .organizations = {std::string(api::kNodesGroup)},
              .hosts = {}},
      kubeconfig_(std::move(kubeconfig)),
      cluster_(address_of(cluster)),
      used_(std::move(used)) {}

Result<std::string> NodeClientKeys::make_request() {
  SPILLWAY_TRY(made, wire::make_signing_request(wanted_));
  key_pem_ = std::move(made.key_pem);
  return std::move(made.request_pem);
}

Result<WallTime> NodeClientKeys::install(const std::string& certificate_pem) {
  SPILLWAY_TRY(end, wire::end_of({certificate_pem, key_pem_}));
  wire::Kubeconfig config = cluster_;
  config.certificate_pem = certificate_pem;
  config.key_pem = key_pem_;
  SPILLWAY_TRY_VOID(wire::write_kubeconfig(kubeconfig_, config, kClusterName));
  config.path = kubeconfig_;
  used_(config);
  return end;
}

BootstrapPart::BootstrapPart(Process& process, const Options& options, Remote remote, wire::Kubeconfig cluster,
                             std::function<void()> done)
    : transport_(std::move(remote.transport)),
      keys_(options.node_name, options.kubeconfig, std::move(cluster),
            [&process, done = std::move(done)](const wire::Kubeconfig&) { process.loop().post(done); }),
      certificate_(agent::CertificatePurpose::kClient, keys_, process.log(), rotation_rng()),
      driver_(process.loop(), certificate_, *transport_) {}

Result<std::unique_ptr<BootstrapPart>> BootstrapPart::create(Process& process, const Options& options,
                                                             std::function<void()> done) {
  SPILLWAY_TRY(config, wire::read_kubeconfig(options.bootstrap_kubeconfig));
  SPILLWAY_TRY(remote, connect_remote(process.loop(), config));
  process.log().info(
      "requesting a client certificate",
      {{"node", options.node_name}, {"server", remote.host}, {"bootstrap_kubeconfig", options.bootstrap_kubeconfig}});
  std::unique_ptr<BootstrapPart> part(  // NOLINT: private constructor
      new BootstrapPart(process, options, std::move(remote), std::move(config), std::move(done)));
  part->driver_.start();
  return part;
}

void BootstrapPart::stop(runtime::Loop::Task done) {
  driver_.stop();
  done();
}

RotationPart::RotationPart(Process& process, const std::string& node_name, wire::Kubeconfig config, WallTime end,
                           Remote remote, std::vector<wire::HttpsTransport*> agent)
    : process_(process),
      agent_(std::move(agent)),
      transport_(std::move(remote.transport)),
      keys_(node_name, config.path, config, [this](const wire::Kubeconfig& renewed) { use(renewed); }),
      certificate_(agent::CertificatePurpose::kClient, keys_, process.log(), rotation_rng(), end),
      driver_(process.loop(), certificate_, *transport_) {}

Result<std::unique_ptr<RotationPart>> RotationPart::create(Process& process, const std::string& node_name,
                                                           const std::string& kubeconfig,
                                                           std::vector<wire::HttpsTransport*> agent) {
  SPILLWAY_TRY(config, wire::read_kubeconfig(kubeconfig));
  SPILLWAY_TRY(end, wire::end_of({config.certificate_pem, config.key_pem}));
  SPILLWAY_TRY(remote, connect_remote(process.loop(), config));
  std::unique_ptr<RotationPart> part(  // NOLINT: private constructor
      new RotationPart(process, node_name, std::move(config), end, std::move(remote), std::move(agent)));
  part->driver_.start();
  return part;
}

void RotationPart::use(const wire::Kubeconfig& config) {
  const auto endpoint = wire::make_endpoint(config, config.path, offered_protocols());
  if (!endpoint)
    return process_.log().error("the new certificate cannot be shown", {{"error", endpoint.error().text()}});
  for (wire::HttpsTransport* each : agent_) each->use_certificate(endpoint->tls);
  transport_->use_certificate(endpoint->tls);
}

void RotationPart::stop(runtime::Loop::Task done) {
  driver_.stop();
  done();
}

}  // namespace spillway::apps
