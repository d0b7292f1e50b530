#include "cli/config/admission_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

namespace spillway::cli {
namespace {

using Files = std::map<std::string, std::string>;

Result<AdmissionFile> read(const Files& files) {
  return read_admission_file("/etc/admission.yaml", [&](const std::string& file) -> Result<yaml::Document> {
    const auto found = files.find(file);
    if (found == files.end()) return make_error(ErrorCode::kNotFound, "{}: no such file", file);
    return yaml::parse(file, found->second);
  });
}

constexpr std::string_view kHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
constexpr std::string_view kOwn =
    "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n";

/// A file with a PodSecurityConfiguration of these lines.
Files with(std::string_view lines) {
  std::string text = fmt::format("{}plugins:\n- name: PodSecurity\n  configuration:\n", kHead);
  std::string all = std::string(kOwn) + std::string(lines);
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = all.find('\n', begin);
    text += "    " + all.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return {{"/etc/admission.yaml", text}};
}

std::string error_of(const Files& files) {
  const auto found = read(files);
  return found ? "" : found.error().text();
}

TEST(AdmissionFile, ConfiguresPodSecurity) {
  const auto found = read(
      with("defaults:\n  enforce: baseline\n  enforce-version: v1.25\n  warn: restricted\nexemptions:\n"
           "  usernames: [system:serviceaccount:a:b]\n  runtimeClasses: [vm.example]\n  namespaces: [kube-system]\n"));
  ASSERT_TRUE(found) << found.error().text();
  const podsecurity::Configuration& parsed = found->pod_security;
  EXPECT_EQ(parsed.defaults.enforce.text(), "baseline:v1.25");
  EXPECT_EQ(parsed.defaults.audit.text(), "privileged:latest");
  EXPECT_EQ(parsed.defaults.warn.text(), "restricted:latest");
  EXPECT_EQ(parsed.exempt_users, std::vector<std::string>{"system:serviceaccount:a:b"});
  EXPECT_EQ(parsed.exempt_runtime_classes, std::vector<std::string>{"vm.example"});
  EXPECT_EQ(parsed.exempt_namespaces, std::vector<std::string>{"kube-system"});
  EXPECT_TRUE(found->warnings.empty());
}

TEST(AdmissionFile, MaySayNothing) {
  for (const std::string_view rest : {"", "plugins:\n", "plugins: []\n", "plugins:\n- name: PodSecurity\n"}) {
    const auto found = read({{"/etc/admission.yaml", fmt::format("{}{}", kHead, rest)}});
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_TRUE(found->pod_security.defaults.all_privileged());
  }
  EXPECT_TRUE(read(with("defaults:\nexemptions:\n")));
  EXPECT_TRUE(read(with("defaults:\n  enforce: ''\n  audit:\nexemptions:\n  usernames: []\n  namespaces:\n")));
}

TEST(AdmissionFile, MayNameAnother) {
  const std::string head = fmt::format("{}plugins:\n- name: PodSecurity\n  path: ", kHead);
  const std::string other = std::string(kOwn) + "defaults: {enforce: restricted}\n";
  for (const std::string path : {"more/ps.yaml", "/etc/more/ps.yaml"}) {
    const auto found = read({{"/etc/admission.yaml", head + path + "\n"}, {"/etc/more/ps.yaml", other}});
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(found->pod_security.defaults.enforce.text(), "restricted:latest");
  }
  EXPECT_EQ(error_of({{"/etc/admission.yaml", head + "none.yaml\n"}}), "/etc/none.yaml: no such file");
  EXPECT_EQ(
      error_of({{"/etc/admission.yaml", head + "a.yaml\n"}, {"/etc/a.yaml", std::string(kOwn) + "default: {}\n"}}),
      "/etc/a.yaml:3: default: unknown (did you mean defaults?)");
}

TEST(AdmissionFile, NamesWhatIsWrong) {
  const std::string own = "/etc/admission.yaml:";
  const std::pair<std::string_view, std::string> rows[] = {
      {"exemption: {}\n", "8: plugins[0].configuration.exemption: unknown (did you mean exemptions?)"},
      {"defaults:\n  enforced: baseline\n",
       "9: plugins[0].configuration.defaults.enforced: unknown (did you mean enforce?)"},
      {"defaults:\n  colour: red\n", "9: plugins[0].configuration.defaults.colour: unknown"},
      {"exemptions:\n  users: []\n", "9: plugins[0].configuration.exemptions.users: unknown"},
      {"exemptions:\n  namespace: []\n",
       "9: plugins[0].configuration.exemptions.namespace: unknown (did you mean namespaces?)"},
      {"defaults: baseline\n", "8: plugins[0].configuration.defaults: expected a mapping"},
      {"defaults:\n  enforce: strict\n",
       "9: plugins[0].configuration.defaults.enforce: Invalid value: \"strict\": must be one of privileged, baseline, "
       "restricted"},
      {"defaults:\n  warn-version: v2\n",
       "9: plugins[0].configuration.defaults.warn-version: Invalid value: \"v2\": must be \"latest\" or \"v1.x\""},
      {"defaults:\n  warn-version: 1.20\n", "9: plugins[0].configuration.defaults.warn-version: expected a string"},
      {"exemptions:\n  namespaces: x\n",
       "9: plugins[0].configuration.exemptions.namespaces: expected a list of strings"},
      {"exemptions:\n  namespaces: [a, a]\n",
       "9: plugins[0].configuration.exemptions.namespaces[1]: Duplicate value: \"a\""},
      {"exemptions:\n  usernames: ['']\n", "9: plugins[0].configuration.exemptions.usernames[0]: Required value"},
      {"exemptions:\n  usernames: [1]\n", "9: plugins[0].configuration.exemptions.usernames[0]: expected a string"}};
  for (const auto& [lines, wanted] : rows) EXPECT_EQ(error_of(with(lines)), own + wanted) << lines;
  EXPECT_TRUE(error_of(with("exemptions:\n  namespaces: [A_B]\n"))
                  .starts_with(own + "9: plugins[0].configuration.exemptions.namespaces[0]: Invalid value: \"A_B\": "));
  // Everything at once.
  EXPECT_EQ(
      error_of(with("defaults:\n  enforce: a\n  warn: b\n")),
      own +
          "9: plugins[0].configuration.defaults.enforce: Invalid value: \"a\": must be one of privileged, baseline, "
          "restricted; " +
          own +
          "10: plugins[0].configuration.defaults.warn: Invalid value: \"b\": must be one of privileged, baseline, "
          "restricted");
}

TEST(AdmissionFile, IsOfItsKind) {
  const auto error = [](std::string text) { return error_of({{"/etc/admission.yaml", std::move(text)}}); };
  EXPECT_EQ(error(""), "/etc/admission.yaml: expected a mapping");
  EXPECT_EQ(error("[]"), "/etc/admission.yaml: expected a mapping");
  EXPECT_EQ(error("kind: AdmissionConfiguration\napiVersion: v1\n"),
            "/etc/admission.yaml:2: apiVersion: expected apiserver.config.k8s.io/v1");
  EXPECT_EQ(error(std::string(kOwn)),
            "/etc/admission.yaml:2: kind: expected AdmissionConfiguration; /etc/admission.yaml:1: apiVersion: expected "
            "apiserver.config.k8s.io/v1");
  EXPECT_EQ(error(std::string(kHead) + "plugin: []\n"),
            "/etc/admission.yaml:3: plugin: unknown (did you mean plugins?)");
  EXPECT_EQ(error(std::string(kHead) + "plugins: x\n"), "/etc/admission.yaml:3: plugins: expected a list");
  EXPECT_EQ(error(std::string(kHead) + "plugins: [x]\n"), "/etc/admission.yaml:3: plugins[0]: expected a mapping");
}

TEST(AdmissionFile, SaysOfOtherPlugInsThatTheyHaveNoEffect) {
  const auto found =
      read({{"/etc/admission.yaml", std::string(kHead) + "plugins:\n- name: EventRateLimit\n  path: x\n"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->warnings,
            std::vector<std::string>{"/etc/admission.yaml:4: plugins[0].name: \"EventRateLimit\" has no effect here"});
}

}  // namespace
}  // namespace spillway::cli
