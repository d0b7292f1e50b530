// The meaning of a request, parsed before any object is read: path, query, Accept, Content-Type.
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/request/negotiation.h"
#include "apiserver/request/request_options.h"
#include "apiserver/request/route.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

api::Target target_of(std::string_view text) {
  return api::parse_target(text).value();
}

const ResourceRegistry& registry() {
  static const ResourceRegistry made(kinds::kind_rows());
  return made;
}

struct RouteCase {
  api::Method method;
  std::string_view target;
  /// "verb resource[/sub] ns name", or the HTTP code of the refusal.
  std::string want;
};

std::string routed(const RouteCase& row) {
  const auto route = find_route(*registry().table(), request_attributes(row.method, target_of(row.target)));
  if (!route) return std::to_string(route.error().code);
  std::string text = std::string(to_string(route->verb)) + " " + std::string(route->resource->plural);
  if (route->subresource != nullptr) text += "/" + std::string(route->subresource->name);
  return text + " " + (route->ns.empty() ? "-" : route->ns) + " " + (route->name.empty() ? "-" : route->name);
}

TEST(Route, NamesResourceVerbAndObject) {
  using enum api::Method;
  const RouteCase rows[] = {
      {kGet, "/api/v1/pods", "list pods - -"},
      {kGet, "/api/v1/pods?watch=1", "watch pods - -"},
      {kGet, "/api/v1/pods?watch=false", "list pods - -"},
      {kGet, "/api/v1/pods?watch=", "watch pods - -"},
      {kGet, "/api/v1/watch/namespaces/a/pods", "watch pods a -"},
      {kGet, "/api/v1/namespaces/a/pods/p", "get pods a p"},
      {kGet, "/api/v1/namespaces/a/pods/p?watch=1", "get pods a p"},
      {kGet, "/api/v1/namespaces/a/pods/p/log", "get pods/log a p"},
      {kPatch, "/api/v1/nodes/n/status", "patch nodes/status - n"},
      {kGet, "/api/v1/namespaces/a", "get namespaces - a"},
      {kPut, "/api/v1/namespaces/a/finalize", "update namespaces/finalize - a"},
      {kPut, "/api/v1/namespaces/a/status", "update namespaces/status - a"},
      {kPost, "/apis/apps/v1/namespaces/a/deployments", "create deployments a -"},
      {kDelete, "/apis/apps/v1/namespaces/a/deployments", "deletecollection deployments a -"},
      {kPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "create selfsubjectaccessreviews - -"},
      {kGet, "/api/v1/widgets", "404"},
      {kGet, "/api/v2/pods", "404"},
      {kGet, "/apis/apps/v1/pods", "404"},
      {kGet, "/api/v1/namespaces/a/nodes", "404"},
      {kGet, "/api/v1/pods/p", "404"},
      {kGet, "/api/v1/namespaces/a/pods/p/nosuch", "404"},
      {kGet, "/api/v1/namespaces/a/pods/p/log/more", "404"},
      {kPost, "/api/v1/pods", "405"},
      {kDelete, "/api/v1/configmaps", "405"},
      {kDelete, "/api/v1/namespaces", "405"},
      {kPost, "/api/v1/nodes/x", "405"},
      {kPut, "/api/v1/nodes", "405"},
      {kPatch, "/api/v1/nodes", "405"},
      {kHead, "/api/v1/nodes", "405"},
      {kGet, "/api/v1/namespaces/a/pods/p/binding", "405"},
      {kGet, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "405"},
  };
  for (const RouteCase& row : rows) EXPECT_EQ(routed(row), row.want) << api::to_string(row.method) << " " << row.target;
}

TEST(Route, AuthorizationIsAskedAboutPathsThatAreNotServed) {
  const RequestAttributes asked =
      request_attributes(api::Method::kGet, target_of("/apis/x.io/v1/namespaces/a/things/t/status"));
  EXPECT_TRUE(asked.is_resource);
  EXPECT_EQ(asked.group, "x.io");
  EXPECT_EQ(asked.resource, "things");
  EXPECT_EQ(asked.subresource, "status");
  EXPECT_EQ(asked.ns, "a");
  EXPECT_EQ(asked.verb, "get");
  EXPECT_FALSE(request_attributes(api::Method::kGet, target_of("/version")).is_resource);
}

TEST(Route, AListThatPinsANameIsAskedAboutThatName) {
  const RequestAttributes asked = request_attributes(
      api::Method::kGet, target_of("/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dp,spec.nodeName%3Dn1"));
  EXPECT_EQ(asked.verb, "watch");
  EXPECT_EQ(asked.name, "p");
  EXPECT_EQ(asked.node, "n1");
  EXPECT_EQ(request_attributes(api::Method::kGet, target_of("/api/v1/pods?fieldSelector=metadata.name!%3Dp")).name, "");
}

