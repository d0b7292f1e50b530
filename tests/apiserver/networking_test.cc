// Ingresses, IngressClasses and NetworkPolicies: what becomes of a write, in the words of Kubernetes' API server, and
// what is shown of them.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using api::Json;
using Controllers = ApiServer::Controllers;

const std::string kPolicies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
const std::string kIngresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
const std::string kIngressClasses = "/apis/networking.k8s.io/v1/ingressclasses";

std::string named(const std::string& name, const std::string& spec) {
  return R"({"metadata":{"name":")" + name + R"("},"spec":)" + spec + "}";
}

std::string backend(const std::string& service) {
  return R"({"service":)" + service + "}";
}

const std::string kWeb = backend(R"({"name":"web","port":{"number":80}})");

std::string one_path(const std::string& type, const std::string& path, const std::string& to = kWeb) {
  return R"({"rules":[{"http":{"paths":[{)" + (type.empty() ? "" : R"("pathType":")" + type + R"(",)") + R"("path":")" +
         path + R"(","backend":)" + to + "}]}}]}";
}

/// The error, behind "KIND "x" is invalid: ".
std::string why(TestServer& server, const std::string& collection, const std::string& spec) {
  const Answer answer = server.post(collection, named("x", spec));
  const std::string message = answer.string_at({"message"});
  const std::size_t begin = message.find("is invalid: ");
  return begin == std::string::npos ? message : message.substr(begin + 12);
}

/// The cells of the first row that `kubectl get -o wide` shows, without the age, where there is one.
Json shown_of(TestServer& server, const std::string& collection) {
  const Answer table = server.get(collection, "application/json;as=Table;v=v1;g=meta.k8s.io");
  Json cells = *table.body.find("rows")->if_array()->front().find("cells");
  const Json& last = table.body.find("columnDefinitions")->if_array()->back();
  if (last.string_at({"name"}) == "Age") cells.if_array()->pop_back();
  return cells;
}

std::string warnings_of(const Answer& answer) {
  std::string all;
  for (const auto& [name, value] : answer.headers) {
    if (name == "Warning" || name == "warning") all += value;
  }
  return all;
}

TEST(NetworkPolicies, SayTcpAndWhichWaysTheyAreAbout) {
  TestServer server;
  const Answer both = server.post(
      kPolicies,
      named("both", R"({"ingress":[{"ports":[{"port":80},{"protocol":"UDP"}]}],"egress":[{"ports":[{}]}]})"));
  ASSERT_EQ(both.code, 201) << both.text;
  EXPECT_EQ(to_text(*both.body.find("spec")),
            R"({"egress":[{"ports":[{"protocol":"TCP"}]}],"ingress":[{"ports":[{"port":80,"protocol":"TCP"},)"
            R"({"protocol":"UDP"}]}],"podSelector":{},"policyTypes":["Ingress","Egress"]})");
  const Answer in = server.post(kPolicies, named("in", "{}"));
  EXPECT_EQ(to_text(*in.body.at({"spec", "policyTypes"})), R"(["Ingress"])");
  const Answer out = server.post(kPolicies, named("out", R"({"policyTypes":["Egress"]})"));
  EXPECT_EQ(to_text(*out.body.at({"spec", "policyTypes"})), R"(["Egress"])");
}

