// Goal: a plug-in gets the image on its standard input and its answer is used and kept; one that fails adds nothing.
#include "host/containers/credential_plugins.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAnswers = R"sh(echo run >>"$RUNS"
read -r request
user=$(printf %s "$request" | sed 's/.*"image":"\([^"]*\)".*/\1/' | tr / -)
cat <<END
{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "cacheKeyType": "Registry",
 "auth": {"*.registry.io": {"username": "$user", "password": "$1"}}}
END
)sh";

class CredentialPluginsTest : public ::testing::Test {
 protected:
  CredentialPluginsTest() : folder_(fs::path(::testing::TempDir()) / fmt::format("plugins-{}", ::getpid())) {
    fs::create_directories(folder_);
  }

  ~CredentialPluginsTest() override { fs::remove_all(folder_); }

  agent::CredentialProvider provider(const std::string& name, const std::string& script) const {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(folder_ / name, fs::perms::owner_all);
    return {.name = name,
            .match_images = {"*.registry.io"},
            .default_cache_duration = minutes(10),
            .api_version = "credentialprovider.kubelet.k8s.io/v1",
            .arguments = {"secret"},
            .environment = {{"RUNS", folder_ / "runs"}}};
  }

  std::vector<agent::PlacedCredential> ask(CredentialPlugins& plugins, const std::string& image) {
    std::vector<agent::PlacedCredential> found;
    bool answered = false;
    plugins.ask(image, [&](std::vector<agent::PlacedCredential> answer) {
      found = std::move(answer);
      answered = true;
      loop_.stop();
    });
    if (!answered) loop_.run({});
    return found;
  }

  std::size_t runs() const {
    std::ifstream file(folder_ / "runs");
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }

  fs::path folder_;
  runtime::Loop loop_;
};

TEST_F(CredentialPluginsTest, AnswersAreUsedAndKept) {
  CredentialPlugins plugins(loop_, telemetry::Log(), folder_,
                            {provider("fails", "exit 3"), provider("answers", kAnswers)});
  const auto found = ask(plugins, "eu.registry.io/team/app");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().place, "*.registry.io");
  EXPECT_EQ(found.front().credential, (agent::ImageCredential{"eu.registry.io-team-app", "secret"}));
  EXPECT_EQ(ask(plugins, "eu.registry.io/other").size(), 1U) << "of the same registry";
  EXPECT_EQ(runs(), 1U);
  EXPECT_TRUE(ask(plugins, "docker.io/library/nginx").empty());
  EXPECT_EQ(runs(), 1U);
}

TEST_F(CredentialPluginsTest, NonsenseAddsNothing) {
  CredentialPlugins plugins(loop_, telemetry::Log(), folder_, {provider("talks", "echo hello"), provider("none", "")});
  EXPECT_TRUE(ask(plugins, "eu.registry.io/app").empty());
}

}  // namespace
}  // namespace spillway::host
