// What the signers that every cluster knows will sign: rules over a certificate request as it was read, its usages and
// who asked for it. A refusal is upstream's text; no text means that the rule has nothing against it.
// Thread: any (pure). Source: Kubernetes docs, "Certificates and Certificate Signing Requests", Kubernetes signers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::signing {

inline constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client";
inline constexpr std::string_view kKubeletClientSigner = "kubernetes.io/kube-apiserver-client-kubelet";
inline constexpr std::string_view kKubeletServingSigner = "kubernetes.io/kubelet-serving";
inline constexpr std::string_view kLegacyUnknownSigner = "kubernetes.io/legacy-unknown";

/// What a certificate request asks for, as far as anybody may sign it. A signer makes the certificate from these
/// members, not from the request's own bytes: what is not here was not looked at.
struct RequestedCertificate {
  std::string common_name;                 // the last, where there are several; empty: none
  std::vector<std::string> organizations;  // in the request's order
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;  // "10.0.0.1", "fd00::1"
  std::vector<std::string> email_addresses;
  std::vector<std::string> uris;

  friend bool operator==(const RequestedCertificate&, const RequestedCertificate&) = default;
};

/// Why a request for that signer may not even be created: nobody becomes system:masters by a signature.
std::optional<std::string> creation_refusal(std::string_view signer, const RequestedCertificate& wanted);

/// Why that signer does not sign this. `usages` as in spec.usages; their order and repeats do not matter. Signers that
/// are not Kubernetes' own have no rule here.
std::optional<std::string> signature_refusal(std::string_view signer, const RequestedCertificate& wanted,
                                             std::span<const std::string> usages);

/// Why a request for a node's certificate, client or serving, may not be approved unseen: it must come from the node
/// that it names.
std::optional<std::string> own_node_refusal(const RequestedCertificate& wanted, std::string_view requestor,
                                            std::span<const std::string> groups);

/// The node that a common name "system:node:NAME" is of; empty if it is of none.
std::string_view node_of(std::string_view common_name);

}  // namespace spillway::signing
