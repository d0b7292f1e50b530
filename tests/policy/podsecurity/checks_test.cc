// Each check against pods that it allows and forbids, with the words for one and for several.
#include "policy/podsecurity/pods.h"

#include <fmt/format.h>

#include <set>

namespace spillway::podsecurity {
namespace {

struct Row {
  std::string_view name;
  std::string_view check;
  LevelVersion by;
  std::string_view spec;
  std::string_view says;  // empty: nothing
  std::string_view metadata = "{}";
};

void expect_rows(std::span<const Row> rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{}: {}, {}", row.check, row.name, row.by.text()));
    EXPECT_EQ(said_by(row.check, row.by, row.spec, row.metadata), row.says);
  }
}

TEST(PodSecurityChecks, OfWhatAPodSharesWithItsHost) {
  const Row rows[] = {
      {"nothing", "hostNamespaces", baseline(), R"({"hostPID":false,"hostNetwork":false})", ""},
      {"all", "hostNamespaces", baseline("v1.0"), R"({"hostPID":true,"hostNetwork":true,"hostIPC":true})",
       "host namespaces (hostIPC, hostNetwork, hostPID)"},
      {"one", "hostNamespaces", restricted(), R"({"hostPID":true})", "host namespaces (hostPID)"},
      {"none", "hostPathVolumes", baseline(), R"({"volumes":[{"name":"a","emptyDir":{}}]})", ""},
      {"one", "hostPathVolumes", baseline(), R"({"volumes":[{"name":"a","hostPath":{"path":"/"}}]})",
       R"(hostPath volumes (volume "a"))"},
      {"several", "hostPathVolumes", baseline("v1.0"),
       R"({"volumes":[{"name":"b","hostPath":{}},{"name":"c","secret":{}},{"name":"a","hostPath":{}}]})",
       R"(hostPath volumes (volumes "b", "a"))"},
      {"zero", "hostPorts", baseline(), R"({"containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":0}]}]})",
       ""},
      {"one", "hostPorts", baseline(), R"({"containers":[{"name":"a","ports":[{"hostPort":9}]}]})",
       R"(hostPort (container "a" uses hostPort 9))"},
      {"several", "hostPorts", baseline(),
       R"({"containers":[{"name":"a","ports":[{"hostPort":9},{"hostPort":10}]},{"name":"b","ports":[{"hostPort":9}]}]})",
       R"(hostPort (containers "a", "b" use hostPorts 10, 9))"},
      {"one of several", "hostPorts", baseline(),
       R"({"initContainers":[{"name":"i","ports":[{"hostPort":9}]}],"containers":[{"name":"a","ports":[{"hostPort":9}]}]})",
       R"(hostPort (containers "i", "a" use hostPort 9))"}};
  expect_rows(rows);
}

TEST(PodSecurityChecks, OfPrivilegesOfContainers) {
  const Row rows[] = {
      {"false", "privileged", baseline(), R"({"containers":[{"name":"a","securityContext":{"privileged":false}}]})",
       ""},
      {"absent", "privileged", baseline(), R"({"containers":[{"name":"a","securityContext":{}},{"name":"b"}]})", ""},
      {"one", "privileged", baseline(), R"({"containers":[{"name":"a","securityContext":{"privileged":true}}]})",
       R"(privileged (container "a" must not set securityContext.privileged=true))"},
      {"of each kind", "privileged", baseline("v1.0"),
       R"({"ephemeralContainers":[{"name":"e","securityContext":{"privileged":true}}],
           "containers":[{"name":"a","securityContext":{"privileged":true}}],
           "initContainers":[{"name":"i","securityContext":{"privileged":true}}]})",
       R"(privileged (containers "i", "a", "e" must not set securityContext.privileged=true))"},
      {"default", "procMount", baseline(), R"({"containers":[{"name":"a","securityContext":{"procMount":"Default"}}]})",
       ""},
      {"unmasked, in a user namespace, from v1.35 on", "procMount", baseline("v1.35"),
       R"({"hostUsers":false,"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]})", ""},
      {"unmasked, in a user namespace, before v1.35", "procMount", baseline("v1.34"),
       R"({"hostUsers":false,"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]})",
       R"(procMount (container "a" must not set securityContext.procMount to "Unmasked"))"},
      {"several", "procMount", baseline(),
       R"({"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}},{"name":"b","securityContext":{"procMount":"other"}}]})",
       R"(procMount (containers "a", "b" must not set securityContext.procMount to "Unmasked", "other"))"},
      {"false", "windowsHostProcess", baseline(), R"({"securityContext":{"windowsOptions":{"hostProcess":false}}})",
       ""},
      {"pod", "windowsHostProcess", baseline(), R"({"securityContext":{"windowsOptions":{"hostProcess":true}}})",
       "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"},
      {"pod and container", "windowsHostProcess", baseline(),
       R"({"securityContext":{"windowsOptions":{"hostProcess":true}},
           "containers":[{"name":"a","securityContext":{"windowsOptions":{"hostProcess":true}}}]})",
       R"(hostProcess (pod and container "a" must not set securityContext.windowsOptions.hostProcess=true))"},
      {"false", "allowPrivilegeEscalation", restricted(),
       R"({"containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":false}}]})", ""},
      {"not said before v1.8", "allowPrivilegeEscalation", restricted("v1.7"), R"({"containers":[{"name":"a"}]})", ""},
      {"not said", "allowPrivilegeEscalation", restricted("v1.8"), R"({"containers":[{"name":"a"}]})",
       R"(allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false))"},
      {"true", "allowPrivilegeEscalation", restricted(),
       R"({"containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":true}},{"name":"b"}]})",
       R"(allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false))"},
      {"Windows before v1.25", "allowPrivilegeEscalation", restricted("v1.24"),
       R"({"os":{"name":"windows"},"containers":[{"name":"a"}]})",
       R"(allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false))"},
      {"Windows", "allowPrivilegeEscalation", restricted("v1.25"),
       R"({"os":{"name":"windows"},"containers":[{"name":"a"}]})", ""},
      {"Linux", "allowPrivilegeEscalation", restricted("v1.25"),
       R"({"os":{"name":"linux"},"containers":[{"name":"a"}]})",
       R"(allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false))"}};
  expect_rows(rows);
}

