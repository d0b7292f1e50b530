// The client certificate of a node for the API server: requested once with a bootstrap token, renewed by itself, and
// kept in the agent's kubeconfig. Thread: loop. Source: Kubernetes docs, "TLS bootstrapping".
#pragma once

#include "agent/serving/node_certificate.h"
#include "apps/process/process.h"
#include "apps/view/remote.h"
#include "runtime/engine_driver.h"
#include "wire/client/kubeconfig.h"
#include "wire/tls/certificate_authority.h"
#include "wire/transport/https_transport.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apps {

/// The end of the certificate of a kubeconfig; nullopt: the file does not exist, contains none, or it has ended.
std::optional<WallTime> identity_end(const std::string& kubeconfig, WallTime now);

/// The keys of a node's client certificate. An issued certificate is written to the kubeconfig, which is replaced in
/// one step.
class NodeClientKeys final : public agent::CertificateKeys {
 public:
  /// `cluster`: the address of the API server. `used`: receives the content of the file from then on.
  NodeClientKeys(const std::string& node_name, std::string kubeconfig, wire::Kubeconfig cluster,
                 std::function<void(const wire::Kubeconfig&)> used);

  Result<std::string> make_request() override;
  Result<WallTime> install(const std::string& certificate_pem) override;

 private:
  wire::CertificateRequest wanted_;
  std::string kubeconfig_;
  wire::Kubeconfig cluster_;
  std::function<void(const wire::Kubeconfig&)> used_;
  std::string key_pem_;  // key of the last request
};

/// Requests the first certificate with the credentials of the bootstrap kubeconfig, repeatedly until there is one.
class BootstrapPart final : public Part {
 public:
  struct Options {
    std::string node_name;
    std::string bootstrap_kubeconfig;
    std::string kubeconfig;  // path of the file to be written
  };

  /// `done` runs once, from the loop. Errors: a mistake in the bootstrap kubeconfig.
  static Result<std::unique_ptr<BootstrapPart>> create(Process& process, const Options& options,
                                                       std::function<void()> done);

  void stop(runtime::Loop::Task done) override;

 private:
  BootstrapPart(Process& process, const Options& options, Remote remote, wire::Kubeconfig cluster,
                std::function<void()> done);

  std::unique_ptr<wire::HttpsTransport> transport_;
  NodeClientKeys keys_;
  agent::NodeCertificate certificate_;
  runtime::EngineDriver driver_;
};

/// Renews the certificate of an agent that runs, which then shows the new one.
class RotationPart final : public Part {
 public:
  /// `agent`: the agent's connections to the API server, which must outlive this part. Errors: a mistake in the
  /// kubeconfig.
  static Result<std::unique_ptr<RotationPart>> create(Process& process, const std::string& node_name,
                                                      const std::string& kubeconfig,
                                                      std::vector<wire::HttpsTransport*> agent);

  void stop(runtime::Loop::Task done) override;

 private:
  RotationPart(Process& process, const std::string& node_name, wire::Kubeconfig config, WallTime end, Remote remote,
               std::vector<wire::HttpsTransport*> agent);
  void use(const wire::Kubeconfig& config);

  Process& process_;
  std::vector<wire::HttpsTransport*> agent_;
  std::unique_ptr<wire::HttpsTransport> transport_;
  NodeClientKeys keys_;
  agent::NodeCertificate certificate_;
  runtime::EngineDriver driver_;
};

}  // namespace spillway::apps
