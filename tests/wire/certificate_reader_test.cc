// Certificate requests written by OpenSSL and by hand in DER, and the errors of malformed ones.
#include "wire/tls/certificate_reader.h"

#include "api/text/base64.h"
#include "runtime/loop.h"
#include "wire/temp_folder.h"
#include "wire/tls/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace spillway::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The base64 of requests; keys are ECDSA P-256 unless the name says otherwise.
// O=system:nodes, CN=system:node:n1, names of every kind.
constexpr std::string_view kServing =
    "MIIBTTCB9AIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYI"
    "KoZIzj0DAQcDQgAEsR9m8ZNlaflzxBiHIslu7RaQukBQl5Yq25w/9RSKz0yDdGZbag9NUBtB6CbzN1Qj68dWVTIm0IjJHOZIhGJF"
    "LKBiMGAGCSqGSIb3DQEJDjFTMFEwTwYDVR0RBEgwRoICbjGCDm4xLmV4YW1wbGUuY29thwQKAAABhxD9AAAAAAAAAAAAAAAAAAAB"
    "gQVhQGIuY4YMc3BpZmZlOi8vYS9iiAMqAwQwCgYIKoZIzj0EAwIDSAAwRQIhAMY1lJOjI/e2FuOvVsWZhyQcFsX3nYGm9JLHThZe"
    "5YctAiAmJimyvIu4s+EitB78ePrnWqZtvTc1UUJwak2Y4TVXIQ==";
// RSA of 2,048 bits.
constexpr std::string_view kRsa =
    "MIICdTCCAV0CAQAwMDEVMBMGA1UECgwMc3lzdGVtOm5vZGVzMRcwFQYDVQQDDA5zeXN0ZW06bm9kZTpuMTCCASIwDQYJKoZIhvcN"
    "AQEBBQADggEPADCCAQoCggEBAJ7T/E2fnq/mojw66K5+qreuanDYT+Er650efmJR2IA6IesbAeo/yWSgaJ/k3TsU6M8uq5kgtqiU"
    "OXPMiY2CVOlZIw/fz5SXXNervw2h2X5aXmdvGmo4iZKC3gTKyRifokj0d1rWYB/pKkosGP3cHFFcYB3caib1spOkYc4xn7hlQBbj"
    "vPo1JiS5rsPrnZdGz62/k4b2PfbxOk76qt2Cn8La29MQIKHMBE4YORt0hdynOo2G/1zYklhDNIhBmtqCdcNzmuC1age9jDXRQRE6"
    "K+ux9i17ho0RPIARKD+IoZBIg2VDybxBNtbM6qAAKzkomNF7KtGIui9bpdGRbtzMhX0CAwEAAaAAMA0GCSqGSIb3DQEBCwUAA4IB"
    "AQAsQWMOn0N2nCyS7GPgr0oq9VxNtkZAL4n9czHsGRMUjs2fKSPH9ie+uh6llodaNdPKpk2k4IsoGy4ucIW5Y2Cf+linWi6P9zpc"
    "XGOB9dUYYWxrnUgDUIaXaUyPxHJWKNuVl+T1YM22F/148sXb7fm4FqC+gx6XnBkdju702Z2Jz76LgSrkP19TBjp+Y2U6puMSbb4Z"
    "h1NgPZwvSf2D+Zb4TvYJMeRBYquHKBaiegOrgcRZGnqi2WhVw6umk0199BbNCwdKaEu22AWDMFfxR9K5534aELvK9ZZqe5MDW4qo"
    "6UfUnCgJUlipqbgLgUV2YUsSMt/xKYIpTlTCE4DG6s6t";
constexpr std::string_view kEd25519 =
    "MIGvMGMCAQAwMDEVMBMGA1UECgwMc3lzdGVtOm5vZGVzMRcwFQYDVQQDDA5zeXN0ZW06bm9kZTpuMTAqMAUGAytlcAMhAObi/l94"
    "K6hNNo6zv1V6FdoFe5yoIZ24qNZCzKFPcdgFoAAwBQYDK2VwA0EAFWSWhkHpsqhc/39TsdK7GMoRJ1YiyZHBTzazJ2Zldr8ncBKd"
    "g4koejFkNSIFGwssL/OkIhAlFBd2iOa1EpSuCA==";
