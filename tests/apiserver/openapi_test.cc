// OpenAPI documents: descriptions of types and fields, and the addresses where clients find them.
#include "apiserver/request/openapi.h"

#include "api/schema/descriptions.h"
#include "apiserver/request/openapi_protobuf.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

/// Schemas and members without a description, as "Pod.spec".
std::vector<std::string> undescribed(const Json& schemas) {
  std::vector<std::string> found;
  for (const auto& [name, schema] : *schemas.if_object()) {
    if (schema.string_at({"description"}).empty()) found.push_back(name);
    const Json* properties = schema.find("properties");
    if (properties == nullptr) continue;
    for (const auto& [field, property] : *properties->if_object()) {
      if (property.string_at({"description"}).empty()) found.push_back(name + "." + field);
    }
  }
  return found;
}

std::string definition_of(const std::string& group, const std::string& plural, const std::string& kind) {
  return R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":")" + plural +
         "." + group + R"(","annotations":{"api-approved.kubernetes.io":"unapproved, of a test"}},"spec":{"group":")" +
         group + R"(","scope":"Namespaced","names":{"plural":")" + plural + R"(","kind":")" + kind +
         R"("},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
  "description":"A table of times.","properties":{"spec":{"type":"object","description":"When what is run.","properties":
  {"cron":{"type":"string","description":"The times."}}}}}}}]}})";
}

void define(TestServer& server, const std::string& definition) {
  const Answer made = server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
  ASSERT_EQ(made.code, 201) << made.text;
  server.run_until_idle();
}

void define_cron_tabs(TestServer& server) {
  define(server, definition_of("stable.example.com", "crontabs", "CronTab"));
}

TEST(OpenApiTexts, EveryTypeAndFieldOfEveryDocumentHasOne) {
  TestServer server;
  const Json index = server.get("/openapi/v3").body;
  std::size_t schemas_seen = 0;
  for (const auto& [path, entry] : *index.find("paths")->if_object()) {
    const Answer answer = server.get("/openapi/v3/" + path);
    const Json* schemas = answer.body.at({"components", "schemas"});
    ASSERT_NE(schemas, nullptr) << path;
    schemas_seen += schemas->if_object()->size();
    EXPECT_EQ(undescribed(*schemas), std::vector<std::string>{}) << path;
  }
  EXPECT_GT(schemas_seen, 400U);
  const Json v2 = server.get("/openapi/v2").body;
  EXPECT_GT(v2.find("definitions")->if_object()->size(), 300U);
  EXPECT_EQ(undescribed(*v2.find("definitions")), std::vector<std::string>{});
}

TEST(OpenApiTexts, AFieldThatIsAnObjectKeepsItsOwn) {
  TestServer server;
  const Json v3 = server.get("/openapi/v3/api/v1").body;
  const Json* spec = v3.at({"components", "schemas", "io.k8s.api.core.v1.Pod", "properties", "spec"});
  ASSERT_NE(spec, nullptr);
  const std::string_view own = api::description_of(*api::find_type("core/v1.Pod"), "spec");
  EXPECT_EQ(api::to_text(*spec),
            api::to_text(Json::object({{"allOf", Json::array({Json::object({{"$ref",
                                                                             "#/components/schemas/io.k8s.api."
                                                                             "core.v1.PodSpec"}})})},
                                       {"description", own}})));
  const Json v2 = server.get("/openapi/v2").body;
  EXPECT_EQ(api::to_text(*v2.at({"definitions", "io.k8s.api.core.v1.Pod", "properties", "spec"})),
            api::to_text(Json::object({{"$ref", "#/definitions/io.k8s.api.core.v1.PodSpec"}, {"description", own}})));
}

TEST(OpenApiTexts, HowListsAreMergedStaysBesideThem) {
  TestServer server;
  const Json v3 = server.get("/openapi/v3/apis/apps/v1").body;
  const Json* schemas = v3.at({"components", "schemas"});
  const Json* volumes = schemas->at({"io.k8s.api.core.v1.PodSpec", "properties", "volumes"});
  EXPECT_EQ(volumes->string_at({"x-kubernetes-patch-strategy"}), "merge,retainKeys");
  EXPECT_EQ(volumes->string_at({"x-kubernetes-patch-merge-key"}), "name");
  EXPECT_EQ(volumes->string_at({"items", "$ref"}), "#/components/schemas/io.k8s.api.core.v1.Volume");
  const Json* strategy = schemas->at({"io.k8s.api.apps.v1.DeploymentSpec", "properties", "strategy"});
  EXPECT_EQ(strategy->string_at({"x-kubernetes-patch-strategy"}), "retainKeys");
  EXPECT_NE(strategy->find("allOf"), nullptr);
}

TEST(OpenApiTexts, ValuesOfAnyFormAreCalledNothing) {
  TestServer server;
  const Json v2 = server.get("/openapi/v2").body;
  const Json* members = v2.at({"definitions", "io.k8s.api.apiextensions.v1.JSONSchemaProps", "properties"});
  for (const std::string_view name : {"default", "items", "additionalProperties"}) {
    EXPECT_EQ(members->find(name)->if_object()->size(), 1U) << name;  // the description
  }
  EXPECT_EQ(members->string_at({"not", "$ref"}), "#/definitions/io.k8s.api.apiextensions.v1.JSONSchemaProps");
}

