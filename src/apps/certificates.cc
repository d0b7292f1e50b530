#include "apps/certificates.h"

#include "apps/host_name.h"
#include "wire/certificate_authority.h"

#include <utility>

namespace spillway::apps {

namespace {

using wire::CertificateRequest;

wire::CertificateRequest client(std::string name, std::string group) {
  return {.use = CertificateRequest::Use::kClient,
          .common_name = std::move(name),
          .organizations = {std::move(group)},
          .hosts = {}};
}

}  // namespace

Result<Credentials> prepare_credentials(const std::string& data_dir, const std::string& bind_address, WallTime now) {
  SPILLWAY_TRY(authority, wire::CertificateAuthority::open(data_dir + "/pki", now));
  CertificateRequest serving{
      .use = CertificateRequest::Use::kServer,
      .common_name = "kube-apiserver",
      .organizations = {},
      .hosts = {"localhost", "127.0.0.1", "::1", host_name(), "kubernetes", "kubernetes.default"}};
  const bool any = bind_address == "0.0.0.0" || bind_address == "::";
  if (!any && bind_address != "127.0.0.1" && bind_address != "::1") serving.hosts.push_back(bind_address);
  SPILLWAY_TRY(server, authority.keep("apiserver", serving, now));
  SPILLWAY_TRY(admin, authority.keep("admin", client("kubernetes-admin", "system:masters"), now));
  SPILLWAY_TRY(nodes, authority.keep("apiserver-kubelet-client",
                                     client("kube-apiserver-kubelet-client", "system:masters"), now));

  Credentials credentials;
  SPILLWAY_TRY(server_context, wire::TlsContext::make_server({.identity = std::move(server),
                                                              .client_authority_pem = authority.certificate_pem()}));
  credentials.server = std::move(server_context);
  // Agents serve with certificates of their own making, which nobody has signed: as upstream by default, only the
  // client is authenticated on this way.
  SPILLWAY_TRY(node_context,
               wire::TlsContext::make_client({.authority_pem = {}, .verify = false, .identity = std::move(nodes)}));
  credentials.nodes = std::move(node_context);
  credentials.administrator.authority_pem = authority.certificate_pem();
  credentials.administrator.certificate_pem = admin.certificate_pem;
  credentials.administrator.key_pem = admin.key_pem;
  return credentials;
}

Result<std::shared_ptr<const wire::TlsContext>> prepare_node_server(const std::string& state_dir,
                                                                    const std::string& address,
                                                                    const std::string& client_authority_pem,
                                                                    WallTime now) {
  SPILLWAY_TRY(authority, wire::CertificateAuthority::open(state_dir + "/pki", now));
  const CertificateRequest serving{.use = CertificateRequest::Use::kServer,
                                   .common_name = host_name(),
                                   .organizations = {},
                                   .hosts = {address, "localhost", host_name()}};
  SPILLWAY_TRY(identity, authority.keep("kubelet", serving, now));
  return wire::TlsContext::make_server({.identity = std::move(identity), .client_authority_pem = client_authority_pem});
}

}  // namespace spillway::apps
