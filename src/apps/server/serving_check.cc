#include "apps/server/serving_check.h"

#include "apps/server/certificate_files.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "wire/server/authenticator.h"
#include "wire/tls/certificate_authority.h"
#include "wire/tls/tls.h"
#include "wire/tls/token_key.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace spillway::apps {

namespace {

template <typename Checked>
Outcome named_by(std::string_view flag, const Checked& checked) {
  return checked ? Outcome() : Outcome(invalid(flag, "{}", checked.error().text()));
}

Outcome check_authority(std::string_view flag, const std::string& path) {
  if (path.empty()) return {};
  const auto pem = read_file(path);
  if (!pem) return named_by(flag, pem);
  if (pem->empty()) return invalid(flag, "{}: is empty", path);
  const auto usable = wire::TlsContext::make_client({.authority_pem = *pem, .identity = {}});
  return usable ? Outcome() : Outcome(invalid(flag, "{}: {}", path, usable.error().message));
}

Outcome check_pair(std::string_view flag, const std::string& certificate, const std::string& key) {
  if (certificate.empty()) return {};
  const auto certificate_pem = read_file(certificate);
  if (!certificate_pem) return named_by(flag, certificate_pem);
  const auto key_pem = read_file(key);
  if (!key_pem) return named_by(flag, key_pem);
  return named_by(flag, wire::end_of({*certificate_pem, *key_pem}));
}

/// Binds to any free port of the address, and closes it again.
Outcome check_address(const std::string& address) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  const bool is_v4 = ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) return {};
  const UniqueFd socket(::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* at = is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
  const bool bound = socket && ::bind(socket.get(), at, is_v4 ? sizeof v4 : sizeof v6) == 0;
  if (bound || (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT)) return {};  // the server reports any other error
  return invalid("--bind-address", "{} is no address of this machine", address);
}

/// True if `folder` is `data_dir` or above it. Both are made together, so `folder` need not exist yet.
bool is_made_with(const std::filesystem::path& folder, const std::string& data_dir) {
  const auto part = std::filesystem::path(data_dir).lexically_relative(folder).string();
  return !part.empty() && !part.starts_with("..");
}

Outcome check_new_file(std::string_view flag, const std::string& path, const std::string& data_dir) {
  if (path.empty()) return {};
  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(path, error).lexically_normal();
  if (std::filesystem::is_directory(file, error)) return invalid(flag, "{} is a directory, expected a file", path);
  const std::filesystem::path folder = file.parent_path();
  if (std::filesystem::is_directory(folder, error) || is_made_with(folder, data_dir)) return {};
  return invalid(flag, "{}: there is no directory {}", path, folder.string());
}

Outcome check_certificates(const cli::ServingArgs& args, WallTime now) {
  const bool brings = !args.client_ca_file.empty() || !args.tls_certificate_file.empty();
  CertificateFiles files(
      {.client_authority = args.client_ca_file, .certificate = args.tls_certificate_file, .key = args.tls_key_file});
  if (brings) {
    const std::string_view flag = args.tls_certificate_file.empty() ? "--client-ca-file" : "--tls-cert-file";
    SPILLWAY_TRY_VOID(check_authority("--client-ca-file", args.client_ca_file));
    SPILLWAY_TRY_VOID(named_by(flag, files.refresh(now)));
  }
  SPILLWAY_TRY_VOID(check_authority("--kubelet-certificate-authority", args.kubelet_certificate_authority));
  const Outcome names = wire::check_hosts(args.names_to_clients);
  return names ? Outcome() : Outcome(invalid("--tls-san", "{}", names.error().message));
}

Outcome check_etcd_files(const cli::EtcdArgs& args) {
  SPILLWAY_TRY_VOID(check_authority("--etcd-cafile", args.ca_file));
  SPILLWAY_TRY_VOID(check_pair("--etcd-certfile", args.certificate_file, args.key_file));
  return args.password_file.empty() ? Outcome() : named_by("--etcd-password-file", read_file(args.password_file));
}

}  // namespace

Outcome check_serving(const cli::ServingArgs& args, const std::string& data_dir, WallTime now) {
  SPILLWAY_TRY_VOID(check_etcd_files(args.etcd));
  if (!args.token_auth_file.empty())
    SPILLWAY_TRY_VOID(named_by("--token-auth-file", wire::read_token_file(args.token_auth_file)));
  SPILLWAY_TRY_VOID(named_by("--service-account-signing-key-file",
                             wire::TokenKey::check({.signing = args.token_signing_key_file, .accepted = {}})));
  SPILLWAY_TRY_VOID(
      named_by("--service-account-key-file", wire::TokenKey::check({.signing = {}, .accepted = args.token_key_files})));
  SPILLWAY_TRY_VOID(check_certificates(args, now));
  SPILLWAY_TRY_VOID(check_new_file("--write-kubeconfig", args.write_kubeconfig, data_dir));
  SPILLWAY_TRY_VOID(
      check_new_file("--audit-log-path", args.audit.log_path == "-" ? "" : args.audit.log_path, data_dir));
  return check_address(args.bind_address);
}

}  // namespace spillway::apps
