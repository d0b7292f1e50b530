#include "policy/signing/signers.h"

#include "api/text/identities.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace spillway::signing {

namespace {

constexpr std::string_view kClientAuth = "client auth";
constexpr std::string_view kServerAuth = "server auth";
constexpr std::string_view kDigitalSignature = "digital signature";
constexpr std::string_view kKeyEncipherment = "key encipherment";

using Refusal = std::optional<std::string>;

/// Exactly a digital signature and `purpose`; key encipherment besides, which only RSA keys have a use for.
Refusal usages_refusal(std::span<const std::string> usages, std::string_view purpose) {
  std::set<std::string_view> asked(usages.begin(), usages.end());
  asked.erase(kKeyEncipherment);
  const std::set<std::string_view> needed{kDigitalSignature, purpose};
  if (asked == needed) return std::nullopt;
  std::set<std::string_view> with = needed;
  with.insert(kKeyEncipherment);
  return fmt::format("usages did not match [{}] or [{}]", fmt::join(needed, " "), fmt::join(with, " "));
}

Refusal organization_refusal(const RequestedCertificate& wanted) {
  if (wanted.organizations.size() == 1 && wanted.organizations.front() == api::kNodesGroup) return std::nullopt;
  return "subject organization is not system:nodes";
}

Refusal common_name_refusal(const RequestedCertificate& wanted) {
  if (!node_of(wanted.common_name).empty()) return std::nullopt;
  return "subject common name does not begin with system:node:";
}

Refusal kubelet_client_refusal(const RequestedCertificate& wanted, std::span<const std::string> usages) {
  if (Refusal refusal = organization_refusal(wanted)) return refusal;
  if (!wanted.dns_names.empty()) return "DNS subjectAltNames are not allowed";
  if (!wanted.email_addresses.empty()) return "Email subjectAltNames are not allowed";
  if (!wanted.ip_addresses.empty()) return "IP subjectAltNames are not allowed";
  if (!wanted.uris.empty()) return "URI subjectAltNames are not allowed";
  if (Refusal refusal = common_name_refusal(wanted)) return refusal;
  return usages_refusal(usages, kClientAuth);
}

Refusal kubelet_serving_refusal(const RequestedCertificate& wanted, std::span<const std::string> usages) {
  if (Refusal refusal = organization_refusal(wanted)) return refusal;
  if (wanted.dns_names.empty() && wanted.ip_addresses.empty()) return "DNS or IP subjectAltName is required";
  if (!wanted.email_addresses.empty()) return "Email subjectAltNames are not allowed";
  if (!wanted.uris.empty()) return "URI subjectAltNames are not allowed";
  if (Refusal refusal = usages_refusal(usages, kServerAuth)) return refusal;
  return common_name_refusal(wanted);
}

Refusal client_refusal(const RequestedCertificate& wanted, std::span<const std::string> usages) {
  for (const std::string& usage : usages) {
    if (usage != kDigitalSignature && usage != kKeyEncipherment && usage != kClientAuth) {
      return "invalid usage for client certificate: " + usage;
    }
  }
  if (std::ranges::find(usages, kClientAuth) == usages.end()) {
    return fmt::format("missing required usage for client certificate: {}", kClientAuth);
  }
  return creation_refusal(kClientSigner, wanted);
}

}  // namespace

std::string_view node_of(std::string_view common_name) {
  return common_name.starts_with(api::kNodeUserPrefix) ? common_name.substr(api::kNodeUserPrefix.size())
                                                       : std::string_view();
}

Refusal creation_refusal(std::string_view signer, const RequestedCertificate& wanted) {
  if (signer != kClientSigner ||
      std::ranges::find(wanted.organizations, api::kMastersGroup) == wanted.organizations.end()) {
    return std::nullopt;
  }
  return fmt::format("use of {} signer with {} group is not allowed", kClientSigner, api::kMastersGroup);
}

Refusal signature_refusal(std::string_view signer, const RequestedCertificate& wanted,
                          std::span<const std::string> usages) {
  if (signer == kClientSigner) return client_refusal(wanted, usages);
  if (signer == kKubeletClientSigner) return kubelet_client_refusal(wanted, usages);
  if (signer == kKubeletServingSigner) return kubelet_serving_refusal(wanted, usages);
  return std::nullopt;
}

Refusal own_node_refusal(const RequestedCertificate& wanted, std::string_view requestor,
                         std::span<const std::string> groups) {
  if (node_of(requestor).empty() || std::ranges::find(groups, api::kNodesGroup) == groups.end()) {
    return fmt::format("requestor \"{}\" is not a node", requestor);
  }
  if (wanted.common_name == requestor) return std::nullopt;
  return fmt::format("subject common name \"{}\" is not the requestor \"{}\"", wanted.common_name, requestor);
}

}  // namespace spillway::signing
