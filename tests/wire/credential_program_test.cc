// Programs that print credentials: their input, the output they may have, and when they are run again.
#include "wire/client/credential_program.h"

#include "api/json/json.h"
#include "wire/client/client_credentials.h"
#include "wire/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kVersion = "client.authentication.k8s.io/v1";

CredentialProgram shell(const std::string& script) {
  return {.api_version = kVersion,
          .command = "sh",
          .arguments = {"-c", script},
          .environment = {{"REGION", "north"}},
          .install_hint = "",
          .wants_cluster = false};
}

std::string answer(const std::string& status) {
  return std::string(R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":)") + status +
         "}";
}

TEST(CredentialProgram, GetsTheClusterOnlyIfItRequestsIt) {
  Kubeconfig cluster;
  cluster.server = "https://h";
  cluster.authority_pem = "CA";
  CredentialProgram program = shell("");
  EXPECT_EQ(exec_info(program, cluster), R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
                                         R"("spec":{"interactive":false}})");
  program.wants_cluster = true;
  const auto info = api::parse_json(exec_info(program, cluster));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->string_at({"spec", "cluster", "server"}), "https://h");
  EXPECT_EQ(info->string_at({"spec", "cluster", "certificate-authority-data"}), "Q0E=");
}

TEST(CredentialProgram, AnswersWithATokenOrACertificate) {
  const auto token =
      parse_exec_credential(shell(""), answer(R"({"token":"t","expirationTimestamp":"2026-01-02T03:04:05Z"})"));
  ASSERT_TRUE(token) << token.error().text();
  EXPECT_EQ(token->token, "t");
  EXPECT_TRUE(token->expires.has_value());
  const auto pair = parse_exec_credential(shell(""), answer(R"({"clientCertificateData":"c","clientKeyData":"k"})"));
  ASSERT_TRUE(pair) << pair.error().text();
  EXPECT_EQ(pair->key_pem, "k");
  EXPECT_FALSE(pair->expires.has_value());
}

TEST(CredentialProgram, WhatIsWrongWithAnAnswerIsOneLine) {
  const std::pair<std::string, const char*> rows[] = {
      {"oops", "credential program sh: expected a JSON ExecCredential, got: "},
      {R"({"kind":"Pod"})", "credential program sh: expected kind ExecCredential, got \"Pod\""},
      {R"({"kind":"ExecCredential","apiVersion":"v2"})",
       "credential program sh: expected apiVersion client.authentication.k8s.io/v1, got \"v2\""},
      {answer("null"), "credential program sh: its answer has no status"},
      {answer("{}"), "credential program sh: expected a token or a certificate in status, got neither"},
      {answer(R"({"clientKeyData":"k"})"),
       "credential program sh: expected clientCertificateData and clientKeyData together"},
      {answer(R"({"token":"a\nb"})"), "credential program sh: its token has a line break"},
      {answer(R"({"token":"a","expirationTimestamp":"soon"})"),
       "credential program sh: expected a time in status.expirationTimestamp"}};
  for (const auto& [text, want] : rows) {
    const auto parsed = parse_exec_credential(shell(""), text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().text(), StartsWith(want));
    EXPECT_THAT(parsed.error().text(), ::testing::Not(HasSubstr("\n")));
  }
}

/// The result of one run of the program.
Result<std::string> run(const CredentialProgram& program) {
  runtime::Loop loop;
  std::optional<Result<std::string>> got;
  ProgramRun started(loop, program, "INFO", [&](Result<std::string> result) {
    got = std::move(result);
    loop.stop();
  });
  loop.run({});
  return *std::move(got);
}

TEST(ProgramRun, ReadsWhatItPrints) {
  const auto printed = run(shell("cat; printf \"$REGION $KUBERNETES_EXEC_INFO\""));  // its input is empty
  ASSERT_TRUE(printed) << printed.error().text();
  EXPECT_EQ(*printed, "north INFO");
}

TEST(ProgramRun, DoesNotWaitForWhatAProgramLeavesBehind) {
  const auto printed = run(shell("sleep 600 & echo done"));
  ASSERT_TRUE(printed) << printed.error().text();
  EXPECT_EQ(*printed, "done\n");
}