// Every method on every shape of path: the verb that is asked about is the verb that is carried out, and so are the
// resource, the subresource, the namespace and the name.
TEST(Route, WhatIsAskedAboutIsWhatIsDone) {
  using enum api::Method;
  const std::string_view bases[] = {"/api/v1", "/api/v1/watch"};
  const std::string_view paths[] = {"/pods",
                                    "/nodes",
                                    "/nodes/n",
                                    "/nodes/n/proxy",
                                    "/nodes/n/proxy/api/v1/secrets",
                                    "/nodes/n/status",
                                    "/namespaces/a",
                                    "/namespaces/a/status",
                                    "/namespaces/a/pods",
                                    "/namespaces/a/pods/p",
                                    "/namespaces/a/pods/p/log",
                                    "/namespaces/a/pods/p/status",
                                    "/namespaces/a/pods/https:p:1/proxy",
                                    "/namespaces/a/pods/p/proxy/api/v1/namespaces/b/pods/q/proxy",
                                    "/namespaces/a/services/s:web/proxy/x",
                                    "/namespaces/a/pods/p/eviction",
                                    "/namespaces/a/secrets/s"};
  const std::string_view queries[] = {"", "?watch=1", "?watch=true&fieldSelector=spec.nodeName%3Dn",
                                      "?fieldSelector=metadata.name%3Dp&watch=0"};
  int served = 0;
  for (const api::Method method : {kGet, kPost, kPut, kPatch, kDelete, kHead, kOptions, kOther}) {
    for (const std::string_view base : bases) {
      for (const std::string_view path : paths) {
        for (const std::string_view query : queries) {
          const std::string target = std::string(base) + std::string(path) + std::string(query);
          const RequestAttributes asked = request_attributes(method, target_of(target));
          const auto route = find_route(*registry().table(), asked);
          if (!route) continue;
          ++served;
          // OPTIONS is passed to the server behind a proxy, with a verb that no other request has.
          const bool passes = method == kOptions && asked.subresource == "proxy";
          EXPECT_EQ(asked.verb, passes ? "options" : to_string(route->verb)) << target;
          EXPECT_TRUE(passes || (method != kOptions && method != kOther)) << target;
          EXPECT_EQ(asked.resource, route->resource->plural) << target;
          EXPECT_EQ(asked.subresource, route->subresource == nullptr ? "" : route->subresource->name) << target;
          if (!route->name.empty()) {
            EXPECT_EQ(asked.name, route->name) << target;
            EXPECT_TRUE(route->old_watch || route->verb != Verb::kWatch) << target;
          }
        }
      }
    }
  }
  EXPECT_GT(served, 100);
}

struct AcceptCase {
  std::string_view accept;
  std::optional<Form> want;
  Encoding encoding = Encoding::kJson;
  Encodings known = Encodings::kProtobufToo;
};

TEST(Negotiation, TakesTheFirstFormItCanServe) {
  const AcceptCase rows[] = {
      {"", Form::kObject},
      {"*/*", Form::kObject},
      {"application/json", Form::kObject},
      {"application/vnd.kubernetes.protobuf, */*", Form::kObject, Encoding::kProtobuf},
      {"application/vnd.kubernetes.protobuf, */*", Form::kObject, Encoding::kJson, Encodings::kJsonOnly},
      {"application/json, application/vnd.kubernetes.protobuf", Form::kObject},
      {"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, application/json", Form::kObject},
      {"application/vnd.kubernetes.protobuf;stream=watch", Form::kObject, Encoding::kProtobuf},
      {"application/xml,application/json;q=0.5", Form::kObject},
      {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Form::kTable},
      {"application/json;as=Table;v=v2;g=meta.k8s.io, application/json", Form::kObject},
      {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
       "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
       Form::kPartialMetadata, Encoding::kProtobuf},
      {"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", Form::kPartialMetadata},
      {"application/json;as=Nothing;g=x;v=v1", std::nullopt},
      {"text/html", std::nullopt},
      {"application/vnd.kubernetes.protobuf", std::nullopt, Encoding::kJson, Encodings::kJsonOnly},
      {"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", std::nullopt},
  };
  for (const AcceptCase& row : rows) {
    const auto form = negotiate(row.accept, row.known);
    EXPECT_EQ(form ? std::optional(form->form) : std::nullopt, row.want) << row.accept;
    if (form) {
      EXPECT_EQ(form->encoding, row.encoding) << row.accept;
    } else {
      EXPECT_EQ(form.error().code, 406);
    }
  }
}