// O=system:masters, CN=evil.
constexpr std::string_view kMasters =
    "MIHkMIGKAgEAMCgxFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJzMQ0wCwYDVQQDDARldmlsMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD"
    "QgAEsR9m8ZNlaflzxBiHIslu7RaQukBQl5Yq25w/9RSKz0yDdGZbag9NUBtB6CbzN1Qj68dWVTIm0IjJHOZIhGJFLKAAMAoGCCqG"
    "SM49BAMCA0kAMEYCIQCqgANMb8iKW47cANEwK4EfYD9GwPsrrANRxeVkJ6+zIwIhANSqQmMWa3enPcNaUkOu0MFagZMYSqHmeyXI"
    "nBNxvfD6";
// CN=admin before CN=system:node:n1.
constexpr std::string_view kTwoNames =
    "MIH8MIGiAgEAMEAxDjAMBgNVBAMMBWFkbWluMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5c3RlbTpub2RlOm4x"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhWY4jZ4QXhtLfAzeUB7DejRNrG/pCzOnU5r3keWNUswJBUp5I7cti7hnK/UMExIz"
    "el/6phxnzXqeI8kieAmLbKAAMAoGCCqGSM49BAMCA0kAMEYCIQD3vevyWgC3ebTLI3qqW5s/RHUwZAT3mvaFxbLckxp4oAIhAOlJ"
    "LCTNk9ovyYj4Uzw+r/rYPxbbhDcHnPyEETJjRDe7";
constexpr std::string_view kDsa =
    "MIID0DCCA34CAQAwMDEVMBMGA1UECgwMc3lzdGVtOm5vZGVzMRcwFQYDVQQDDA5zeXN0ZW06bm9kZTpuMTCCA0MwggI2BgcqhkjO"
    "OAQBMIICKQKCAQEA6SDOoTtkLu+BK7vjefhGJyj7ivRrxs58Eq8m5IDB0XOnKJgwZistgau5SYynhsc5iM3DCEX+at8Kk66Vo8iS"
    "s1VTPvvG9bobF86DzSBSV4gLuZtpW+7y3y0fPK2FrqHbsswR/eYAPS+t51q/kfzhKRoNn5/rjj+H69Suaa/GrZms9ciIasCjsirZ"
    "63uqpNX2JTCyEOc4SqeUt2u7c7RD/t8pNTZdxsnUI4+q3+cVJvSTs2zR7mnafbcToUXTLlh0P/xlx8xFSzlg+v80e9gM9uxta5/X"
    "fqbT278Kff9G8MRMiJk+udV4vHgb315NtAAquaUHwHnVs3LegZw++5jQ5wIdAO9lzErSoVXceyLKnat5XEYJ+Omdei+Lgi49QkMC"
    "ggEBALApPR8iTRzmUeqPNHyvwFQKXFBY3OJp7BjclOZyU4FGWgz7Tpn+GsEf6nFb3MVG7i47jRjIuWRtZVtsDiddmsY6Z1KS1EUF"
    "8t/6pEwCej7CqfJIsHKF3O38aECuKnvvbyrYCpbWM8Ls4KyrZgKByj5wgn/xJj+Tc+Tu7K299JWqdfzwGaNdHZ5UraudLetuDcCJ"
    "zcQxqAUmOHKG617U77jXwI07Tpn305z6TyrXVcTGD2+rSnsiKGVbXlja7R6IF24N0xiPpi8HcsrZKPWiZZ7onCOfcypUsr9ggp7o"
    "FpFvnFtvREelKA8Esm243eI/7si+bTASmN5ZFgOecqw18j0DggEFAAKCAQBgfYn6fC5vlaoyLojFqNe57Q9VotUeHwbLvoS3tC/T"
    "wj5B0KRu4Ki0f9hLYiMPOmI2ubI+fXJU8X8RX7V56RIP796TIvrp4TZuU40dLfBJwwxITyUC9vCKLXIfTxwDxlL8wKdTNnmTOgIm"
    "H+JxR9yFlYCeSs2XbOX81v8EpJee0kBsjn5fPRiIxssgEYo2b+RBdTSc7cXB80OxH3u//jeXhTJFVKUDGENAfPXoXYrB2oQCLw3y"
    "XBqOoPmKR/VODYCkehkLNVbgdWqxb8Jgb7lTKmXqIun9hvY3PN0B35q0AYACSklnwdv/k7xBSuJJh6Exv0Z2Tr11x8sTuo7zM9rV"
    "oAAwCwYJYIZIAWUDBAMCAz8AMDwCHCEuflMydmRbVdy10/KfkWSEjeEbeoLP3On19fwCHCgKA3Jmr+jTDZm0RJIwcwcTS0Yn9VrW"
    "Fe580Hw=";