TEST(ProgramRun, SaysHowItFailed) {
  EXPECT_EQ(run(shell("exit 7")).error().text(), "credential program sh: exit code 7");
  EXPECT_EQ(run(shell("kill -9 $$")).error().text(), "credential program sh: ended by signal 9");
  EXPECT_THAT(run(shell("yes")).error().text(), StartsWith("credential program sh: printed more than 1048576 bytes"));
  CredentialProgram none = shell("");
  none.command = "/none/login";
  none.install_hint = "get it from example.com";
  EXPECT_EQ(run(none).error().text(),
            "credential program /none/login: No such file or directory; get it from example.com");
}

TEST(ProgramRun, EndsTheProgramWithItself) {
  const TempFolder folder;
  runtime::Loop loop;
  {
    const ProgramRun started(loop, shell("echo $$ > " + folder / "pid" + "; exec sleep 600"), "", [](auto) {});
    while (folder.read("pid").empty()) {
      loop.post([&loop] { loop.stop(); });
      loop.run({});
    }
  }
  EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(std::stoi(folder.read("pid"))) + "/cmdline"));
}

/// Credentials of a program that counts its runs.
struct Counted {
  explicit Counted(const std::string& expires) {
    const std::string status =
        R"({\"token\":\"t$n\")" + (expires.empty() ? "" : R"(,\"expirationTimestamp\":\")" + expires + "\\\"") + "}";
    source.program = shell("n=$(cat " + folder / "n" + " 2>/dev/null); n=$((n+1)); echo $n > " + folder / "n" +
                           "; printf '%s' \"{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"" + kVersion +
                           "\\\",\\\"status\\\":" + status + "}\"");
    credentials.emplace(loop, source);
  }

  Outcome obtain() {
    std::optional<Outcome> got;
    credentials->obtain([&](const Outcome& outcome) {
      got = outcome;
      loop.stop();
    });
    loop.run({});
    return *got;
  }

  TempFolder folder;
  runtime::Loop loop;
  CredentialSource source;
  std::optional<ClientCredentials> credentials;
};

TEST(ClientCredentials, RunAProgramOnceAsLongAsItsAnswerIsGood) {
  Counted counted("");
  EXPECT_FALSE(counted.credentials->ready(counted.loop.now()));
  ASSERT_TRUE(counted.obtain());
  Now now = counted.loop.now();
  EXPECT_EQ(counted.credentials->header(now.mono), "Bearer t1");
  now.mono += hours(24);
  now.wall += hours(24);
  EXPECT_TRUE(counted.credentials->ready(now));
}

TEST(ClientCredentials, RunItAgainBeforeItsAnswerExpires) {
  Counted counted("2999-01-01T00:00:00Z");
  ASSERT_TRUE(counted.obtain());
  Now now = counted.loop.now();
  EXPECT_TRUE(counted.credentials->ready(now));
  now.mono += minutes(1);
  now.wall = *parse_exec_credential(counted.source.program.value(),
                                    answer(R"({"token":"t","expirationTimestamp":"2998-12-31T23:59:51Z"})"))
                  ->expires;
  EXPECT_FALSE(counted.credentials->ready(now));
  ASSERT_TRUE(counted.obtain());
  EXPECT_EQ(counted.credentials->header(now.mono), "Bearer t2");
}

TEST(ClientCredentials, RunItAgainAfterARefusalButNotAtOnce) {
  Counted counted("");
  ASSERT_TRUE(counted.obtain());
  const Now now = counted.loop.now();
  counted.credentials->on_refused(now.mono + seconds(1));
  EXPECT_TRUE(counted.credentials->ready(now));
  counted.credentials->on_refused(now.mono + seconds(11));
  EXPECT_FALSE(counted.credentials->ready(now));
}

TEST(ClientCredentials, AFailureIsReportedWithoutRunningTheProgramAgainAndAgain) {
  Counted counted("");
  counted.source.program = shell("echo x >> " + counted.folder / "runs" + "; exit 3");
  counted.credentials.emplace(counted.loop, counted.source);
  const Instant began = counted.loop.now().mono;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(counted.obtain().error().text(), "credential program sh: exit code 3");
  const auto passed = std::chrono::floor<seconds>(counted.loop.now().mono - began).count();
  // The program may run again after each second, of which a busy machine needs some.
  EXPECT_LE(counted.folder.read("runs").size() / 2, static_cast<std::size_t>(2 + passed));
}

}  // namespace
}  // namespace spillway::wire
