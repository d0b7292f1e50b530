#include "policy/signing/signers.h"

#include <gtest/gtest.h>

namespace spillway::signing {
namespace {

using Usages = std::vector<std::string>;

const Usages kClient{"digital signature", "client auth"};
const Usages kServing{"digital signature", "server auth"};

RequestedCertificate client_of(const std::string& node) {
  return {.common_name = "system:node:" + node, .organizations = {"system:nodes"}};
}

RequestedCertificate serving_of(const std::string& node) {
  RequestedCertificate wanted = client_of(node);
  wanted.dns_names = {node};
  wanted.ip_addresses = {"10.0.0.1"};
  return wanted;
}

/// `base` after `change`.
template <typename Change>
RequestedCertificate with(RequestedCertificate base, Change change) {
  change(base);
  return base;
}

struct Row {
  std::string_view name;
  std::string_view signer;
  RequestedCertificate wanted;
  Usages usages;
  std::optional<std::string> refusal;
};

TEST(Signers, SignWhatTheirDescriptionSays) {
  const std::string no_organization = "subject organization is not system:nodes";
  const std::string no_node = "subject common name does not begin with system:node:";
  const std::string serving_usages =
      "usages did not match [digital signature server auth] or [digital signature key encipherment server auth]";
  const std::string client_usages =
      "usages did not match [client auth digital signature] or [client auth digital signature key encipherment]";
  const Row rows[] = {
      {"client", kKubeletClientSigner, client_of("n1"), kClient, std::nullopt},
      {"client, RSA",
       kKubeletClientSigner,
       client_of("n1"),
       {"key encipherment", "client auth", "digital signature", "client auth"},
       std::nullopt},
      {"client, server too",
       kKubeletClientSigner,
       client_of("n1"),
       {"digital signature", "client auth", "server auth"},
       client_usages},
      {"client, no signature", kKubeletClientSigner, client_of("n1"), {"client auth"}, client_usages},
      {"client, no organization", kKubeletClientSigner, with(client_of("n1"), [](auto& w) { w.organizations.clear(); }),
       kClient, no_organization},
      {"client, masters besides", kKubeletClientSigner,
       with(client_of("n1"), [](auto& w) { w.organizations.emplace_back("system:masters"); }), kClient,
       no_organization},
      {"client, not a node", kKubeletClientSigner, with(client_of("n1"), [](auto& w) { w.common_name = "admin"; }),
       kClient, no_node},
      {"client, no node's name", kKubeletClientSigner, client_of(""), kClient, no_node},
      {"client, DNS", kKubeletClientSigner, with(client_of("n1"), [](auto& w) { w.dns_names = {"n1"}; }), kClient,
       "DNS subjectAltNames are not allowed"},
      {"client, IP", kKubeletClientSigner, with(client_of("n1"), [](auto& w) { w.ip_addresses = {"::1"}; }), kClient,
       "IP subjectAltNames are not allowed"},
      {"client, mail", kKubeletClientSigner, with(client_of("n1"), [](auto& w) { w.email_addresses = {"a@b"}; }),
       kClient, "Email subjectAltNames are not allowed"},
      {"client, URI", kKubeletClientSigner, with(client_of("n1"), [](auto& w) { w.uris = {"spiffe://a/b"}; }), kClient,
       "URI subjectAltNames are not allowed"},
      {"serving", kKubeletServingSigner, serving_of("n1"), kServing, std::nullopt},
      {"serving, IP alone", kKubeletServingSigner, with(serving_of("n1"), [](auto& w) { w.dns_names.clear(); }),
       kServing, std::nullopt},
      {"serving, no names", kKubeletServingSigner, client_of("n1"), kServing, "DNS or IP subjectAltName is required"},
      {"serving, no organization", kKubeletServingSigner,
       with(serving_of("n1"), [](auto& w) { w.organizations = {"system:node"}; }), kServing, no_organization},
      {"serving, mail", kKubeletServingSigner, with(serving_of("n1"), [](auto& w) { w.email_addresses = {"a@b"}; }),
       kServing, "Email subjectAltNames are not allowed"},
      {"serving, URI", kKubeletServingSigner, with(serving_of("n1"), [](auto& w) { w.uris = {"https://a"}; }), kServing,
       "URI subjectAltNames are not allowed"},
      {"serving, client", kKubeletServingSigner, serving_of("n1"), kClient, serving_usages},
      {"serving, no usages", kKubeletServingSigner, serving_of("n1"), {}, serving_usages},
      {"serving, not a node", kKubeletServingSigner, with(serving_of("n1"), [](auto& w) { w.common_name = "n1"; }),
       kServing, no_node},
      {"user", kClientSigner, {.common_name = "ann", .organizations = {"dev"}}, {"client auth"}, std::nullopt},
      {"user, serving",
       kClientSigner,
       {.common_name = "ann"},
       kServing,
       "invalid usage for client certificate: server auth"},
      {"user, no purpose",
       kClientSigner,
       {.common_name = "ann"},
       {"digital signature"},
       "missing required usage for client certificate: client auth"},
      {"user, masters",
       kClientSigner,
       {.common_name = "ann", .organizations = {"dev", "system:masters"}},
       kClient,
       "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"},
      {"another's signer", "example.com/any", {.organizations = {"system:masters"}}, {}, std::nullopt},
  };
  for (const Row& row : rows) EXPECT_EQ(signature_refusal(row.signer, row.wanted, row.usages), row.refusal) << row.name;
}

TEST(Signers, NoRequestMayNameTheGroupMasters) {
  const RequestedCertificate master{.common_name = "x", .organizations = {"a", "system:masters"}};
  EXPECT_TRUE(creation_refusal(kClientSigner, master));
  EXPECT_FALSE(creation_refusal(kClientSigner, {.common_name = "system:masters", .organizations = {"masters"}}));
  // Other signers refuse the request when they sign, by their own rules.
  EXPECT_FALSE(creation_refusal(kKubeletClientSigner, master));
  EXPECT_FALSE(creation_refusal("example.com/any", master));
}

TEST(Signers, ANodeAsksForItselfOnly) {
  const Usages nodes{"system:authenticated", "system:nodes"};
  const Usages others{"system:authenticated"};
  EXPECT_FALSE(own_node_refusal(serving_of("n1"), "system:node:n1", nodes));
  EXPECT_EQ(own_node_refusal(serving_of("n2"), "system:node:n1", nodes),
            "subject common name \"system:node:n2\" is not the requestor \"system:node:n1\"");
  EXPECT_EQ(own_node_refusal(serving_of("n1"), "system:node:n1", others), "requestor \"system:node:n1\" is not a node");
  EXPECT_TRUE(own_node_refusal(client_of(""), "system:node:", nodes));
  EXPECT_TRUE(own_node_refusal(client_of("n1"), "ann", nodes));
}

}  // namespace
}  // namespace spillway::signing