TEST(NetworkPolicies, AreValidated) {
  TestServer server;
  const auto of_port = [&](const std::string& port) {
    return why(server, kPolicies, R"({"ingress":[{"ports":[)" + port + "]}]}");
  };
  EXPECT_EQ(of_port(R"({"protocol":"ICMP"})"),
            "spec.ingress[0].ports[0].protocol: Unsupported value: \"ICMP\": supported values: \"TCP\", \"UDP\", "
            "\"SCTP\"");
  EXPECT_EQ(of_port(R"({"port":0})"),
            "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive");
  EXPECT_EQ(of_port(R"({"port":80,"endPort":79})"),
            "spec.ingress[0].ports[0].endPort: Invalid value: 79: must be greater than or equal to `port`");
  EXPECT_EQ(of_port(R"({"port":80,"endPort":65536})"),
            "spec.ingress[0].ports[0].endPort: Invalid value: 65536: must be between 1 and 65535, inclusive");
  EXPECT_EQ(of_port(R"({"port":"http","endPort":90})"),
            "spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is non-numeric");
  EXPECT_EQ(of_port(R"({"endPort":90})"),
            "spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is not specified");
  EXPECT_EQ(of_port(R"({"port":"a--b"})"),
            "spec.ingress[0].ports[0].port: Invalid value: \"a--b\": must not contain consecutive hyphens");
  const auto of_peer = [&](const std::string& peer) {
    return why(server, kPolicies, R"({"egress":[{"to":[)" + peer + "]}]}");
  };
  EXPECT_EQ(of_peer("{}"), "spec.egress[0].to[0]: Required value: must specify a peer");
  EXPECT_EQ(of_peer(R"({"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8"}})"),
            "spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer");
  EXPECT_EQ(of_peer(R"({"ipBlock":{"cidr":""}})"), "spec.egress[0].to[0].ipBlock.cidr: Required value");
  EXPECT_EQ(of_peer(R"({"ipBlock":{"cidr":"10.0.0.0"}})"),
            "spec.egress[0].to[0].ipBlock.cidr: Invalid value: \"10.0.0.0\": must be a valid CIDR value, (e.g. "
            "10.9.8.0/24 or 2001:db8::/64)");
  for (const char* outside : {"11.0.0.0/16", "10.0.0.0/8", "2001:db8::/64"}) {
    EXPECT_EQ(of_peer(R"({"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16",")" + std::string(outside) + "\"]}}"),
              "spec.egress[0].to[0].ipBlock.except[1]: Invalid value: \"" + std::string(outside) +
                  "\": must be a strict subset of `cidr`");
  }
  EXPECT_EQ(why(server, kPolicies, R"({"policyTypes":["Both"]})"),
            "spec.policyTypes[0]: Unsupported value: \"Both\": supported values: \"Ingress\", \"Egress\"");
  EXPECT_EQ(why(server, kPolicies, R"({"policyTypes":["Ingress","Egress","Ingress"]})"),
            "spec.policyTypes: Invalid value: [\"Ingress\",\"Egress\",\"Ingress\"]: may not specify more than two "
            "policyTypes");
  EXPECT_EQ(why(server, kPolicies, R"({"podSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}})"),
            "spec.podSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or "
            "'NotIn'");
}

TEST(NetworkPolicies, CountTheirChangesAndAreValidatedAgain) {
  TestServer server;
  ASSERT_EQ(server.post(kPolicies, named("x", "{}")).code, 201);
  const Answer labelled = server.merge(kPolicies + "/x", R"({"metadata":{"labels":{"a":"b"}}})");
  EXPECT_EQ(labelled.body.at({"metadata", "generation"})->if_int64(), 1);
  const Answer changed = server.merge(kPolicies + "/x", R"({"spec":{"ingress":[{}]}})");
  EXPECT_EQ(changed.body.at({"metadata", "generation"})->if_int64(), 2);
  const Answer wrong = server.merge(kPolicies + "/x", R"({"spec":{"ingress":[{"from":[{}]}]}})");
  EXPECT_EQ(wrong.code, 422);
  EXPECT_EQ(server.put(kPolicies + "/y", named("y", "{}")).code, 404);
}

TEST(NetworkPolicies, WarnWhereTheyAreNotEnforced) {
  TestServer own(Controllers::kOwn);
  EXPECT_NE(warnings_of(own.post(kPolicies, named("x", "{}"))).find("nodes of Spillway do not enforce a NetworkPolicy"),
            std::string::npos);
  EXPECT_NE(warnings_of(own.post(kIngresses, named("x", R"({"defaultBackend":)" + kWeb + "}")))
                .find("nothing in this cluster acts on an Ingress by itself"),
            std::string::npos);
  TestServer unknown;
  EXPECT_EQ(warnings_of(unknown.post(kPolicies, named("x", "{}"))), "");
}