TEST(PodSecurityChecks, OfUsers) {
  const Row rows[] = {
      {"pod says so", "runAsNonRoot", restricted("v1.0"),
       R"({"securityContext":{"runAsNonRoot":true},"containers":[{"name":"a"}]})", ""},
      {"containers say so", "runAsNonRoot", restricted(),
       R"({"containers":[{"name":"a","securityContext":{"runAsNonRoot":true}}]})", ""},
      {"nobody says so", "runAsNonRoot", restricted(), R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"(runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true))"},
      {"one does not say so", "runAsNonRoot", restricted(),
       R"({"containers":[{"name":"a","securityContext":{"runAsNonRoot":true}},{"name":"b"}]})",
       R"(runAsNonRoot != true (pod or container "b" must set securityContext.runAsNonRoot=true))"},
      {"pod refuses", "runAsNonRoot", restricted(),
       R"({"securityContext":{"runAsNonRoot":false},"containers":[{"name":"a","securityContext":{"runAsNonRoot":true}}]})",
       "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"},
      {"all refuse", "runAsNonRoot", restricted(),
       R"({"securityContext":{"runAsNonRoot":false},"containers":[{"name":"a","securityContext":{"runAsNonRoot":false}},{"name":"b"}]})",
       R"(runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false))"},
      {"container refuses what the pod says", "runAsNonRoot", restricted(),
       R"({"securityContext":{"runAsNonRoot":true},"containers":[{"name":"a","securityContext":{"runAsNonRoot":false}}]})",
       R"(runAsNonRoot != true (container "a" must not set securityContext.runAsNonRoot=false))"},
      {"root before v1.23", "runAsUser", restricted("v1.22"), R"({"securityContext":{"runAsUser":0}})", ""},
      {"somebody", "runAsUser", restricted("v1.23"), R"({"securityContext":{"runAsUser":1}})", ""},
      {"root", "runAsUser", restricted("v1.23"), R"({"securityContext":{"runAsUser":0}})",
       "runAsUser=0 (pod must not set runAsUser=0)"},
      {"root everywhere", "runAsUser", restricted(),
       R"({"securityContext":{"runAsUser":0},"containers":[{"name":"a","securityContext":{"runAsUser":0}},
           {"name":"b","securityContext":{"runAsUser":0}}]})",
       R"(runAsUser=0 (pod and containers "a", "b" must not set runAsUser=0))"}};
  expect_rows(rows);
}