constexpr std::string_view kSpaceInName =
    "MIIBDDCBswIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYI"
    "KoZIzj0DAQcDQgAEsR9m8ZNlaflzxBiHIslu7RaQukBQl5Yq25w/9RSKz0yDdGZbag9NUBtB6CbzN1Qj68dWVTIm0IjJHOZIhGJF"
    "LKAhMB8GCSqGSIb3DQEJDjESMBAwDgYDVR0RBAcwBYIDYSBiMAoGCCqGSM49BAMCA0gAMEUCIGoAiUXmemZ7zrxOSvJKBZaSYkAw"
    "5v5ykBo3MmKp0ijIAiEAq9NZ0I2tkK755UEY+pA0m6b/F6ihPP8N/JVQvUePTiA=";
constexpr std::string_view kZeroInDnsName =
    "MIIBDDCBswIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYI"
    "KoZIzj0DAQcDQgAEsR9m8ZNlaflzxBiHIslu7RaQukBQl5Yq25w/9RSKz0yDdGZbag9NUBtB6CbzN1Qj68dWVTIm0IjJHOZIhGJF"
    "LKAhMB8GCSqGSIb3DQEJDjESMBAwDgYDVR0RBAcwBYIDYQBiMAoGCCqGSM49BAMCA0gAMEUCIQDcuNaXfcL/dFa7FXSRooWtmZsY"
    "MfyMga0qvWHFbVk9/QIgLSXCzIBwFJg68HTmUDjMrol/Ta/Hh8XMMnlHz+L+yxo=";
constexpr std::string_view kZeroInCommonName =
    "MIHyMIGYAgEAMDYxFTATBgNVBAoMDHN5c3RlbTpub2RlczEdMBsGA1UEAwwUc3lzdGVtOm5vZGU6bjEALmV2aWwwWTATBgcqhkjO"
    "PQIBBggqhkjOPQMBBwNCAASFZjiNnhBeG0t8DN5QHsN6NE2sb+kLM6dTmveR5Y1SzAkFSnkjty2LuGcr9QwTEjN6X/qmHGfNep4j"
    "ySJ4CYtsoAAwCgYIKoZIzj0EAwIDSQAwRgIhAKliGA8PfITzLDyZ8QyP/40SWoNXC+hYp1BV9lwvm4BIAiEAuppHvi8JEOTbZ8Hu"
    "L57QBVPyZml0GCxum1S7j/4f4gw=";
constexpr std::string_view kOddAddress =
    "MIIBDjCBtQIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYI"
    "KoZIzj0DAQcDQgAEsR9m8ZNlaflzxBiHIslu7RaQukBQl5Yq25w/9RSKz0yDdGZbag9NUBtB6CbzN1Qj68dWVTIm0IjJHOZIhGJF"
    "LKAjMCEGCSqGSIb3DQEJDjEUMBIwEAYDVR0RBAkwB4cFAQIDBAUwCgYIKoZIzj0EAwIDSAAwRQIgVPXh7ik7U1uYRzpsbc00chD8"
    "M4WqZu1nGNwu2CcFe9sCIQCRR20nqhgOr2ZgylSF7YQq8cVnAcszmJqsLwxOQyn3+A==";
