// Certificates that a process keeps: renewed in time, and served from then on.
#include "wire/tls/kept_certificates.h"

#include "wire/temp_folder.h"
#include "wire/wire_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

constexpr std::string_view kServing = "serving";

WallTime present() {
  return runtime::Loop().now().wall;
}

WallTime later(WallTime time, Duration by) {
  return time + std::chrono::duration_cast<microseconds>(by);
}

KeptCertificates keep_in(const std::string& folder) {
  return {folder,
          {{"serving", "apiserver", {CertificateRequest::Use::kServer, "apiserver", {}, {"localhost", "127.0.0.1"}}},
           {"administrator", "admin", {CertificateRequest::Use::kClient, "admin", {"system:masters"}, {}}}}};
}

bool refreshed(KeptCertificates& kept, WallTime now) {
  const Result<bool> is_new = kept.refresh(now);
  EXPECT_TRUE(is_new) << is_new.error().text();
  return is_new && *is_new;
}

TEST(KeptCertificates, AreRenewedBeforeTheyEndAndNotSooner) {
  const TempFolder folder;
  KeptCertificates kept = keep_in(folder / "pki");
  const WallTime start = present();
  EXPECT_LE(kept.due(), start) << "nothing is there";
  EXPECT_TRUE(refreshed(kept, start));
  EXPECT_THAT(kept.ends(), UnorderedElementsAre(Key("serving"), Key("administrator"), Key("authority")));
  const WallTime end = kept.ends().at("serving");
  EXPECT_EQ(kept.due(), later(end, -CertificateAuthority::kRenewBefore));
  const std::string first = kept.pair(kServing).certificate_pem;
  const WallTime due = kept.due();
  EXPECT_FALSE(refreshed(kept, later(due, -seconds(1))));
  EXPECT_EQ(kept.pair(kServing).certificate_pem, first);
  EXPECT_TRUE(refreshed(kept, due));
  EXPECT_NE(kept.pair(kServing).certificate_pem, first);
  EXPECT_GT(kept.ends().at("serving"), end);
  EXPECT_GT(kept.due(), due);
  KeptCertificates next = keep_in(folder / "pki");
  EXPECT_TRUE(refreshed(next, due));
  EXPECT_EQ(next.pair(kServing).certificate_pem, kept.pair(kServing).certificate_pem) << "they are on the disk";
}

TEST(KeptCertificates, TheAuthorityIsRenewedTooAndWhatItSignedStays) {
  const TempFolder folder;
  const WallTime start = present();
  KeptCertificates kept = keep_in(folder / "pki");
  ASSERT_TRUE(refreshed(kept, start));
  const std::string authority = kept.authority_pem();
  const WallTime due = later(kept.ends().at("authority"), -CertificateAuthority::kRenewBefore);
  KeptCertificates late = keep_in(folder / "pki");
  ASSERT_TRUE(refreshed(late, later(due, -hours(1))));
  const std::string serving = late.pair(kServing).certificate_pem;
  EXPECT_EQ(late.authority_pem(), authority);
  EXPECT_EQ(late.due(), due);
  EXPECT_TRUE(refreshed(late, due));
  EXPECT_NE(late.authority_pem(), authority);
  EXPECT_EQ(late.pair(kServing).certificate_pem, serving);
}

TEST(KeptCertificates, AnErrorChangesNothingAndTheNextTimeIsAnother) {
  const TempFolder folder;
  KeptCertificates kept = keep_in(folder / "pki");
  ASSERT_TRUE(refreshed(kept, present()));
  const std::string first = kept.pair(kServing).certificate_pem;
  const WallTime due = kept.due();
  std::filesystem::rename(folder / "pki/ca.key", folder / "pki/away");
  const Result<bool> failed = kept.refresh(due);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().text(), HasSubstr("ca.key: missing beside ca.crt"));
  EXPECT_EQ(kept.pair(kServing).certificate_pem, first);
  EXPECT_EQ(kept.due(), due);
  std::filesystem::rename(folder / "pki/away", folder / "pki/ca.key");
  EXPECT_TRUE(refreshed(kept, due));
}

/// The server has run for more than a year: its first certificate has expired.
TEST(KeptCertificates, ARunningServerShowsTheNewOneToNewConnections) {
  const TempFolder folder;
  KeptCertificates kept = keep_in(folder / "pki");
  ASSERT_TRUE(refreshed(kept, later(present(), -CertificateAuthority::kCertificateLife - hours(1))));
  const auto context = [&] {
    auto made = TlsContext::make_server({kept.pair(kServing), kept.authority_pem()});
    EXPECT_TRUE(made) << made.error().text();
    return *made;
  };
  HttpServer::Options options;
  options.tls = context();
  ServerRoom room(std::move(options));
  room.run(
      [&] { room.handler.on("/", [](ScriptedHandler::Seen& seen) { seen.sink->on_response({200, {}, "here"}); }); });
  const auto careless = TlsContext::make_client({.authority_pem = "", .verify = false, .identity = {}});
  const auto careful = TlsContext::make_client({.authority_pem = kept.authority_pem(), .verify = true, .identity = {}});
  ASSERT_TRUE(careless && careful);
  const auto asks = [](TestClient& client) {
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    return client.answer().body;
  };
  TestClient old(room.port, careless->get());
  ASSERT_TRUE(old.connected());
  EXPECT_EQ(asks(old), "here");
  TestClient refuses(room.port, careful->get());
  EXPECT_FALSE(refuses.connected());
  EXPECT_THAT(refuses.problem(), HasSubstr("expired"));

  ASSERT_LE(kept.due(), present());
  ASSERT_TRUE(refreshed(kept, present()));
  room.run([&] { room.server->set_tls(context()); });
  // The threads of the server change their certificate one after the other; a connection before that gets the old one.
  std::string answer;
  const Instant end = runtime::RealClock::read_mono() + support::kPatience;
  while (answer.empty() && runtime::RealClock::read_mono() < end) {
    TestClient fresh(room.port, careful->get());
    if (fresh.connected()) answer = asks(fresh);
  }
  EXPECT_EQ(answer, "here");
  EXPECT_EQ(asks(old), "here") << "a connection that is open stays";
}

}  // namespace
}  // namespace spillway::wire
