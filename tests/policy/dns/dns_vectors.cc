// vectors/network: dns_answers.
#include "policy/dns/cluster_records.h"
#include "policy/dns/names.h"
#include "support/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

namespace spillway::dns {
namespace {

using api::Json;
using support::Mismatch;

// Stands in rows for the serial number, which may be any.
constexpr std::string_view kSerial = "<serial>";

const std::map<std::string_view, RecordType> kTypes{
    {"A", RecordType::kA},     {"AAAA", RecordType::kAaaa}, {"CNAME", RecordType::kCname}, {"MX", RecordType::kMx},
    {"PTR", RecordType::kPtr}, {"SOA", RecordType::kSoa},   {"SRV", RecordType::kSrv},     {"TXT", RecordType::kTxt}};

std::string_view text_of(RecordType type) {
  for (const auto& [text, each] : kTypes)
    if (each == type) return text;
  return "?";
}

Json list_of(const Json& in, std::string_view member) {
  const Json* list = in.find(member);
  return list == nullptr ? Json::array() : *list;
}

std::vector<std::string> strings_of(const Json& in, std::string_view member) {
  std::vector<std::string> made;
  for (const Json& each : *list_of(in, member).if_array()) made.emplace_back(each.string_at({}));
  return made;
}

std::int32_t port_of(const Json& port) {
  return static_cast<std::int32_t>(*port.find("port")->if_int64());
}

api::NamedService service_of(const Json& in) {
  api::NamedService service;
  service.metadata.ns = in.string_at({"namespace"});
  service.metadata.name = in.string_at({"name"});
  service.type = in.string_at({"type"});
  service.external_name = in.string_at({"externalName"});
  service.cluster_ips = strings_of(in, "clusterIPs");
  if (!service.cluster_ips.empty()) service.cluster_ip = service.cluster_ips.front();
  for (const Json& port : *list_of(in, "ports").if_array())
    service.ports.push_back({.name = std::string(port.string_at({"name"})),
                             .protocol = std::string(port.string_at({"protocol"})),
                             .port = port_of(port)});
  return service;
}

api::EndpointSlice slice_of(const Json& in, std::size_t number) {
  api::EndpointSlice slice;
  slice.metadata.ns = in.string_at({"namespace"});
  slice.metadata.name = fmt::format("slice-{}", number);
  slice.metadata.labels["kubernetes.io/service-name"] = in.string_at({"service"});
  slice.address_type = in.string_at({"addressType"});
  for (const Json& each : *list_of(in, "endpoints").if_array()) {
    api::SliceEndpoint endpoint;
    endpoint.addresses = strings_of(each, "addresses");
    if (const Json* ready = each.at({"conditions", "ready"})) endpoint.ready = ready->if_bool();
    if (const Json* host = each.find("hostname")) endpoint.hostname = host->string_at({});
    slice.endpoints.push_back(std::move(endpoint));
  }
  for (const Json& port : *list_of(in, "ports").if_array())
    slice.ports.push_back({.name = std::string(port.string_at({"name"})),
                           .protocol = std::string(port.string_at({"protocol"})),
                           .port = port_of(port),
                           .app_protocol = {}});
  return slice;
}

PodNames pod_names(std::string_view mode) {
  if (mode == "disabled") return PodNames::kDisabled;
  return mode == "verified" ? PodNames::kVerified : PodNames::kInsecure;
}

ClusterRecords::Options options_of(const Json& world) {
  return {.zone = std::string(world.string_at({"zone"})),
          .ttl_seconds = static_cast<std::uint32_t>(*world.find("ttl")->if_int64()),
          .pods = pod_names(world.string_at({"podMode"})),
          .unknown_address = UnknownAddress::kNameError,
          .dns_service = "kube-system/kube-dns"};
}

void fill(ClusterRecords& records, const Json& world) {
  for (const std::string& each : strings_of(world, "namespaces")) records.put_namespace(each);
  std::size_t number = 0;
  for (const Json& each : *list_of(world, "services").if_array()) records.put_service(service_of(each));
  for (const Json& each : *list_of(world, "endpointSlices").if_array()) records.put_slice(slice_of(each, number++));
  for (const Json& each : *list_of(world, "pods").if_array())
    if (const auto address = api::parse_ip(each.string_at({"podIP"})))
      records.put_pod(each.string_at({"namespace"}), *address);
}

struct DataForm {
  Json operator()(const api::IpAddress& address) const { return address_text(address); }

  Json operator()(const NameData& data) const { return data.name; }

  Json operator()(const TextData& data) const { return data.text; }

  Json operator()(const ServiceData& data) const {
    return Json::object({{"port", std::int64_t{data.port}}, {"target", data.target}});
  }

  Json operator()(const AuthorityData& data) const {
    return fmt::format("{} {} {} {} {} {} {}", data.server, data.mailbox, kSerial, data.refresh_seconds,
                       data.retry_seconds, data.expire_seconds, data.minimum_seconds);
  }
};

/// Sorted; names in small letters.
Json records_form(const std::vector<Record>& records) {
  std::vector<Json> forms;
  for (const Record& each : records)
    forms.push_back(Json::object({{"data", std::visit(DataForm{}, each.data)},
                                  {"name", plain_name(each.name) + "."},
                                  {"ttl", std::int64_t{each.ttl_seconds}},
                                  {"type", text_of(each.type)}}));
  std::ranges::sort(forms, {}, [](const Json& each) { return api::to_text(each); });
  Json list = Json::array();
  for (Json& each : forms) list.if_array()->push_back(std::move(each));
  return list;
}

Json sorted(const Json& records) {
  Json list = records;
  std::ranges::sort(*list.if_array(), {}, [](const Json& each) { return api::to_text(each); });
  return list;
}

std::string_view rcode_text(Rcode rcode) {
  if (rcode == Rcode::kNameError) return "NXDOMAIN";
  return rcode == Rcode::kNoError ? "NOERROR" : "other";
}

bool is_authority_of_zone(const Answer& answer) {
  return answer.authority.size() == 1 && answer.authority.front().type == RecordType::kSoa;
}

std::optional<Mismatch> dns_answers(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  ClusterRecords records(options_of(*in.find("world")));
  fill(records, *in.find("world"));
  const Question question{std::string(in.string_at({"query", "name"})), kTypes.at(in.string_at({"query", "type"}))};
  const auto answer = records.answer(question, {});
  if (!answer) return Mismatch{"an answer", "not the cluster's"};
  Json got = Json::object({{"answers", records_form(answer->answers)},
                           {"rcode", rcode_text(answer->rcode)},
                           {"authority", is_authority_of_zone(*answer)},
                           {"additional", records_form(answer->additional)},
                           {"alias", answer->alias.has_value()}});
  const Json* additional = want.find("additional");
  return support::compare(Json::object({{"answers", sorted(*want.find("answers"))},
                                        {"rcode", want.string_at({"rcode"})},
                                        {"authority", want.find("authority") != nullptr},
                                        {"additional", additional == nullptr ? Json::array() : sorted(*additional)},
                                        {"alias", want.find("then") != nullptr}}),
                          got);
}

const bool kAnswers = support::add_vector_check("network/dns_answers", dns_answers);

}  // namespace
}  // namespace spillway::dns