constexpr std::string_view kTwoExtensions =
    "MIIBFzCBvwIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYI"
    "KoZIzj0DAQcDQgAEhWY4jZ4QXhtLfAzeUB7DejRNrG/pCzOnU5r3keWNUswJBUp5I7cti7hnK/UMExIzel/6phxnzXqeI8kieAmL"
    "bKAtMCsGCSqGSIb3DQEJDjEeMBwwDAYDVR0RBAUwA4IBYTAMBgNVHREEBTADggFiMAoGCCqGSM49BAMCA0cAMEQCIA73jFrgpbfG"
    "PB2wMNqciBZeSYYwvy+V7mpDx3hq4AHoAiBUD+tnC+8Vu5NdVsgPEKJ6knSZUyDEkr7V3CQf29rZcg==";
constexpr std::string_view kTwoAttributes =
    "MIIBKTCB0AIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYI"
    "KoZIzj0DAQcDQgAEhWY4jZ4QXhtLfAzeUB7DejRNrG/pCzOnU5r3keWNUswJBUp5I7cti7hnK/UMExIzel/6phxnzXqeI8kieAmL"
    "bKA+MB0GCSqGSIb3DQEJDjEQMA4wDAYDVR0RBAUwA4IBYTAdBgkqhkiG9w0BCQ4xEDAOMAwGA1UdEQQFMAOCAWIwCgYIKoZIzj0E"
    "AwIDSAAwRQIhALixDeE8P0UenIDCaEOGpB5+2yw4kSsnOQcoF8PH5cWrAiBVA1g8udWbJOlh5KQLLSO44N0u7X082wLMW/KkFcCw"
    "hg==";
constexpr std::string_view kTrailingBytes =
    "MIHqMIGSAgEAMDAxFTATBgNVBAoMDHN5c3RlbTpub2RlczEXMBUGA1UEAwwOc3lzdGVtOm5vZGU6bjEwWTATBgcqhkjOPQIBBggq"
    "hkjOPQMBBwNCAASFZjiNnhBeG0t8DN5QHsN6NE2sb+kLM6dTmveR5Y1SzAkFSnkjty2LuGcr9QwTEjN6X/qmHGfNep4jySJ4CYts"
    "oAAwCgYIKoZIzj0EAwIDRwAwRAIgak7M9CisluewhtbcJ5o+2bgVGTlvBjOt+uzE9f46C8MCIHfQeSc17yeo3t2E27Cwgh75QZCC"
    "959T2fm7oTvQ6FlUBQA=";

std::string pem_of(std::string_view base64, std::string_view kind = "CERTIFICATE REQUEST") {
  std::string text = fmt::format("-----BEGIN {}-----\n", kind);
  for (std::size_t at = 0; at < base64.size(); at += 64) text += fmt::format("{}\n", base64.substr(at, 64));
  return text + fmt::format("-----END {}-----\n", kind);
}

std::string problem_of(const std::string& pem) {
  const auto read = OpensslCertificateReader().read_request(pem);
  return read ? "" : read.error().text();
}

TEST(CertificateReader, ReadsWhatARequestAsksFor) {
  const auto read = OpensslCertificateReader().read_request(pem_of(kServing));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->common_name, "system:node:n1");
  EXPECT_THAT(read->organizations, ElementsAre("system:nodes"));
  EXPECT_THAT(read->dns_names, ElementsAre("n1", "n1.example.com"));
  EXPECT_THAT(read->ip_addresses, ElementsAre("10.0.0.1", "fd00::1"));
  EXPECT_THAT(read->email_addresses, ElementsAre("a@b.c"));
  EXPECT_THAT(read->uris, ElementsAre("spiffe://a/b"));
}