TEST(PodSecurityChecks, OfSeccompProfiles) {
  constexpr std::string_view kUnconfined =
      R"({"containers":[{"name":"a","securityContext":{"seccompProfile":{"type":"Unconfined"}}}]})";
  const Row rows[] = {
      {"annotations", "seccompProfile_baseline", baseline("v1.18"), R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"x(seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/b="", seccomp.security.alpha.kubernetes.io/pod="unconfined"))x",
       R"({"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined",
           "container.seccomp.security.alpha.kubernetes.io/a":"localhost/x",
           "container.seccomp.security.alpha.kubernetes.io/b":"",
           "container.seccomp.security.alpha.kubernetes.io/other":"unconfined"}})"},
      {"an annotation", "seccompProfile_baseline", restricted("v1.0"), R"({"containers":[{"name":"a"}]})",
       R"x(seccompProfile (forbidden annotation container.seccomp.security.alpha.kubernetes.io/a="unconfined"))x",
       R"({"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"docker/default",
           "container.seccomp.security.alpha.kubernetes.io/a":"unconfined"}})"},
      {"annotations are no matter any more", "seccompProfile_baseline", baseline("v1.19"), R"({})", "",
       R"({"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}})"},
      {"fields are no matter yet", "seccompProfile_baseline", baseline("v1.18"), kUnconfined, ""},
      {"a field", "seccompProfile_baseline", baseline("v1.19"), kUnconfined,
       R"(seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined"))"},
      {"none named", "seccompProfile_baseline", baseline(), R"({"containers":[{"name":"a"}]})", ""},
      {"the pod's", "seccompProfile_baseline", baseline(),
       R"({"securityContext":{"seccompProfile":{"type":"Unconfined"}},"containers":[{"name":"a","securityContext":{"seccompProfile":{"type":"Localhost"}}}]})",
       R"(seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined"))"},
      {"none has to be named yet", "seccompProfile_restricted", restricted("v1.18"), R"({"containers":[{"name":"a"}]})",
       ""},
      {"none named", "seccompProfile_restricted", restricted("v1.19"), R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"(seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))"},
      {"the pod's", "seccompProfile_restricted", restricted(),
       R"({"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"a"}]})", ""},
      {"the container's", "seccompProfile_restricted", restricted(),
       R"({"containers":[{"name":"a","securityContext":{"seccompProfile":{"type":"Localhost"}}}]})", ""},
      {"a forbidden one", "seccompProfile_restricted", restricted(),
       R"({"securityContext":{"seccompProfile":{"type":"Unconfined"}},"containers":[{"name":"a","securityContext":{"seccompProfile":{"type":"x"}}},{"name":"b"}]})",
       R"(seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined", "x"))"},
      {"Windows before v1.25", "seccompProfile_restricted", restricted("v1.24"),
       R"({"os":{"name":"windows"},"containers":[{"name":"a"}]})",
       R"(seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))"},
      {"Windows", "seccompProfile_restricted", restricted("v1.25"),
       R"({"os":{"name":"windows"},"containers":[{"name":"a"}]})", ""}};
  expect_rows(rows);
}

TEST(PodSecurityChecks, OfSecurityModules) {
  const Row rows[] = {
      {"allowed", "appArmorProfile", baseline(),
       R"({"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"a","securityContext":{"appArmorProfile":{"type":"Localhost"}}}]})",
       "",
       R"({"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"runtime/default",
           "container.apparmor.security.beta.kubernetes.io/b":"localhost/x","container.apparmor.security.beta.kubernetes.io/c":""}})"},
      {"the pod's", "appArmorProfile", baseline(), R"({"securityContext":{"appArmorProfile":{"type":"Unconfined"}}})",
       R"x(forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined"))x"},
      {"everybody's", "appArmorProfile", baseline("v1.0"),
       R"({"securityContext":{"appArmorProfile":{"type":"Unconfined"}},"containers":[{"name":"a","securityContext":{"appArmorProfile":{"type":"x"}}}]})",
       R"x(forbidden AppArmor profiles (pod and container "a" and annotation must not set AppArmor profile type to "Unconfined", "x", "container.apparmor.security.beta.kubernetes.io/a="unconfined""))x",
       R"({"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"unconfined"}})"},
      {"allowed", "seLinuxOptions", baseline(),
       R"({"securityContext":{"seLinuxOptions":{"level":"s0"}},"containers":[{"name":"a","securityContext":{"seLinuxOptions":{"type":"container_kvm_t"}}}]})",
       ""},
      {"engine before v1.31", "seLinuxOptions", baseline("v1.30"),
       R"({"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}})",
       R"(seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "container_engine_t"))"},
      {"engine", "seLinuxOptions", baseline("v1.31"),
       R"({"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}})", ""},
      {"everything", "seLinuxOptions", baseline(),
       R"({"securityContext":{"seLinuxOptions":{"type":"foo","user":"u"}},"containers":[{"name":"a","securityContext":{"seLinuxOptions":{"type":"bar"}}},
           {"name":"b","securityContext":{"seLinuxOptions":{"role":"r"}}}]})",
       R"(seLinuxOptions (pod and containers "a", "b" set forbidden securityContext.seLinuxOptions: types "bar", "foo"; user may not be set; role may not be set))"},
      {"a user", "seLinuxOptions", baseline(),
       R"({"containers":[{"name":"a","securityContext":{"seLinuxOptions":{"user":"u"}}}]})",
       R"(seLinuxOptions (container "a" set forbidden securityContext.seLinuxOptions: user may not be set))"}};
  expect_rows(rows);
}

