// Kubeconfigs: what we write is what we read, and every mistake is one line that names file and field.
#include "wire/client/kubeconfig.h"

#include "wire/client/http_client.h"
#include "wire/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Kubeconfig example() {
  Kubeconfig config;
  config.server = "https://127.0.0.1:6443";
  config.authority_pem = "authority\n";
  config.certificate_pem = "certificate\n";
  config.key_pem = "key\n";
  config.name_space = "shop";
  return config;
}

TEST(Kubeconfig, ReadsWhatItWrites) {
  const TempFolder folder;
  const std::string path = folder / "config";
  Kubeconfig with_token;
  with_token.server = "http://[::1]:8080";
  with_token.token = "0123456789";  // must stay a string
  with_token.verify = false;
  with_token.tls_server_name = "true";
  for (const Kubeconfig& config : {example(), with_token}) {
    ASSERT_TRUE(write_kubeconfig(path, config, "spillway"));
    auto read = read_kubeconfig(path);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->path, path);
    read->path = config.path;
    EXPECT_EQ(*read, config);
    EXPECT_EQ(folder.mode("config"), 0600U);
  }
  EXPECT_THAT(folder.read("config"), HasSubstr("token: \"0123456789\""));
}

TEST(Kubeconfig, ReplacesAFileThatOthersCouldRead) {
  const TempFolder folder;
  const std::string path = folder.write("config", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ASSERT_TRUE(write_kubeconfig(path, example(), "spillway"));
  EXPECT_EQ(folder.mode("config"), 0600U);
}

TEST(Kubeconfig, ReadsFilesBesideIt) {
  const TempFolder folder;
  folder.write("ca.pem", "CA");
  folder.write("token", "abc\n");
  const std::string path = folder.write("config", R"(
clusters:
- {name: other, cluster: {server: "https://other"}}
- {name: kind, cluster: {server: "https://h:1/prefix", certificate-authority: ca.pem}}
contexts: [{name: here, context: {cluster: kind, user: me}}]
users: [{name: me, user: {tokenFile: token}}]
current-context: here
)");
  const auto read = read_kubeconfig(path);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->server, "https://h:1/prefix");
  EXPECT_EQ(read->authority_pem, "CA");
  EXPECT_EQ(read->token, "abc");
  EXPECT_EQ(read->token_file, folder / "token");
}

TEST(Kubeconfig, AContextNeedsNoUser) {
  const auto read = parse_kubeconfig(
      "clusters: [{name: c, cluster: {server: 'http://h'}}]\n"
      "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n",
      "f");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->token, "");
}

TEST(Kubeconfig, NamesTheFileThatIsMissing) {
  const TempFolder folder;
  const auto read = read_kubeconfig(folder / "none");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().text(), folder / "none" + ": No such file or directory");
}

constexpr const char* kTwoClusters = R"(
clusters:
- {name: red, cluster: {server: "https://red"}}
- {name: blue, cluster: {server: "https://blue"}}
users:
- {name: ann, user: {token: a}}
- {name: bob, user: {username: bob, password: p:w}}
contexts:
- {name: red, context: {cluster: red, user: ann, namespace: shop}}
- {name: blue, context: {cluster: blue, user: bob}}
current-context: red
)";

TEST(Kubeconfig, TheCommandLineChoosesAmongContexts) {
  const TempFolder folder;
  const std::vector files{folder.write("config", kTwoClusters)};

  struct Row {
    KubeconfigChoice choice;
    const char* server;
    const char* user;
    const char* name_space;
  };

  const Row rows[] = {
      {{}, "https://red", "ann", "shop"},
      {{.context = "blue", .cluster = {}, .user = {}, .name_space = {}}, "https://blue", "bob", ""},
      {{.context = {}, .cluster = "blue", .user = {}, .name_space = {}}, "https://blue", "ann", "shop"},
      {{.context = {}, .cluster = {}, .user = "bob", .name_space = "cart"}, "https://red", "bob", "cart"}};
  for (const Row& row : rows) {
    const auto read = read_kubeconfig(files, row.choice);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->server, row.server);
    EXPECT_EQ(read->token.empty() ? read->username : "ann", row.user);
    EXPECT_EQ(read->name_space, row.name_space);
  }
  const auto unknown = read_kubeconfig(files, {.context = "green", .cluster = {}, .user = {}, .name_space = {}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().text(), files[0] + ": contexts: no entry named \"green\"");
}