TEST(Negotiation, BodiesAreJsonUnlessTheySayOtherwise) {
  EXPECT_EQ(body_format("").value(), BodyFormat::kJson);
  EXPECT_EQ(body_format("application/json; charset=utf-8").value(), BodyFormat::kJson);
  EXPECT_EQ(body_format("application/vnd.kubernetes.protobuf").value(), BodyFormat::kProtobuf);
  EXPECT_EQ(body_format("text/plain").error().code, 415);
}

TEST(Options, ListOptionsAreChecked) {
  const auto code = [](std::string_view query, bool watch) {
    const auto options = parse_list_options(target_of("/api/v1/pods?" + std::string(query)), watch);
    return options ? 200 : options.error().code;
  };
  EXPECT_EQ(code("limit=5&resourceVersion=7&timeoutSeconds=3&allowWatchBookmarks=true&unknown=1", false), 200);
  EXPECT_EQ(code("limit=-1", false), 200);
  EXPECT_EQ(code("limit=abc", false), 400);
  EXPECT_EQ(code("timeoutSeconds=abc", true), 400);
  EXPECT_EQ(code("resourceVersion=abc", true), 400);
  EXPECT_EQ(code("resourceVersion=5&continue=x", false), 400);
  EXPECT_EQ(code("resourceVersionMatch=Exact", false), 422);
  EXPECT_EQ(code("resourceVersion=0&resourceVersionMatch=Exact", false), 422);
  EXPECT_EQ(code("resourceVersion=5&resourceVersionMatch=Maybe", false), 422);
  EXPECT_EQ(code("sendInitialEvents=true", false), 422);
  EXPECT_EQ(code("sendInitialEvents=true", true), 422);
  EXPECT_EQ(code("resourceVersionMatch=NotOlderThan&resourceVersion=1", true), 422);
  EXPECT_EQ(code("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", true), 200);
}

TEST(Options, WriteOptionsAreChecked) {
  const auto code = [](std::string_view query) {
    const auto options = parse_write_options(target_of("/x?" + std::string(query)), "CreateOptions");
    return options ? 200 : options.error().code;
  };
  EXPECT_EQ(code("dryRun=All&fieldManager=me&fieldValidation=Strict&force=true"), 200);
  EXPECT_EQ(code("dryRun=yes"), 422);
  EXPECT_EQ(code("fieldValidation=Sometimes"), 422);
  EXPECT_EQ(code("fieldManager=" + std::string(129, 'x')), 422);
  EXPECT_EQ(code("fieldManager=a%07b"), 422);
}

TEST(Options, DeleteOptionsAreOfTheBodyElseOfTheQuery) {
  const api::Json body =
      api::parse_json(R"({"gracePeriodSeconds":7,"propagationPolicy":"Orphan","preconditions":{"uid":"u"}})").value();
  const auto given = parse_delete_options(target_of("/x?gracePeriodSeconds=3"), &body);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->grace_period_seconds, 7);
  EXPECT_EQ(given->propagation, Propagation::kOrphan);
  EXPECT_EQ(given->uid, "u");
  const auto asked = parse_delete_options(target_of("/x?gracePeriodSeconds=3&propagationPolicy=Foreground"), nullptr);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->grace_period_seconds, 3);
  EXPECT_EQ(asked->propagation, Propagation::kForeground);
  EXPECT_EQ(parse_delete_options(target_of("/x?propagationPolicy=Sideways"), nullptr).error().code, 422);
  EXPECT_EQ(parse_delete_options(target_of("/x?gracePeriodSeconds=x"), nullptr).error().code, 400);
  const api::Json both = api::parse_json(R"({"propagationPolicy":"Orphan","orphanDependents":true})").value();
  EXPECT_EQ(parse_delete_options(target_of("/x"), &both).error().code, 422);
}

TEST(Options, ContinueTokensReadBackAndNothingElseDoes) {
  const ContinueToken token{store::Revision(4711), "ns/näme-\"x"};
  const std::string text = encode_continue(token);
  EXPECT_EQ(text.find_first_of("+/="), std::string::npos);
  const auto back = decode_continue(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->revision, token.revision);
  EXPECT_EQ(back->start_after, token.start_after);
  const auto present = decode_continue(encode_continue({std::nullopt, "a"}));
  ASSERT_TRUE(present);
  EXPECT_EQ(present->revision, std::nullopt);
  for (const std::string& bad :
       {std::string("garbage"), std::string("e30"), text.substr(0, text.size() / 2), std::string("%")}) {
    EXPECT_FALSE(decode_continue(bad)) << bad;
  }
}

}  // namespace

}  // namespace spillway::apiserver