TEST(PodSecurityChecks, OfVolumes) {
  for (const std::string_view kind :
       {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}) {
    EXPECT_EQ(
        said_by("restrictedVolumes", restricted(), fmt::format(R"({{"volumes":[{{"name":"v","{}":{{}}}}]}})", kind)),
        "");
  }
  for (const std::string_view kind : {"hostPath",
                                      "gcePersistentDisk",
                                      "awsElasticBlockStore",
                                      "gitRepo",
                                      "nfs",
                                      "iscsi",
                                      "glusterfs",
                                      "rbd",
                                      "flexVolume",
                                      "cinder",
                                      "cephfs",
                                      "flocker",
                                      "fc",
                                      "azureFile",
                                      "vsphereVolume",
                                      "quobyte",
                                      "azureDisk",
                                      "photonPersistentDisk",
                                      "portworxVolume",
                                      "scaleIO",
                                      "storageos"}) {
    EXPECT_EQ(said_by("restrictedVolumes", restricted("v1.0"),
                      fmt::format(R"({{"volumes":[{{"name":"v","{}":{{}}}}]}})", kind)),
              fmt::format(R"(restricted volume types (volume "v" uses restricted volume type "{}"))", kind));
    EXPECT_EQ(
        said_by("restrictedVolumes", baseline(), fmt::format(R"({{"volumes":[{{"name":"v","{}":{{}}}}]}})", kind)), "");
  }
  EXPECT_EQ(
      said_by("restrictedVolumes", restricted(),
              R"({"volumes":[{"name":"b","nfs":{}},{"name":"a","hostPath":{}},{"name":"c","nfs":{}},{"name":"d"}]})"),
      R"(restricted volume types (volumes "b", "a", "c", "d" use restricted volume types "hostPath", "nfs", "unknown"))");
}

/// Every capability alone, added and dropped or not, under every version.
TEST(PodSecurityChecks, OfCapabilities) {
  const std::set<std::string_view> by_default{"AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE",     "FOWNER",  "FSETID",
                                              "KILL",        "MKNOD",  "NET_BIND_SERVICE", "SETFCAP", "SETGID",
                                              "SETPCAP",     "SETUID", "SYS_CHROOT"};
  for (const std::string_view name : {"AUDIT_CONTROL",   "AUDIT_READ",   "AUDIT_WRITE",
                                      "BLOCK_SUSPEND",   "BPF",          "CHECKPOINT_RESTORE",
                                      "CHOWN",           "DAC_OVERRIDE", "DAC_READ_SEARCH",
                                      "FOWNER",          "FSETID",       "IPC_LOCK",
                                      "IPC_OWNER",       "KILL",         "LEASE",
                                      "LINUX_IMMUTABLE", "MAC_ADMIN",    "MAC_OVERRIDE",
                                      "MKNOD",           "NET_ADMIN",    "NET_BIND_SERVICE",
                                      "NET_BROADCAST",   "NET_RAW",      "PERFMON",
                                      "SETFCAP",         "SETGID",       "SETPCAP",
                                      "SETUID",          "SYSLOG",       "SYS_ADMIN",
                                      "SYS_BOOT",        "SYS_CHROOT",   "SYS_MODULE",
                                      "SYS_NICE",        "SYS_PACCT",    "SYS_PTRACE",
                                      "SYS_RAWIO",       "SYS_RESOURCE", "SYS_TIME",
                                      "SYS_TTY_CONFIG",  "WAKE_ALARM",   "ALL",
                                      "CAP_CHOWN",       "chown",        ""}) {
    const std::string added =
        fmt::format(R"("containers":[{{"name":"a","securityContext":{{"capabilities":{{"add":["{}"]}}}}}}])", name);
    const std::string dropped = fmt::format(
        R"("containers":[{{"name":"a","securityContext":{{"capabilities":{{"add":["{}"],"drop":["ALL"]}}}}}}])", name);
    const std::string refusal =
        fmt::format(R"(container "a" must not include "{}" in securityContext.capabilities.add)", name);
    for (int minor = 0; minor <= kNewestMinor; ++minor) {
      const std::string version = fmt::format("v1.{}", minor);
      SCOPED_TRACE(fmt::format("{} {}", name, version));
      const std::string of_baseline =
          by_default.contains(name) ? "" : fmt::format("non-default capabilities ({})", refusal);
      const std::string of_restricted =
          name == "NET_BIND_SERVICE" ? "" : fmt::format("unrestricted capabilities ({})", refusal);
      const std::string spec = "{" + dropped + "}";
      EXPECT_EQ(said_by("capabilities_baseline", baseline(version), spec), of_baseline);
      // From v1.22 on the stricter check takes its place.
      EXPECT_EQ(said_by("capabilities_baseline", restricted(version), spec), minor < 22 ? of_baseline : "");
      EXPECT_EQ(said_by("capabilities_restricted", restricted(version), spec), minor < 22 ? "" : of_restricted);
      EXPECT_EQ(
          said_by("capabilities_restricted", restricted(version), R"({"os":{"name":"windows"},)" + added + "}") == "",
          minor < 22 || minor >= 25);
    }
  }
}