/// The required members of a schema.
std::vector<std::string> required_of(const Json& schemas, const std::string& name) {
  std::vector<std::string> found;
  const Json* required = schemas.at({name, "required"});
  if (required == nullptr) return found;
  for (const Json& each : *required->if_array()) found.emplace_back(each.string_at({}));
  return found;
}

TEST(OpenApiRequired, WhatMustBeGivenIsSaidInBothVersions) {
  TestServer server;
  const Json v3 = server.get("/openapi/v3/apis/apps/v1").body;
  const Json v2 = server.get("/openapi/v2").body;
  using Names = std::vector<std::string>;
  for (const Json* schemas : {v3.at({"components", "schemas"}), v2.find("definitions")}) {
    ASSERT_NE(schemas, nullptr);
    EXPECT_EQ(required_of(*schemas, "io.k8s.api.apps.v1.DeploymentSpec"), (Names{"selector", "template"}));
    EXPECT_EQ(required_of(*schemas, "io.k8s.api.core.v1.PodSpec"), Names{"containers"});
    EXPECT_EQ(required_of(*schemas, "io.k8s.api.core.v1.Container"), Names{"name"});
    EXPECT_EQ(required_of(*schemas, "io.k8s.api.core.v1.Volume"), Names{"name"});
    EXPECT_EQ(required_of(*schemas, "io.k8s.api.core.v1.VolumeMount"), (Names{"mountPath", "name"}));
    // Members that are left out when empty and are required nevertheless, and the reverse.
    EXPECT_EQ(required_of(*schemas, "io.k8s.api.apps.v1.StatefulSetSpec"),
              (Names{"selector", "serviceName", "template"}));
    EXPECT_EQ(required_of(*schemas, "io.k8s.api.core.v1.GRPCAction"), Names{"port"});
    EXPECT_EQ(required_of(*schemas, "io.k8s.api.apps.v1.Deployment"), Names{});
  }
}

TEST(OpenApiRequired, WhatMustBeGivenIsAMember) {
  TestServer server;
  const Json v2 = server.get("/openapi/v2").body;
  std::size_t seen = 0;
  for (const auto& [name, schema] : *v2.find("definitions")->if_object()) {
    for (const std::string& member : required_of(*v2.find("definitions"), name)) {
      EXPECT_NE(schema.at({"properties", member}), nullptr) << name << "." << member;
      ++seen;
    }
  }
  EXPECT_GT(seen, 300U);
}

