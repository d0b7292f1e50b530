// The authority of agents' certificates: a request of an agent is signed as it was checked, and no further.
#include "wire/tls/request_authority.h"

#include "runtime/loop.h"
#include "wire/temp_folder.h"
#include "wire/tls/certificate_reader.h"

#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

WallTime present() {
  return runtime::Loop().now().wall;
}

const CertificateRequest kNode{.use = CertificateRequest::Use::kServer,
                               .common_name = "system:node:n1",
                               .organizations = {"system:nodes"},
                               .hosts = {"n1", "192.0.2.7"}};

struct Room {
  TempFolder folder;
  OpensslRequestAuthority authority{*CertificateAuthority::open(folder / "pki", present()),
                                    CertificateRequest::Use::kServer};
};

TEST(RequestAuthority, SignsTheKeyOfTheRequest) {
  const Room room;
  const auto asked = make_signing_request(kNode);
  ASSERT_TRUE(asked);
  const auto wanted = OpensslCertificateReader().read_request(asked->request_pem);
  ASSERT_TRUE(wanted) << wanted.error().text();
  EXPECT_EQ(wanted->common_name, "system:node:n1");
  EXPECT_EQ(wanted->dns_names, std::vector<std::string>{"n1"});
  EXPECT_EQ(wanted->ip_addresses, std::vector<std::string>{"192.0.2.7"});
  const auto signed_pem = room.authority.sign(*wanted, asked->request_pem, hours(2), present());
  ASSERT_TRUE(signed_pem) << signed_pem.error().text();
  const auto end = end_of({*signed_pem, asked->key_pem});
  ASSERT_TRUE(end) << end.error().text();
  EXPECT_LE(*end, present() + hours(2));
  EXPECT_GT(*end, present() + hours(1));
  EXPECT_TRUE(OpensslCertificateReader().check_certificates(*signed_pem));
  // The certificate is a server's, also where it is shown as a client's.
  EXPECT_TRUE(TlsContext::make_server({.identity = {*signed_pem, asked->key_pem}, .client_authority_pem = {}}));
}

TEST(RequestAuthority, SignsWhatClientsShow) {
  const TempFolder folder;
  const OpensslRequestAuthority authority(*CertificateAuthority::open(folder / "pki", present()),
                                          CertificateRequest::Use::kClient);
  CertificateRequest node = kNode;
  node.use = CertificateRequest::Use::kClient;
  node.hosts.clear();
  const auto asked = make_signing_request(node);
  ASSERT_TRUE(asked);
  const auto wanted = OpensslCertificateReader().read_request(asked->request_pem);
  ASSERT_TRUE(wanted);
  const auto signed_pem = authority.sign(*wanted, asked->request_pem, hours(2), present());
  ASSERT_TRUE(signed_pem) << signed_pem.error().text();
  EXPECT_TRUE(TlsContext::make_client(
      {.authority_pem = authority.certificate_pem(), .identity = KeyPair{*signed_pem, asked->key_pem}}));
}

TEST(RequestAuthority, KeysAreNotMixedUp) {
  const Room room;
  const auto asked = make_signing_request(kNode);
  const auto other = make_signing_request(kNode);
  ASSERT_TRUE(asked && other);
  const auto wanted = OpensslCertificateReader().read_request(asked->request_pem);
  const auto signed_pem = room.authority.sign(*wanted, asked->request_pem, hours(2), present());
  ASSERT_TRUE(signed_pem);
  EXPECT_FALSE(end_of({*signed_pem, other->key_pem}));
  EXPECT_FALSE(end_of({"nonsense", other->key_pem}));
}

TEST(RequestAuthority, NoLifeIsLongerThanItsOwn) {
  const Room room;
  const auto asked = make_signing_request(kNode);
  const auto wanted = OpensslCertificateReader().read_request(asked->request_pem);
  const auto signed_pem = room.authority.sign(*wanted, asked->request_pem, hours(24 * 4000), present());
  ASSERT_TRUE(signed_pem);
  EXPECT_LE(*end_of({*signed_pem, asked->key_pem}), present() + CertificateAuthority::kCertificateLife);
}

TEST(RequestAuthority, NamesThatWouldAddOthersAreRefused) {
  const Room room;
  const auto asked = make_signing_request(kNode);
  auto wanted = *OpensslCertificateReader().read_request(asked->request_pem);
  wanted.dns_names = {"n1,DNS:kubernetes"};
  EXPECT_FALSE(room.authority.sign(wanted, asked->request_pem, hours(2), present()));
}

}  // namespace
}  // namespace spillway::wire
