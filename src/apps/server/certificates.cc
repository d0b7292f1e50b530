#include "apps/server/certificates.h"

#include "api/text/identities.h"
#include "apps/process/host_name.h"
#include "wire/tls/certificate_authority.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace spillway::apps {

namespace {

using wire::CertificateRequest;

Result<std::string> read_pem(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{ErrorCode::kNotFound, "cannot be read", path};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Creates an authority for the time of this call, and certificates that it signs.
Result<std::pair<wire::KeyPair, std::string>> make_own_certificate(const std::vector<std::string>& hosts,
                                                                   WallTime now) {
  std::string folder = (std::filesystem::temp_directory_path() / "spillway-controller-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return Error{ErrorCode::kInternalError, "cannot be made", folder};
  CertificateRequest serving{
      .use = CertificateRequest::Use::kServer, .common_name = host_name(), .organizations = {}, .hosts = {}};
  serving.hosts = {"localhost", "127.0.0.1", "::1", host_name()};
  for (const std::string& host : hosts) {
    if (std::ranges::find(serving.hosts, host) == serving.hosts.end()) serving.hosts.push_back(host);
  }
  const auto make = [&]() -> Result<std::pair<wire::KeyPair, std::string>> {
    SPILLWAY_TRY(authority, wire::CertificateAuthority::open(folder + "/pki", now));
    SPILLWAY_TRY(identity, authority.issue(serving, now));
    return std::pair(std::move(identity), authority.certificate_pem());
  };
  auto made = make();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return made;
}

}  // namespace

Result<ProcessCertificate> prepare_process_server(const ProcessCertificateOptions& options, WallTime now) {
  ProcessCertificate certificate;
  wire::TlsContext::ServerOptions tls{.identity = {}, .client_authority_pem = options.client_authority_pem};
  if (options.certificate_file.empty()) {
    SPILLWAY_TRY(made, make_own_certificate(options.hosts, now));
    tls.identity = std::move(made.first);
    certificate.authority_pem = std::move(made.second);
  } else {
    SPILLWAY_TRY(chain, read_pem(options.certificate_file));
    SPILLWAY_TRY(key, read_pem(options.key_file));
    certificate.authority_pem = chain;
    tls.identity = {std::move(chain), std::move(key)};
  }
  SPILLWAY_TRY(context, wire::TlsContext::make_server(tls));
  certificate.context = std::move(context);
  return certificate;
}

NodeServingKeys::NodeServingKeys(const std::string& node_name, const std::string& address, Use use)
    : wanted_{.use = CertificateRequest::Use::kServer,
              .common_name = std::string(api::kNodeUserPrefix) + node_name,
              .organizations = {std::string(api::kNodesGroup)},
              .hosts = {node_name, address}},
      use_(std::move(use)) {}

Result<std::string> NodeServingKeys::make_request() {
  SPILLWAY_TRY(made, wire::make_signing_request(wanted_));
  key_pem_ = std::move(made.key_pem);
  return std::move(made.request_pem);
}

Result<WallTime> NodeServingKeys::install(const std::string& certificate_pem) {
  wire::KeyPair pair{certificate_pem, key_pem_};
  SPILLWAY_TRY(end, wire::end_of(pair));
  SPILLWAY_TRY_VOID(use_(std::move(pair)));
  return end;
}

Result<wire::KeyPair> keep_node_certificate(const std::string& state_dir, const std::string& address, WallTime now) {
  SPILLWAY_TRY(authority, wire::CertificateAuthority::open(state_dir + "/pki", now));
  const CertificateRequest serving{.use = CertificateRequest::Use::kServer,
                                   .common_name = host_name(),
                                   .organizations = {},
                                   .hosts = {address, "localhost", host_name()}};
  return authority.keep("kubelet", serving, now);
}

}  // namespace spillway::apps