TEST(CertificateReader, TakesTheUsualKeys) {
  for (const std::string_view request : {kRsa, kEd25519}) {
    const auto read = parse_signing_request("Certificate Request:\n" + pem_of(request));
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->wanted.common_name, "system:node:n1");
    EXPECT_TRUE(read->key);
  }
  EXPECT_EQ(problem_of(pem_of(kDsa)), "the public key is none of RSA up to 8192 bits, ECDSA on a named curve, Ed25519");
}

TEST(CertificateReader, TheLastCommonNameCounts) {
  const auto read = OpensslCertificateReader().read_request(pem_of(kTwoNames));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->common_name, "system:node:n1");
}

TEST(CertificateReader, TheRequestIsSignedWithItsOwnKey) {
  std::string der = *api::decode_base64(kMasters);
  const std::size_t at = der.find("evil");
  ASSERT_NE(at, std::string::npos);
  der[at] = 'E';
  EXPECT_EQ(problem_of(pem_of(api::encode_base64(der))), "the request is not signed with the key that it names");
}

TEST(CertificateReader, SaysWhatIsWrong) {
  const std::string no_block = "PEM block type must be CERTIFICATE REQUEST";
  EXPECT_EQ(problem_of(""), no_block);
  EXPECT_EQ(problem_of("x"), no_block);
  EXPECT_EQ(problem_of(pem_of(kServing, "NEW CERTIFICATE REQUEST")), no_block);
  EXPECT_EQ(problem_of(pem_of(kServing, "CERTIFICATE")), no_block);
  EXPECT_EQ(problem_of(pem_of(kServing).substr(0, 200)), no_block);
  EXPECT_THAT(problem_of(pem_of("AAAA")), HasSubstr("malformed certificate request"));
  EXPECT_THAT(problem_of(pem_of(kTrailingBytes)), HasSubstr("malformed certificate request"));
  EXPECT_THAT(problem_of(pem_of(kSpaceInName)), HasSubstr("printable ASCII"));
  EXPECT_THAT(problem_of(pem_of(kZeroInDnsName)), HasSubstr("printable ASCII"));
  EXPECT_THAT(problem_of(pem_of(kZeroInCommonName)), HasSubstr("zero byte"));
  EXPECT_THAT(problem_of(pem_of(kOddAddress)), HasSubstr("length 5"));
  EXPECT_THAT(problem_of(pem_of(kTwoExtensions)), HasSubstr("duplicate requested extensions"));
  EXPECT_THAT(problem_of(pem_of(kTwoAttributes)), HasSubstr("duplicate requested extensions"));
  EXPECT_EQ(problem_of(pem_of(kServing) + std::string(64 * 1024, ' ')), "larger than 65536 bytes");
}

TEST(CertificateReader, ChecksIssuedCertificates) {
  const TempFolder folder;
  const auto authority = CertificateAuthority::open(folder / "pki", runtime::Loop().now().wall);
  ASSERT_TRUE(authority) << authority.error().text();
  const OpensslCertificateReader reader;
  const std::string& good = authority->certificate_pem();
  EXPECT_TRUE(reader.check_certificates(good));
  EXPECT_TRUE(reader.check_certificates(good + good));
  EXPECT_TRUE(reader.check_certificates("# a comment\n" + good));
  const auto problem = [&](const std::string& pem) {
    const Outcome checked = reader.check_certificates(pem);
    return checked ? "" : checked.error().text();
  };
  EXPECT_EQ(problem(""), "must contain at least one CERTIFICATE PEM block");
  EXPECT_EQ(problem("x"), "must contain at least one CERTIFICATE PEM block");
  EXPECT_EQ(problem(pem_of(kServing)), "only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\"");
  EXPECT_EQ(problem(good + pem_of(kServing)), "only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\"");
  EXPECT_THAT(problem(pem_of("AAAA", "CERTIFICATE")), HasSubstr("malformed certificate"));
  EXPECT_EQ(problem("-----BEGIN CERTIFICATE-----\nA: b\n\nAAAA\n-----END CERTIFICATE-----\n"),
            "no PEM block headers are permitted");
  EXPECT_EQ(problem(good + std::string(256 * 1024, ' ')), "larger than 262144 bytes");
}

}  // namespace
}  // namespace spillway::wire