TEST(PodSecurityChecks, OfCapabilitiesThatAreKept) {
  const Row rows[] = {
      {"nothing said", "capabilities_restricted", restricted("v1.22"), R"({"containers":[{"name":"a"}]})",
       R"(unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]))"},
      {"not all dropped", "capabilities_restricted", restricted(),
       R"({"containers":[{"name":"a","securityContext":{"capabilities":{"drop":["CHOWN","all"]}}}]})",
       R"(unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]))"},
      {"all dropped", "capabilities_restricted", restricted(),
       R"({"containers":[{"name":"a","securityContext":{"capabilities":{"drop":["CHOWN","ALL"]}}}]})", ""},
      {"several", "capabilities_restricted", restricted(),
       R"({"containers":[{"name":"a","securityContext":{"capabilities":{"add":["FOO","BAR"]}}},
           {"name":"b","securityContext":{"capabilities":{"add":["BAR","BAZ"]}}},
           {"name":"c","securityContext":{"capabilities":{"add":["NET_BIND_SERVICE","CHOWN"],"drop":["ALL","FOO"]}}}]})",
       R"(unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"]; containers "a", "b", "c" must not include "BAR", "BAZ", "CHOWN", "FOO" in securityContext.capabilities.add))"}};
  expect_rows(rows);
}

/// Every sysctl under every version: allowed from the version on that upstream's documents name.
TEST(PodSecurityChecks, OfSysctls) {
  const std::pair<std::string_view, int> since[] = {{"kernel.shm_rmid_forced", 0},
                                                    {"net.ipv4.ip_local_port_range", 0},
                                                    {"net.ipv4.tcp_syncookies", 0},
                                                    {"net.ipv4.ping_group_range", 0},
                                                    {"net.ipv4.ip_unprivileged_port_start", 0},
                                                    {"net.ipv4.ip_local_reserved_ports", 27},
                                                    {"net.ipv4.tcp_keepalive_time", 29},
                                                    {"net.ipv4.tcp_fin_timeout", 29},
                                                    {"net.ipv4.tcp_keepalive_intvl", 29},
                                                    {"net.ipv4.tcp_keepalive_probes", 29},
                                                    {"net.ipv4.tcp_rmem", 32},
                                                    {"net.ipv4.tcp_wmem", 32},
                                                    {"kernel.msgmax", 100},
                                                    {"net.core.somaxconn", 100},
                                                    {"net/ipv4/tcp_syncookies", 100},
                                                    {"", 100}};
  for (const auto& [name, from] : since) {
    const std::string spec = fmt::format(R"({{"securityContext":{{"sysctls":[{{"name":"{}","value":"1"}}]}}}})", name);
    for (int minor = 0; minor <= kNewestMinor; ++minor) {
      for (const Level level : {Level::kBaseline, Level::kRestricted}) {
        SCOPED_TRACE(fmt::format("{} v1.{}", name, minor));
        const bool forbidden = !said_by("sysctls", {level, Version{minor}}, spec).empty();
        EXPECT_EQ(forbidden, minor < from);
      }
    }
  }
  EXPECT_EQ(said_by("sysctls", baseline(),
                    R"({"securityContext":{"sysctls":[{"name":"b"},{"name":"net.ipv4.tcp_rmem"},{"name":"a"}]}})"),
            "forbidden sysctls (b, a)");
}

}  // namespace
}  // namespace spillway::podsecurity
