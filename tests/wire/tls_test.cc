// The authority's certificates, and TLS between our server and our client with them.
#include "wire/tls/tls.h"

#include "wire/temp_folder.h"
#include "wire/tls/certificate_authority.h"
#include "wire/tls/private_file.h"
#include "wire/wire_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The present, as certificates are checked against it by OpenSSL.
WallTime now() {
  return runtime::Loop().now().wall;
}

const CertificateRequest kServer{CertificateRequest::Use::kServer, "apiserver", {}, {"localhost", "127.0.0.1", "::1"}};
const CertificateRequest kAdmin{CertificateRequest::Use::kClient, "admin", {"system:masters", "ops"}, {}};

/// A server with a certificate of its own authority, which also vouches for clients.
class TlsRoom {
 public:
  TlsRoom() : authority(*CertificateAuthority::open(folder / "pki", now())) {}

  std::unique_ptr<ServerRoom> serve(const CertificateRequest& request = kServer, const TlsBounds& bounds = {}) const {
    auto identity = authority.issue(request, now());
    EXPECT_TRUE(identity);
    auto tls = TlsContext::make_server(
        {.identity = *identity, .client_authority_pem = authority.certificate_pem(), .bounds = bounds});
    EXPECT_TRUE(tls) << tls.error().text();
    HttpServer::Options options;
    options.tls = *tls;
    options.authenticator =
        std::make_shared<const Authenticator>(Authenticator::Options{.tokens = {{"good", {"bob", "7", {"dev"}}}}});
    auto room = std::make_unique<ServerRoom>(std::move(options));
    room->run([&] {
      room->handler.on("/who", [](ScriptedHandler::Seen& seen) {
        std::string text = seen.user.name;
        for (const std::string& group : seen.user.groups) text += " " + group;
        text += " [" + std::string(seen.request.header("authorization")) + "]";
        seen.sink->on_response({200, {}, text});
      });
    });
    return room;
  }

  std::shared_ptr<const TlsContext> client(std::optional<KeyPair> identity = std::nullopt) const {
    auto tls = TlsContext::make_client({authority.certificate_pem(), true, std::move(identity)});
    EXPECT_TRUE(tls) << tls.error().text();
    return *tls;
  }

  TempFolder folder;
  CertificateAuthority authority;
};

api::Response who(TestClient& client, const std::string& headers = "") {
  EXPECT_TRUE(client.connected()) << client.problem();
  client.send("GET /who HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
  return client.answer();
}

TEST(Tls, ServesClientsWithoutCertificateAsAnonymous) {
  const TlsRoom pki;
  const auto room = pki.serve();
  TestClient client(room->port, pki.client().get());
  EXPECT_EQ(who(client).body, "system:anonymous system:unauthenticated []");
  EXPECT_EQ(who(client).status, 200) << "keep-alive";
}

TEST(Tls, ClientCertificateIsTheUser) {
  const TlsRoom pki;
  const auto room = pki.serve();
  const auto admin = pki.authority.issue(kAdmin, now());
  TestClient client(room->port, pki.client(*admin).get());
  EXPECT_EQ(who(client).body, "admin system:masters ops system:authenticated []");
}

TEST(Tls, TokensWorkAndAreNotPassedOn) {
  const TlsRoom pki;
  const auto room = pki.serve();
  TestClient client(room->port, pki.client().get());
  EXPECT_EQ(who(client, "Authorization: Bearer good\r\n").body, "bob dev system:authenticated []");
  const api::Response refused = who(client, "Authorization: Bearer bad\r\n");
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.body, HasSubstr("\"reason\":\"Unauthorized\""));
  EXPECT_EQ(who(client).status, 200) << "a refused request does not cost the connection";
}

TEST(Tls, CertificateOfAnotherAuthorityIs401) {
  const TlsRoom pki;
  const TlsRoom stranger;
  const auto room = pki.serve();
  const auto forged = stranger.authority.issue(kAdmin, now());
  TestClient client(room->port, pki.client(*forged).get());
  const api::Response refused = who(client);
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.body, HasSubstr("client certificate"));
}

TEST(Tls, ExpiredClientCertificateIs401) {
  const TlsRoom pki;
  const auto room = pki.serve();
  const auto old = pki.authority.issue(kAdmin, now() - hours(24 * 400));
  TestClient client(room->port, pki.client(*old).get());
  EXPECT_EQ(who(client).status, 401);
}