TEST(Ingresses, AreValidated) {
  TestServer server;
  const auto problem = [&](const std::string& spec) { return why(server, kIngresses, spec); };
  EXPECT_EQ(problem("{}"), "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified");
  EXPECT_EQ(problem(one_path("", "/")),
            "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified");
  EXPECT_EQ(problem(one_path("Regex", "/")),
            "spec.rules[0].http.paths[0].pathType: Unsupported value: \"Regex\": supported values: \"Exact\", "
            "\"ImplementationSpecific\", \"Prefix\"");
  const std::string at = "spec.rules[0].http.paths[0].path: Invalid value: ";
  EXPECT_EQ(problem(one_path("Exact", "a")), at + "\"a\": must be an absolute path");
  EXPECT_EQ(problem(one_path("Prefix", "")), at + "\"\": must be an absolute path");
  EXPECT_EQ(problem(one_path("Prefix", "/a//b")), at + "\"/a//b\": must not contain '//'");
  EXPECT_EQ(problem(one_path("Prefix", "/a%2Fb")), at + "\"/a%2Fb\": must not contain '%2F'");
  EXPECT_EQ(problem(one_path("Exact", "/a/..")), at + "\"/a/..\": cannot end with '/..'");
  EXPECT_EQ(problem(one_path("ImplementationSpecific", "*")), at + "\"*\": must be an absolute path");
  EXPECT_EQ(problem(R"({"rules":[{"http":{"paths":[]}}]})"), "spec.rules[0].http.paths: Required value");
  EXPECT_EQ(
      problem(R"({"defaultBackend":)" + kWeb + R"(,"ingressClassName":"A"})").find("spec.ingressClassName: Invalid"),
      0U);
  EXPECT_EQ(
      problem(R"({"defaultBackend":)" + kWeb + R"(,"tls":[{"hosts":["*a"]}]})").find("spec.tls[0].hosts[0]: Invalid"),
      0U);
  EXPECT_EQ(
      problem(R"({"defaultBackend":)" + kWeb + R"(,"tls":[{"secretName":"A"}]})").find("spec.tls[0].secretName: Inv"),
      0U);
  EXPECT_EQ(server.post(kIngresses, named("fine", one_path("ImplementationSpecific", ""))).code, 201);
}

TEST(Ingresses, KnowHosts) {
  TestServer server;
  const auto of_host = [&](const std::string& host) {
    return why(server, kIngresses, R"({"rules":[{"host":")" + host + R"("}]})");
  };
  const std::string at = "spec.rules[0].host: Invalid value: ";
  EXPECT_EQ(of_host("10.0.0.1"), at + "\"10.0.0.1\": must be a DNS name, not an IP address");
  EXPECT_EQ(of_host("*"),
            at +
                "\"*\": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
                "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
                "(e.g. '*.example.com', regex used for validation is "
                "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
  EXPECT_EQ(of_host("a.*.com").find(at + "\"a.*.com\": a wildcard"), 0U);
  EXPECT_EQ(of_host("*." + std::string(253, 'a'))
                .find(at + "\"*." + std::string(253, 'a') + "\": must be no more than 253 characters"),
            0U);
  EXPECT_EQ(of_host("A.com").find(at + "\"A.com\": a lowercase RFC 1123 subdomain"), 0U);
  EXPECT_EQ(
      server.post(kIngresses, named("fine", R"({"rules":[{"host":"*.example.com"},{"host":"a.example.com"}]})")).code,
      201);
}

TEST(Ingresses, SendToAServiceOrAnObject) {
  TestServer server;
  const auto to = [&](const std::string& backend) {
    return why(server, kIngresses, R"({"defaultBackend":)" + backend + "}");
  };
  const std::string at = "spec.defaultBackend";
  EXPECT_EQ(to("{}"), at + ": Invalid value: \"\": resource or service backend is required");
  EXPECT_EQ(to(R"({"service":{"name":"a","port":{"number":1}},"resource":{"kind":"A","name":"b"}})"),
            at + ": Invalid value: \"\": cannot set both resource and service backends");
  EXPECT_EQ(to(backend(R"({"port":{"number":1}})")), at + ".service.name: Required value");
  EXPECT_EQ(to(backend(R"({"name":"a.b","port":{"number":1}})")),
            at + ".service.name: Invalid value: \"a.b\": must not contain dots");
  EXPECT_EQ(to(backend(R"({"name":"a"})")), at + ": Required value: port name or number is required");
  EXPECT_EQ(to(backend(R"({"name":"a","port":{"number":1,"name":"b"}})")),
            at + ": Invalid value: \"\": cannot set both port name & port number");
  EXPECT_EQ(to(backend(R"({"name":"a","port":{"number":70000}})")),
            at + ".service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive");
  EXPECT_EQ(to(backend(R"({"name":"a","port":{"name":"-a"}})")),
            at + ".service.port.name: Invalid value: \"-a\": must not begin or end with a hyphen");
  EXPECT_EQ(to(R"({"resource":{"apiGroup":"a b","kind":"","name":"a/b"}})").find(at + ".resource.apiGroup: Invalid"),
            1U);
  EXPECT_EQ(to(R"({"resource":{"kind":"","name":"a"}})"), at + ".resource.kind: Required value");
  EXPECT_EQ(to(R"({"resource":{"kind":"A","name":"a/b"}})"),
            at + ".resource.name: Invalid value: \"a/b\": may not contain '/'");
}

TEST(Ingresses, GetTheDefaultClassUnlessTheyNameOne) {
  TestServer server;
  const std::string spec = R"({"defaultBackend":)" + kWeb + "}";
  const auto class_of = [&](const std::string& body) {
    const Answer made = server.post(kIngresses, body);
    EXPECT_EQ(made.code, 201) << made.text;
    return made.string_at({"spec", "ingressClassName"});
  };
  EXPECT_EQ(class_of(named("none", spec)), "");
  const auto make_class = [&](const std::string& name, const std::string& is_default) {
    ASSERT_EQ(server
                  .post(kIngressClasses, R"({"metadata":{"name":")" + name +
                                             R"(","annotations":{"ingressclass.kubernetes.io/is-default-class":")" +
                                             is_default + R"("}},"spec":{"controller":"a.io/b"}})")
                  .code,
              201);
  };
  make_class("plain", "false");
  EXPECT_EQ(class_of(named("still-none", spec)), "");
  make_class("b", "true");
  make_class("a", "true");
  EXPECT_EQ(class_of(named("first", spec)), "a");
  server.advance(seconds(2));
  make_class("newest", "true");
  EXPECT_EQ(class_of(named("second", spec)), "newest");
  EXPECT_EQ(class_of(named("named", R"({"ingressClassName":"plain","defaultBackend":)" + kWeb + "}")), "plain");
  EXPECT_EQ(class_of(R"({"metadata":{"name":"old","annotations":{"kubernetes.io/ingress.class":"nginx"}},"spec":)" +
                     spec + "}"),
            "");
  const Answer both =
      server.post(kIngresses, R"({"metadata":{"name":"two","annotations":{"kubernetes.io/ingress.class":"x"}},"spec":)"
                              R"({"ingressClassName":"y","defaultBackend":)" +
                                  kWeb + "}}");
  EXPECT_EQ(
      both.string_at({"message"}),
      "Ingress.networking.k8s.io \"two\" is invalid: annotations.kubernetes.io/ingress.class: Invalid value: \"x\": "
      "must match `ingressClassName` when both are specified");
  // An update neither sets a class nor requires agreement.
  server.merge(kIngresses + "/none", R"({"metadata":{"labels":{"a":"b"}}})");
  EXPECT_EQ(server.get(kIngresses + "/none").string_at({"spec", "ingressClassName"}), "");
  EXPECT_EQ(server.merge(kIngresses + "/old", R"({"spec":{"ingressClassName":"y"}})").code, 200);
}