TEST(Kubeconfig, OfSeveralFilesTheFirstToSayItCounts) {
  const TempFolder folder;
  folder.write("first.ca", "FIRST");
  const std::vector files{folder / "none", folder.write("first", R"(
clusters: [{name: red, cluster: {server: "https://first", certificate-authority: first.ca}}]
contexts: [{name: both, context: {cluster: red, user: bob}}]
)"),
                          folder.write("second", kTwoClusters)};
  const auto current = read_kubeconfig(files, {});
  ASSERT_TRUE(current) << current.error().text();
  EXPECT_EQ(current->server, "https://first");  // current-context of the second, its cluster of the first
  EXPECT_EQ(current->authority_pem, "FIRST");
  EXPECT_EQ(current->token, "a");
  const auto both = read_kubeconfig(files, {.context = "both", .cluster = {}, .user = {}, .name_space = {}});
  ASSERT_TRUE(both) << both.error().text();
  EXPECT_EQ(both->username, "bob");
  EXPECT_EQ(both->password, "p:w");
}

TEST(Kubeconfig, SeveralFilesOfWhichNoneExists) {
  const TempFolder folder;
  const auto read = read_kubeconfig({folder / "a", folder / "b"}, {});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().text(), folder / "a" + ":" + folder / "b" + ": none of these kubeconfigs exists");
}

TEST(Kubeconfig, AProgramForCredentials) {
  const TempFolder folder;
  const std::string path = folder.write("config", R"(
clusters: [{name: c, cluster: {server: "https://h"}}]
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./login
      args: [get-token, --cluster, "7"]
      env: [{name: REGION, value: north}]
      provideClusterInfo: true
      interactiveMode: IfAvailable
      installHint: get it from example.com
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
)");
  const auto read = read_kubeconfig(path);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->program, (CredentialProgram{.api_version = "client.authentication.k8s.io/v1",
                                              .command = folder / "./login",
                                              .arguments = {"get-token", "--cluster", "7"},
                                              .environment = {{"REGION", "north"}},
                                              .install_hint = "get it from example.com",
                                              .wants_cluster = true}));
}

struct Mistake {
  const char* name;
  const char* text;
  const char* want;
};

class KubeconfigMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(KubeconfigMistake, IsOneLineWithFileAndField) {
  const auto read = parse_kubeconfig(GetParam().text, "k.conf");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().text(), StartsWith(GetParam().want));
  EXPECT_THAT(read.error().text(), ::testing::Not(HasSubstr("\n")));
}

#define SPILLWAY_TEST_REST "\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"