TEST(Tls, ServerCertificateIsNoClientCertificate) {
  const TlsRoom pki;
  const auto room = pki.serve();
  const auto server = pki.authority.issue(kServer, now());
  TestClient client(room->port, pki.client(*server).get());
  EXPECT_EQ(who(client).status, 401);
}

TEST(Tls, ClientRefusesAServerItDoesNotKnow) {
  const TlsRoom pki;
  const TlsRoom stranger;
  const auto room = stranger.serve();
  TestClient client(room->port, pki.client().get());
  EXPECT_FALSE(client.connected());
  EXPECT_THAT(client.problem(), StartsWith("certificate not trusted: "));
  auto careless = TlsContext::make_client({"", false, std::nullopt});
  TestClient insecure(room->port, careless->get());
  EXPECT_EQ(who(insecure).status, 200) << "insecure-skip-tls-verify";
}

TEST(Tls, ClientChecksTheNameOnTheCertificate) {
  const TlsRoom pki;
  const auto room = pki.serve();
  for (const char* host : {"localhost", "127.0.0.1", "::1"}) {
    EXPECT_TRUE(TestClient(room->port, pki.client().get(), host).connected()) << host;
  }
  for (const char* host : {"example.com", "127.0.0.2"}) {
    TestClient client(room->port, pki.client().get(), host);
    EXPECT_FALSE(client.connected()) << host;
    EXPECT_THAT(client.problem(), HasSubstr("mismatch")) << host;
  }
}

TEST(Tls, CarriesLargeBodiesBothWays) {
  const TlsRoom pki;
  const auto room = pki.serve();
  room->run([&] {
    room->handler.on("/echo",
                     [](ScriptedHandler::Seen& seen) { seen.sink->on_response({200, {}, seen.request.body}); });
  });
  TestClient client(room->port, pki.client(*pki.authority.issue(kAdmin, now())).get());
  std::string body;
  for (int i = 0; body.size() < 3'000'000; ++i) body += std::to_string(i);
  client.send(fmt::format("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.size()));
  client.send(body);
  EXPECT_TRUE(client.answer().body == body);
}

TEST(Tls, StreamsAndNoticesAClientThatDisconnects) {
  const TlsRoom pki;
  const auto room = pki.serve();
  Mailbox<bool> left;
  std::shared_ptr<api::ResponseSink> held;
  room->run([&] {
    room->handler.when_abandoned = [&] { left.put(true); };
    room->handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      held = seen.sink;
      held->on_stream({});
      EXPECT_TRUE(held->write(shared("event\n")));
    });
  });
  {
    TestClient client(room->port, pki.client().get());
    client.send("GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(client.receive_until("event"));
  }
  EXPECT_TRUE(left.take());
  room->run([&] { held.reset(); });
}

TEST(Tls, PlainTextAtATlsPortIsClosed) {
  const TlsRoom pki;
  const auto room = pki.serve();
  TestClient client(room->port);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.drain();
  EXPECT_THAT(client.received, ::testing::Not(HasSubstr("HTTP/")));
  TestClient next(room->port, pki.client().get());
  EXPECT_EQ(who(next).status, 200);
}

TEST(Tls, NamesTheTextThatDoesNotParse) {
  const TlsRoom pki;
  const auto pair = *pki.authority.issue(kServer, now());
  const auto other = *pki.authority.issue(kServer, now());
  const auto text = [](const auto& result) { return result ? std::string("made") : result.error().text(); };
  EXPECT_THAT(text(TlsContext::make_server({{"no", pair.key_pem}, ""})), StartsWith("certificate: not a PEM"));
  EXPECT_THAT(text(TlsContext::make_server({{pair.certificate_pem, "no"}, ""})), StartsWith("private key: not a PEM"));
  EXPECT_THAT(text(TlsContext::make_server({{pair.certificate_pem, other.key_pem}, ""})),
              StartsWith("private key: does not belong to the certificate"));
  EXPECT_THAT(text(TlsContext::make_server({pair, "no"})), StartsWith("certificate authority: not a PEM"));
  EXPECT_THAT(text(TlsContext::make_client({"no", true, std::nullopt})),
              StartsWith("certificate authority: not a PEM"));
}

TEST(CertificateAuthority, IsMadeOnceAndReused) {
  const TempFolder folder;
  const auto first = CertificateAuthority::open(folder / "pki", now());
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(folder.mode("pki"), 0700U);
  EXPECT_EQ(folder.mode("pki/ca.crt"), 0600U);
  EXPECT_EQ(folder.mode("pki/ca.key"), 0600U);
  const auto again = CertificateAuthority::open(folder / "pki", now());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->certificate_pem(), first->certificate_pem());
}

