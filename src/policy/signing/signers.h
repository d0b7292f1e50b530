// The rules of Kubernetes' own signers, over a parsed certificate request, its usages and its requestor. A refusal is
// upstream's text; no text means that the rule allows the request.
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

/// The parts of a certificate request that a signer may sign. A signer makes the certificate from these members, not
/// from the request's own bytes, so that nothing unchecked gets into it.
struct RequestedCertificate {
  std::string common_name;                 // the last one, if there are several; empty: none
  std::vector<std::string> organizations;  // in the request's order
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;  // "10.0.0.1", "fd00::1"
  std::vector<std::string> email_addresses;
  std::vector<std::string> uris;

  friend bool operator==(const RequestedCertificate&, const RequestedCertificate&) = default;
};

/// The reason why a request for that signer may not even be created: no signature may make its holder a member of
/// system:masters.
std::optional<std::string> creation_refusal(std::string_view signer, const RequestedCertificate& wanted);

/// The reason why that signer does not sign the request. `usages` as in spec.usages; their order and repeats do not
/// matter. There are no rules for signers that are not Kubernetes' own.
std::optional<std::string> signature_refusal(std::string_view signer, const RequestedCertificate& wanted,
                                             std::span<const std::string> usages);

/// The reason why a request for a node's certificate, client or serving, may not be approved automatically: its
/// requestor must be the node that it names.
std::optional<std::string> own_node_refusal(const RequestedCertificate& wanted, std::string_view requestor,
                                            std::span<const std::string> groups);

/// The node that a common name "system:node:NAME" is of; empty if it is of none.
std::string_view node_of(std::string_view common_name);

}  // namespace spillway::signing
