// Rules of security contexts: the rows of the stock server's answers about identities, privileges, sysctls.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

constexpr const char* kInvalid = "FieldValueInvalid";

std::string cause(const std::string& field, const std::string& reason = kInvalid) {
  return "[\"" + field + "\",\"" + reason + "\"]";
}

TEST(SecurityContext, IsRefusedAsByTheStockServer) {
  const std::string pod = "spec.securityContext";
  const std::string own = "spec.containers[0].securityContext";

  const struct {
    const char* pod;
    const char* container;
    std::string causes;
  } rows[] = {
      {R"({"runAsUser":0,"runAsGroup":2147483647,"fsGroup":1,"supplementalGroups":[5]})", nullptr, ""},
      {R"({"runAsUser":-1})", nullptr, cause(pod + ".runAsUser")},
      {R"({"runAsUser":2147483648})", nullptr, cause(pod + ".runAsUser")},
      {R"({"runAsUser":1099511627776})", nullptr, cause(pod + ".runAsUser")},
      {R"({"runAsGroup":2147483648})", nullptr, cause(pod + ".runAsGroup")},
      {R"({"fsGroup":-1})", nullptr, cause(pod + ".fsGroup")},
      {R"({"supplementalGroups":[7,-1]})", nullptr, cause(pod + ".supplementalGroups[1]")},
      {R"({"fsGroupChangePolicy":"X"})", nullptr, cause(pod + ".fsGroupChangePolicy", "FieldValueNotSupported")},
      {R"({"sysctls":[{"name":"","value":"1"}]})", nullptr, cause(pod + ".sysctls[0].name", "FieldValueRequired")},
      {R"({"sysctls":[{"name":"../x","value":"1"}]})", nullptr, cause(pod + ".sysctls[0].name")},
      {R"({"sysctls":[{"name":"a b","value":"1"}]})", nullptr, cause(pod + ".sysctls[0].name")},
      {R"({"sysctls":[{"name":"a.","value":"1"}]})", nullptr, cause(pod + ".sysctls[0].name")},
      {R"({"sysctls":[{"name":"a.b","value":"1"},{"name":"a.b","value":"1"}]})", nullptr,
       cause(pod + ".sysctls[1].name", "FieldValueDuplicate")},
      {R"({"sysctls":[{"name":"net/ipv4.tcp_syncookies","value":"1"}]})", nullptr, ""},
      {nullptr, R"({"runAsUser":-1,"runAsGroup":-2})", cause(own + ".runAsGroup") + "," + cause(own + ".runAsUser")},
      {nullptr, R"({"runAsUser":2147483648})", cause(own + ".runAsUser")},
      {nullptr, R"({"privileged":true,"allowPrivilegeEscalation":false})", cause(own)},
      {nullptr, R"({"capabilities":{"add":["CAP_SYS_ADMIN"]},"allowPrivilegeEscalation":false})", cause(own)},
      {nullptr, R"({"privileged":true,"allowPrivilegeEscalation":true})", ""},
  };

  TestServer server;
  int number = 0;
  for (const auto& row : rows) {
    const std::string name = "p" + std::to_string(++number);
    std::string body = R"({"metadata":{"name":")" + name + R"("},"spec":{"containers":[{"name":"c","image":"x")";
    if (row.container != nullptr) body += std::string(",\"securityContext\":") + row.container;
    body += "}]";
    if (row.pod != nullptr) body += std::string(",\"securityContext\":") + row.pod;
    const Answer answer = server.post("/api/v1/namespaces/default/pods", body + "}}");
    EXPECT_EQ(answer.code, row.causes.empty() ? 201 : 422) << body;
    if (!row.causes.empty()) {
      EXPECT_EQ(api::to_text(causes_of(answer.body)), "[" + row.causes + "]") << body;
    }
  }
}

TEST(SecurityContext, ADeadlineFitsItsNumber) {
  TestServer server;
  const std::string pod =
      R"({"metadata":{"name":"p"},"spec":{"activeDeadlineSeconds":10,"containers":[{"name":"c","image":"x"}]}})";
  ASSERT_EQ(server.post("/api/v1/namespaces/default/pods", pod).code, 201);
  EXPECT_EQ(server.merge("/api/v1/namespaces/default/pods/p", R"({"spec":{"activeDeadlineSeconds":2147483648}})").code,
            422);
}

}  // namespace

}  // namespace spillway::apiserver