INSTANTIATE_TEST_SUITE_P(
    Rows, KubeconfigMistake,
    ::testing::Values(
        Mistake{"Empty", "", "k.conf: expected a kubeconfig, found nothing"},
        Mistake{"NoMapping", "- a\n", "k.conf: expected a kubeconfig, found no mapping"},
        Mistake{"NoYaml", "a: [b\n", "k.conf:2: "},
        Mistake{"WrongKind", "kind: Pod\n", "k.conf: kind: expected Config, got \"Pod\""},
        Mistake{"NoCurrentContext", "kind: Config\n", "k.conf: current-context: missing"},
        Mistake{"NoContexts", "current-context: x\n", "k.conf: contexts: missing"},
        Mistake{"UnknownContext", "current-context: y\ncontexts: [{name: x}]\n",
                "k.conf: contexts: no entry named \"y\""},
        Mistake{"ContextsNoList", "current-context: y\ncontexts: {a: b}\n", "k.conf: contexts: expected a list"},
        Mistake{"ContextWithoutCluster", "current-context: x\ncontexts: [{name: x, context: {user: u}}]\n",
                "k.conf: contexts[x].context.cluster: missing"},
        Mistake{"UnknownCluster", "clusters: [{name: d}]" SPILLWAY_TEST_REST, "k.conf: clusters: no entry named \"c\""},
        Mistake{"NoServer", "clusters: [{name: c, cluster: {}}]" SPILLWAY_TEST_REST,
                "k.conf: clusters[c].cluster.server: missing"},
        Mistake{"ServerWithoutScheme", "clusters: [{name: c, cluster: {server: 'h:1'}}]" SPILLWAY_TEST_REST,
                "k.conf: clusters[c].cluster.server: expected https://HOST[:PORT] or http://HOST[:PORT], got \"h:1\""},
        Mistake{"ServerNoString", "clusters: [{name: c, cluster: {server: [a]}}]" SPILLWAY_TEST_REST,
                "k.conf: clusters[c].cluster.server: expected a string"},
        Mistake{
            "BadFlag",
            "clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: maybe}}]" SPILLWAY_TEST_REST,
            "k.conf: clusters[c].cluster.insecure-skip-tls-verify: expected true or false, got \"maybe\""},
        Mistake{
            "BadBase64",
            "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority-data: '*'}}]" SPILLWAY_TEST_REST,
            "k.conf: clusters[c].cluster.certificate-authority-data: not base64"},
        Mistake{
            "MissingAuthorityFile",
            "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: /none/ca}}]" SPILLWAY_TEST_REST,
            "k.conf: clusters[c].cluster.certificate-authority: /none/ca: No such file or directory"},
        Mistake{"UnknownUser", "clusters: [{name: c, cluster: {server: 'https://h'}}]\nusers: []" SPILLWAY_TEST_REST,
                "k.conf: users: no entry named \"u\""},
        Mistake{"CertificateWithoutKey",
                "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
                "users: [{name: u, user: {client-certificate-data: YQ==}}]" SPILLWAY_TEST_REST,
                "k.conf: users[u].user.client-key: missing beside its counterpart"},
        Mistake{"ProgramOfAnOldVersion",
                "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
                "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: "
                "aws}}}]" SPILLWAY_TEST_REST,
                "k.conf: users[u].user.exec.apiVersion: expected client.authentication.k8s.io/v1 or "},
        Mistake{"ProgramWithoutCommand",
                "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
                "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1}}}]" SPILLWAY_TEST_REST,
                "k.conf: users[u].user.exec.command: missing"},
        Mistake{"ProgramThatAsks",
                "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
                "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, "
                "interactiveMode: Always}}}]" SPILLWAY_TEST_REST,
                "k.conf: users[u].user.exec.interactiveMode: Always is not supported"},
        Mistake{"AuthProvider",
                "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
                "users: [{name: u, user: {auth-provider: {name: gcp}}}]" SPILLWAY_TEST_REST,
                "k.conf: users[u].user.auth-provider: not supported; use exec"},
        Mistake{"TokenAndPassword",
                "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
                "users: [{name: u, user: {token: t, username: a, password: b}}]" SPILLWAY_TEST_REST,
                "k.conf: users[u].user.token: must not be set together with username"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Endpoint, TakesTheServerApart) {
  struct Row {
    const char* server;
    const char* host;
    std::uint16_t port;
    const char* prefix;
  };

  const Row rows[] = {{"http://h", "h", 80, ""},
                      {"http://127.0.0.1:8080/", "127.0.0.1", 8080, ""},
                      {"http://[::1]:6443/k8s/clusters/a/", "::1", 6443, "/k8s/clusters/a"},
                      {"https://api.example.com", "api.example.com", 443, ""}};
  for (const Row& row : rows) {
    Kubeconfig config;
    config.server = row.server;
    config.verify = false;
    config.token = "t";
    const auto endpoint = make_endpoint(config, "k.conf");
    ASSERT_TRUE(endpoint) << row.server << ": " << endpoint.error().text();
    EXPECT_EQ(endpoint->host, row.host);
    EXPECT_EQ(endpoint->port, row.port);
    EXPECT_EQ(endpoint->path_prefix, row.prefix);
    EXPECT_EQ(BearerToken(endpoint->credentials.token).header(Instant()), "Bearer t");
    EXPECT_EQ(endpoint->tls != nullptr, std::string_view(row.server).starts_with("https"));
  }
}

TEST(Endpoint, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> rows[] = {
      {"http://", "k.conf: server: expected a host name or address, got \"\""},
      {"http://h:0", "k.conf: server: expected a port between 1 and 65535, got \"0\""},
      {"http://h:99999", "k.conf: server: expected a port between 1 and 65535, got \"99999\""},
      {"http://h:1x", "k.conf: server: expected a port between 1 and 65535, got \"1x\""},
      {"http://a b", "k.conf: server: expected a host name or address, got \"a b\""},
      {"http://[::1", "k.conf: server: \"[\" without \"]\""},
      {"http://h/?x=1", "k.conf: server: expected a path without query, got \"/?x=1\""},
  };
  for (const auto& [server, want] : rows) {
    Kubeconfig config;
    config.server = server;
    const auto endpoint = make_endpoint(config, "k.conf");
    ASSERT_FALSE(endpoint) << server;
    EXPECT_EQ(endpoint.error().text(), want);
  }
  Kubeconfig config = example();
  const auto endpoint = make_endpoint(config, "k.conf");
  ASSERT_FALSE(endpoint);
  EXPECT_THAT(endpoint.error().text(), StartsWith("k.conf: certificate: not a PEM certificate"));
}

}  // namespace
}  // namespace spillway::wire