TEST(Ingresses, HaveAStatusOfTheirController) {
  TestServer server;
  ASSERT_EQ(server
                .post(kIngresses, R"({"metadata":{"name":"x"},"spec":{"defaultBackend":)" + kWeb +
                                      R"(},"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}})")
                .code,
            201);
  EXPECT_EQ(to_text(*server.get(kIngresses + "/x").body.find("status")), R"({"loadBalancer":{}})");
  const auto report = [&](const std::string& point) {
    return server.merge(kIngresses + "/x/status", R"({"status":{"loadBalancer":{"ingress":[)" + point + "]}}}");
  };
  const Answer reported = report(R"({"ip":"10.0.0.9"},{"hostname":"lb.example.com"},{"ip":"10.0.0.10"})");
  ASSERT_EQ(reported.code, 200) << reported.text;
  EXPECT_EQ(reported.body.at({"metadata", "generation"})->if_int64(), 1);
  const std::string at = "Ingress.networking.k8s.io \"x\" is invalid: status.loadBalancer.ingress[0].";
  EXPECT_EQ(report(R"({"ip":"a"})").string_at({"message"}),
            at + "ip: Invalid value: \"a\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
  EXPECT_EQ(report(R"({"hostname":"10.0.0.1"})").string_at({"message"}),
            at + "hostname: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address");
  EXPECT_EQ(server.merge(kIngresses + "/x", R"({"status":null,"spec":{"ingressClassName":"c"}})")
                .body.at({"metadata", "generation"})
                ->if_int64(),
            2);
  const Json row = shown_of(server, kIngresses);
  EXPECT_EQ(to_text(row), R"(["x","c","*","10.0.0.10,10.0.0.9,lb.example.com","80"])");
}