TEST(OpenApiTexts, OfCustomKindsTheirDefinitions) {
  TestServer server;
  define_cron_tabs(server);
  const Json v3 = server.get("/openapi/v3/apis/stable.example.com/v1").body;
  const Json* schemas = v3.at({"components", "schemas"});
  ASSERT_NE(schemas, nullptr);
  EXPECT_EQ(undescribed(*schemas), std::vector<std::string>{});
  const Json* kind = schemas->find("com.example.stable.v1.CronTab");
  EXPECT_EQ(kind->string_at({"description"}), "A table of times.");
  EXPECT_EQ(kind->string_at({"properties", "spec", "properties", "cron", "description"}), "The times.");
  const Json* metadata = kind->at({"properties", "metadata", "allOf"});
  ASSERT_NE(metadata, nullptr);
  EXPECT_NE(schemas->find("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"), nullptr);
  const Json v2 = server.get("/openapi/v2").body;
  const Json* definition = v2.at({"definitions", "com.example.stable.v1.CronTab"});
  EXPECT_EQ(definition->string_at({"properties", "metadata", "$ref"}),
            "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}

/// "core.api.k8s.io" backwards is "io.k8s.api.core".
TEST(OpenApiTexts, ACustomKindDoesNotTakeTheNameOfABuiltInType) {
  TestServer server;
  define(server, definition_of("core.api.k8s.io", "pods", "Pod"));
  ASSERT_EQ(server.get("/apis/core.api.k8s.io/v1/namespaces/default/pods").code, 200);
  const std::string_view own = api::description_of(*api::find_type("core/v1.Pod"));
  const Json v2 = server.get("/openapi/v2").body;
  EXPECT_EQ(v2.string_at({"definitions", "io.k8s.api.core.v1.Pod", "description"}), own);
  const std::string bytes = server
                                .call(api::Method::kGet, "/openapi/v2", {},
                                      {{"Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}})
                                .text;
  EXPECT_NE(bytes.find(own), std::string::npos);
  EXPECT_EQ(bytes.find("A table of times."), std::string::npos);
}

// Protobuf: fields are read as the wire format has them, all of them length-delimited.

using Fields = std::multimap<std::size_t, std::string>;

std::size_t take_varint(std::string_view& bytes) {
  std::size_t value = 0;
  for (unsigned shift = 0; !bytes.empty(); shift += 7U) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::size_t>(byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) break;
  }
  return value;
}

Fields fields_of(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    const std::size_t key = take_varint(bytes);
    EXPECT_EQ(key & 7U, 2U);
    const std::size_t size = take_varint(bytes);
    if (size > bytes.size()) {
      ADD_FAILURE() << "a field beyond its message";
      break;
    }
    fields.emplace(key >> 3U, bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return fields;
}

std::string only(const Fields& fields, std::size_t number) {
  EXPECT_EQ(fields.count(number), 1U) << number;
  const auto found = fields.find(number);
  return found == fields.end() ? std::string() : found->second;
}

/// Named schemas of a list of them.
std::map<std::string, Fields> schemas_of(const std::string& bytes) {
  std::map<std::string, Fields> schemas;
  const Fields list = fields_of(bytes);
  for (const auto& [number, entry] : list) {
    EXPECT_EQ(number, 1U);
    const Fields named = fields_of(entry);
    schemas.emplace(only(named, 1), fields_of(only(named, 2)));
  }
  return schemas;
}

/// The extensions of a schema, by name.
std::map<std::string, std::string> extensions_of(const Fields& schema) {
  std::map<std::string, std::string> found;
  const auto [begin, end] = schema.equal_range(31);
  for (auto at = begin; at != end; ++at) {
    const Fields named = fields_of(at->second);
    found.emplace(only(named, 1), only(fields_of(only(named, 2)), 2));
  }
  return found;
}

TEST(OpenApiProtobuf, SaysWhatTheJsonSays) {
  const Json definitions = Json::object(
      {{"a.Thing",
        Json::object(
            {{"type", "object"},
             {"description", "A thing."},
             {"x-kubernetes-map-type", "atomic"},
             {"required", Json::array({"count", "names"})},
             {"properties",
              Json::object(
                  {{"count", Json::object({{"type", "integer"}, {"format", "int32"}})},
                   {"other", Json::object({{"$ref", "#/definitions/a.Thing"}})},
                   {"names", Json::object({{"type", "array"}, {"items", Json::object({{"type", "string"}})}})},
                   {"labels", Json::object({{"type", "object"},
                                            {"additionalProperties", Json::object({{"type", "string"}})}})}})}})}});
  const Fields document = fields_of(open_api_v2_protobuf("Title", "9", definitions));
  EXPECT_EQ(only(document, 1), "2.0");
  EXPECT_EQ(only(fields_of(only(document, 2)), 1), "Title");
  EXPECT_EQ(only(fields_of(only(document, 2)), 2), "9");
  EXPECT_EQ(only(document, 8), "");
  const auto schemas = schemas_of(only(document, 9));
  ASSERT_EQ(schemas.size(), 1U);
  const Fields& thing = schemas.at("a.Thing");
  EXPECT_EQ(only(thing, 4), "A thing.");
  EXPECT_EQ(only(fields_of(only(thing, 22)), 1), "object");
  EXPECT_EQ(extensions_of(thing).at("x-kubernetes-map-type"), "\"atomic\"");
  std::vector<std::string> required;
  for (const auto& [number, bytes] : thing)
    if (number == 19) required.push_back(bytes);
  EXPECT_EQ(required, (std::vector<std::string>{"count", "names"}));
  const auto members = schemas_of(only(thing, 25));
  EXPECT_EQ(only(members.at("count"), 2), "int32");
  EXPECT_EQ(only(members.at("other"), 1), "#/definitions/a.Thing");
  EXPECT_EQ(only(fields_of(only(fields_of(only(fields_of(only(members.at("names"), 23)), 1)), 22)), 1), "string");
  EXPECT_EQ(only(fields_of(only(fields_of(only(fields_of(only(members.at("labels"), 21)), 1)), 22)), 1), "string");
}

TEST(OpenApiProtobuf, EveryReferenceLeadsSomewhereAndCustomKindsAreThere) {
  TestServer server;
  define_cron_tabs(server);
  const Answer answer = server.call(api::Method::kGet, "/openapi/v2", {},
                                    {{"Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}});
  ASSERT_EQ(answer.code, 200);
  const auto schemas = schemas_of(only(fields_of(answer.text), 9));
  EXPECT_GT(schemas.size(), 300U);
  std::size_t references = 0;
  for (const auto& [name, schema] : schemas) {
    if (schema.count(25) == 0) continue;
    for (const auto& [field, member] : schemas_of(only(schema, 25))) {
      EXPECT_EQ(member.count(4), 1U) << name << "." << field;
      const auto reference = member.find(1);
      if (reference == member.end()) continue;
      ++references;
      EXPECT_TRUE(schemas.contains(reference->second.substr(std::string_view("#/definitions/").size())))
          << reference->second;
    }
  }
  EXPECT_GT(references, 300U);
  const Fields& custom = schemas.at("com.example.stable.v1.CronTab");
  EXPECT_EQ(only(custom, 4), "A table of times.");
  EXPECT_EQ(custom.count(25), 0U);
  EXPECT_EQ(extensions_of(custom).at("x-kubernetes-group-version-kind"),
            R"([{"group":"stable.example.com","kind":"CronTab","version":"v1"}])");
}

}  // namespace

}  // namespace spillway::apiserver
