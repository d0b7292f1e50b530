// The kind of the tests of custom kinds: CronTabs of stable.example.com.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace spillway::apiserver {

inline const std::string kDefinitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
inline const std::string kTabs = "/apis/stable.example.com/v1/namespaces/default/crontabs";

inline constexpr std::string_view kV1 = R"({"name":"v1","served":true,"storage":true,
 "schema":{"openAPIV3Schema":{"type":"object","properties":{
   "spec":{"type":"object","required":["cron"],"properties":{
     "cron":{"type":"string","pattern":"^[0-9*/ ]+$"},
     "replicas":{"type":"integer","minimum":1,"maximum":10,"default":2},
     "jobs":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
       "items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"n":{"type":"integer"}}}}}},
   "status":{"type":"object","properties":{"replicas":{"type":"integer"},"selector":{"type":"string"}}}}}},
 "subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas",
   "labelSelectorPath":".status.selector"}},
 "selectableFields":[{"jsonPath":".spec.cron"}],
 "additionalPrinterColumns":[{"name":"Cron","type":"string","jsonPath":".spec.cron"},
   {"name":"Replicas","type":"integer","jsonPath":".spec.replicas"}]})";

inline std::string definition(std::string_view plural = "crontabs", std::string_view kind = "CronTab",
                              std::string_view group = "stable.example.com", std::string_view versions = kV1,
                              std::string_view short_names = R"(["ct"])") {
  return fmt::format(R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{{"name":"{0}.{2}"}},"spec":{{"group":"{2}","scope":"Namespaced",
    "names":{{"plural":"{0}","kind":"{1}","shortNames":{4}}},"versions":[{3}]}}}})",
                     plural, kind, group, versions, short_names);
}

inline std::string tab(std::string_view name, std::string_view spec = R"({"cron":"* * *"})") {
  return fmt::format(
      R"({{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{{"name":"{}"}},"spec":{}}})", name, spec);
}

}  // namespace spillway::apiserver
