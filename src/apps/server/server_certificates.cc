#include "apps/server/server_certificates.h"

#include "api/text/identities.h"
#include "api/text/time_text.h"
#include "apps/process/host_name.h"
#include "base/file.h"
#include "wire/tls/certificate_authority.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apps {
namespace {

using wire::CertificateAuthority;
using wire::CertificateRequest;

constexpr std::string_view kServing = "serving";
constexpr std::string_view kAdministrator = "administrator";
constexpr std::string_view kKubeletClient = "kubelet-client";
constexpr std::string_view kKubeletServingAuthority = "kubelet-serving-authority";
constexpr std::string_view kProxy = "front-proxy-client";
constexpr std::string_view kProxyAuthority = "front-proxy-authority";

CertificateRequest client(std::string name, std::string group) {
  return {.use = CertificateRequest::Use::kClient,
          .common_name = std::move(name),
          .organizations = {std::move(group)},
          .hosts = {}};
}

/// Address of the Service `kubernetes`, unless the options set another.
constexpr std::string_view kServiceAddress = "10.96.0.1";

CertificateRequest server(const std::string& bind_address, const std::vector<std::string>& names) {
  CertificateRequest serving{
      .use = CertificateRequest::Use::kServer,
      .common_name = "kube-apiserver",
      .organizations = {},
      .hosts = {"localhost", "127.0.0.1", "::1", host_name(), "kubernetes", "kubernetes.default",
                "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", std::string(kServiceAddress)}};
  const bool any = bind_address == "0.0.0.0" || bind_address == "::";
  if (!any && bind_address != "127.0.0.1" && bind_address != "::1") serving.hosts.push_back(bind_address);
  for (const std::string& name : names) {
    if (std::ranges::find(serving.hosts, name) == serving.hosts.end()) serving.hosts.push_back(name);
  }
  return serving;
}

std::vector<wire::KeptCertificates::Wanted> wanted(const std::string& bind_address,
                                                   const std::vector<std::string>& names) {
  return {{std::string(kServing), "apiserver", server(bind_address, names)},
          {std::string(kAdministrator), "admin", client("kubernetes-admin", std::string(api::kMastersGroup))},
          {std::string(kKubeletClient), "apiserver-kubelet-client",
           client("kube-apiserver-kubelet-client", "spillway:kubelet-clients")}};
}

std::vector<wire::KeptCertificates::Wanted> wanted_proxy() {
  return {{std::string(kProxy),
           std::string(kProxy),
           {.use = CertificateRequest::Use::kClient,
            .common_name = std::string(kProxy),
            .organizations = {},
            .hosts = {}}}};
}

}  // namespace

ServerCertificates::ServerCertificates(Options options, telemetry::Registry& metrics)
    : options_(std::move(options)),
      metrics_(metrics),
      kept_(options_.data_dir + "/pki", wanted(options_.bind_address, options_.names)),
      proxy_(options_.data_dir + "/pki/front-proxy", wanted_proxy()),
      files_(options_.files) {}

Result<bool> ServerCertificates::refresh(WallTime now) {
  const std::string folder = options_.data_dir + "/pki";
  // The cluster's first: the folder is made with it.
  SPILLWAY_TRY(own, CertificateAuthority::open(folder, now));
  SPILLWAY_TRY(of_agents, CertificateAuthority::open(folder + "/kubelet-serving", now));
  SPILLWAY_TRY(of_agents_end, of_agents.end());
  SPILLWAY_TRY(kept_is_new, kept_.refresh(now));
  SPILLWAY_TRY(proxy_is_new, proxy_.refresh(now));
  const bool is_new = kept_is_new || proxy_is_new || !serving_authority_ ||
                      serving_authority_->certificate_pem() != of_agents.certificate_pem();
  serving_authority_ = wire::OpensslRequestAuthority(std::move(of_agents), CertificateRequest::Use::kServer);
  client_authority_ = wire::OpensslRequestAuthority(std::move(own), CertificateRequest::Use::kClient);
  serving_authority_end_ = of_agents_end;
  return is_new;
}

std::string ServerCertificates::server_authority_pem() const {
  return files_.serving() ? kept_.authority_pem() + "\n" + files_.serving()->certificate_pem : kept_.authority_pem();
}

std::string ServerCertificates::client_authorities_pem() const {
  return files_.client_authority_pem().empty() ? kept_.authority_pem()
                                               : kept_.authority_pem() + "\n" + files_.client_authority_pem();
}

std::map<std::string, WallTime, std::less<>> ServerCertificates::ends() const {
  auto all = kept_.ends();
  for (const auto& [role, end] : proxy_.ends()) {
    all.emplace(role == wire::KeptCertificates::kAuthority ? kProxyAuthority : std::string_view(role), end);
  }
  if (serving_authority_end_) all.emplace(kKubeletServingAuthority, *serving_authority_end_);
  if (files_.serving_end()) all.insert_or_assign(std::string(kServing), *files_.serving_end());
  return all;
}

WallTime ServerCertificates::due() const {
  if (!serving_authority_end_) return {};
  const auto before = std::chrono::duration_cast<microseconds>(CertificateAuthority::kRenewBefore);
  return std::min({kept_.due(), proxy_.due(), WallTime(*serving_authority_end_ - before)});
}

Result<Credentials> ServerCertificates::credentials() const {
  std::string agents_authority;
  if (!options_.believe_every_agent) {
    agents_authority = serving_authority_->certificate_pem();
    if (!options_.agents_authority_file.empty()) {
      SPILLWAY_TRY(more, read_file(options_.agents_authority_file));
      agents_authority += "\n" + more;
    }
  }
  Credentials credentials;
  const wire::KeyPair& shown = files_.serving() ? *files_.serving() : kept_.pair(kServing);
  SPILLWAY_TRY(server_context, wire::TlsContext::make_server({.identity = shown,
                                                              .client_authority_pem = client_authorities_pem(),
                                                              .protocols = options_.protocols}));
  credentials.server = std::move(server_context);
  SPILLWAY_TRY(node_context, wire::TlsContext::make_client({.authority_pem = agents_authority,
                                                            .verify = !agents_authority.empty(),
                                                            .identity = kept_.pair(kKubeletClient)}));
  credentials.nodes = std::move(node_context);
  credentials.proxy = proxy_.pair(kProxy);
  credentials.administrator.authority_pem = server_authority_pem();
  credentials.administrator.certificate_pem = kept_.pair(kAdministrator).certificate_pem;
  credentials.administrator.key_pem = kept_.pair(kAdministrator).key_pem;
  return credentials;
}

void ServerCertificates::set_gauges(WallTime now) {
  for (const auto& [role, end] : ends()) {
    metrics_
        .gauge("apiserver_own_certificate_expiration_seconds",
               "Seconds until a certificate that this server shows, signs with or hands out ends; negative: it has",
               {{"role", role}})
        .set(std::chrono::duration<double>(end - now).count());
  }
}

std::string ServerCertificates::problem(WallTime now) const {
  for (const auto& [role, end] : ends()) {
    if (end <= now) return fmt::format("the certificate \"{}\" ended at {}", role, api::format_time(end));
  }
  return {};
}

}  // namespace spillway::apps