TEST(Ingresses, ShowThreeHosts) {
  TestServer server;
  ASSERT_EQ(server
                .post(kIngresses, named("x", R"({"tls":[{}],"rules":[{"host":"a.io"},{"host":"b.io"},{"host":"c.io"},)"
                                             R"({"host":"d.io"},{"host":"e.io"}]})"))
                .code,
            201);
  EXPECT_EQ(to_text(shown_of(server, kIngresses)), R"(["x","<none>","a.io,b.io,c.io + 2 more...","","80, 443"])");
}

TEST(IngressClasses, AreValidated) {
  TestServer server;
  const auto problem = [&](const std::string& spec) { return why(server, kIngressClasses, spec); };
  const std::string at = "spec.controller: ";
  EXPECT_EQ(problem("{}"), at + "Required value");
  for (const char* bare : {"nginx", "/a", "a.io/"}) {
    EXPECT_EQ(problem(R"({"controller":")" + std::string(bare) + "\"}"),
              at + "Invalid value: \"" + bare + "\": must be a domain-prefixed path (such as \"acme.io/foo\")");
  }
  EXPECT_EQ(problem(R"({"controller":"A/b"})").find(at + "Invalid value: \"A\": a lowercase RFC 1123 subdomain"), 0U);
  EXPECT_EQ(
      problem(R"({"controller":"a.io/b c"})"),
      at + "Invalid value: \"b c\": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
  EXPECT_EQ(problem(R"({"controller":"a.io/)" + std::string(250, 'b') + "\"}"),
            at + "Too long: may not be more than 250 bytes");
  const auto of_parameters = [&](const std::string& more) {
    return problem(R"({"controller":"a.io/b","parameters":{"kind":"K","name":"n")" + more + "}}");
  };
  const std::string of = "spec.parameters.";
  EXPECT_EQ(of_parameters(R"(,"scope":"Node")"),
            of + "scope: Unsupported value: \"Node\": supported values: \"Cluster\", \"Namespace\"");
  EXPECT_EQ(of_parameters(R"(,"scope":"Namespace")"),
            of + "namespace: Required value: `parameters.scope` is set to 'Namespace'");
  EXPECT_EQ(of_parameters(R"(,"scope":"Cluster","namespace":"n")"),
            of + "namespace: Forbidden: `parameters.scope` is set to 'Cluster'");
  EXPECT_EQ(of_parameters(R"(,"scope":"Namespace","namespace":"N")").find(of + "namespace: Invalid value: \"N\""), 0U);
}

TEST(IngressClasses, KeepTheirController) {
  TestServer server;
  const Answer made = server.post(
      kIngressClasses, named("x", R"({"controller":"a.io/b","parameters":{"apiGroup":"a.io","kind":"K","name":"n"}})"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"spec", "parameters", "scope"}), "Cluster");
  EXPECT_EQ(to_text(shown_of(server, kIngressClasses)), R"(["x","a.io/b","K.a.io/n"])");
  EXPECT_EQ(server.merge(kIngressClasses + "/x", R"({"spec":{"controller":"a.io/c"}})").string_at({"message"}),
            "IngressClass.networking.k8s.io \"x\" is invalid: spec.controller: Invalid value: \"a.io/c\": field is "
            "immutable");
  const Answer moved = server.merge(kIngressClasses + "/x", R"({"spec":{"parameters":null}})");
  EXPECT_EQ(moved.body.at({"metadata", "generation"})->if_int64(), 2);
  EXPECT_EQ(to_text(shown_of(server, kIngressClasses)), R"(["x","a.io/b","<none>"])");
}

TEST(NetworkingKinds, LieWhereKubernetesKeepsThem) {
  TestServer server;
  ASSERT_EQ(server.post(kIngresses, named("x", R"({"defaultBackend":)" + kWeb + "}")).code, 201);
  ASSERT_EQ(server.post(kIngressClasses, named("x", R"({"controller":"a.io/b"})")).code, 201);
  ASSERT_EQ(server.post(kPolicies, named("x", R"({"podSelector":{"matchLabels":{"a":"b"}}})")).code, 201);
  for (const char* key :
       {"/registry/ingress/default/x", "/registry/ingressclasses/x", "/registry/networkpolicies/default/x"}) {
    EXPECT_NE(server.at_rest(key), "") << key;
  }
  EXPECT_EQ(to_text(shown_of(server, kPolicies)), R"(["x","a=b"])");
}

}  // namespace

}  // namespace spillway::apiserver