TEST(CertificateAuthority, RenewsItsCertificateForTheSameKey) {
  const TempFolder folder;
  const WallTime long_ago = now() - std::chrono::floor<microseconds>(CertificateAuthority::kAuthorityLife);
  const auto old = CertificateAuthority::open(folder / "pki", long_ago);
  ASSERT_TRUE(old);
  const auto kept = old->keep("server", kServer, now());
  const auto renewed = CertificateAuthority::open(folder / "pki", now());
  ASSERT_TRUE(renewed);
  EXPECT_NE(renewed->certificate_pem(), old->certificate_pem());
  EXPECT_EQ(renewed->keep("server", kServer, now())->certificate_pem, kept->certificate_pem)
      << "what was issued stays good";
}

TEST(CertificateAuthority, HealsAnInterruptedCreation) {
  const TempFolder folder;
  ASSERT_TRUE(CertificateAuthority::open(folder / "pki", now()));
  std::filesystem::remove(folder / "pki/ca.crt");
  EXPECT_TRUE(CertificateAuthority::open(folder / "pki", now()));
}

TEST(CertificateAuthority, NamesADamagedFile) {
  const TempFolder folder;
  ASSERT_TRUE(CertificateAuthority::open(folder / "pki", now()));
  const std::string key = folder.read("pki/ca.key");
  const auto problem = [&] {
    const auto opened = CertificateAuthority::open(folder / "pki", now());
    return opened ? std::string("opened") : opened.error().text();
  };
  folder.write("pki/ca.key", "garbage");
  EXPECT_THAT(problem(), StartsWith(folder / "pki/ca.key" + ": not a PEM private key"));
  const TempFolder other;
  ASSERT_TRUE(CertificateAuthority::open(other / "pki", now()));
  folder.write("pki/ca.key", other.read("pki/ca.key"));
  EXPECT_THAT(problem(), StartsWith(folder / "pki/ca.key" + ": does not belong to ca.crt"));
  std::filesystem::remove(folder / "pki/ca.key");
  EXPECT_EQ(problem(), folder / "pki/ca.key" + ": missing beside ca.crt");
  folder.write("pki/ca.key", key);
  ASSERT_EQ(::chmod((folder / "pki/ca.key").c_str(), 0644), 0);
  EXPECT_EQ(problem(), folder / "pki/ca.key" + ": is open to others (mode 0644), expected 0600");
  ASSERT_TRUE(replace_file(folder / "pki/ca.key", key));
  folder.write("pki/ca.crt", "garbage");
  EXPECT_THAT(problem(), StartsWith(folder / "pki/ca.crt" + ": not a PEM certificate"));
  EXPECT_EQ(CertificateAuthority::open(folder / "no/such", now()).error().text(),
            folder / "no/such" + ": No such file or directory");
}

TEST(CertificateAuthority, KeepsCertificatesUntilTheyHaveToChange) {
  const TempFolder folder;
  const auto authority = *CertificateAuthority::open(folder / "pki", now());
  const auto keep = [&](const CertificateRequest& request, WallTime when) {
    return authority.keep("server", request, when)->certificate_pem;
  };
  const std::string first = keep(kServer, now());
  EXPECT_EQ(folder.mode("pki/server.key"), 0600U);
  EXPECT_EQ(keep(kServer, now()), first);
  EXPECT_EQ(keep(kServer, now() + hours(24 * 330)), first);
  EXPECT_NE(keep(kServer, now() + hours(24 * 340)), first) << "about to expire";
  CertificateRequest more = kServer;
  more.hosts.push_back("10.0.0.7");
  const std::string wider = keep(more, now());
  EXPECT_EQ(keep(more, now()), wider);
  EXPECT_NE(keep(kServer, now()), wider) << "other names";
  const std::string before = keep(kServer, now());
  folder.write("pki/server.key", "garbage");
  EXPECT_NE(keep(kServer, now()), before) << "damaged";
}

TEST(CertificateAuthority, RefusesHostsThatAreNone) {
  const TempFolder folder;
  const auto authority = *CertificateAuthority::open(folder / "pki", now());
  for (const char* host : {"", "a,DNS:evil", "a b", "h/x"}) {
    CertificateRequest request = kServer;
    request.hosts = {host};
    EXPECT_FALSE(authority.issue(request, now())) << host;
  }
}

}  // namespace
}  // namespace spillway::wire
