// The records of a cluster: the answer to a question, from Services, EndpointSlices, Namespaces and pods.
// Thread: one at a time. Cost: a question costs a few searches by hash or tree and the records of its answer; the first
// question after a change of a Service's slices costs its endpoints too (endpoint_book.h).
// Source: Kubernetes DNS specification 1.1.0; where it is silent, what CoreDNS does; vectors network/dns_answers.
#pragma once

#include "api/object/named_service.h"
#include "policy/dns/endpoint_book.h"
#include "policy/dns/record.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::dns {

/// Names of pods, such as 10-1-0-11.shop.pod.cluster.local. kInsecure: any address of an existing namespace has one,
/// as CoreDNS is commonly deployed. kVerified: only addresses of pods that put_pod() named.
enum class PodNames : std::uint8_t { kDisabled, kInsecure, kVerified };

/// The answer to a reverse query for an address that the cluster does not have.
enum class UnknownAddress : std::uint8_t { kNameError, kNotOurs };

class ClusterRecords {
 public:
  struct Options {
    std::string zone = "cluster.local";  // plain (names.h)
    std::uint32_t ttl_seconds = 30;      // as CoreDNS is commonly deployed
    PodNames pods = PodNames::kInsecure;
    UnknownAddress unknown_address = UnknownAddress::kNotOurs;
    std::string dns_service = "kube-system/kube-dns";  // the name server of the zone, if this Service exists
  };

  struct Bounds {
    std::size_t records_max = 4000;  // in a section; 65,535 bytes hold no more addresses
    std::uint64_t rotation = 0;      // the addresses of a Service begin with the one at this place, modulo their count
  };

  explicit ClusterRecords(Options options) : options_(std::move(options)) {}

  void put_service(const api::NamedService& service);
  void erase_service(std::string_view ns, std::string_view name);

  void put_slice(const api::EndpointSlice& slice) { endpoints_.put(slice); }

  void erase_slice(std::string_view ns, std::string_view name) { endpoints_.erase(ns, name); }

  void put_namespace(std::string_view name) { namespaces_.emplace(name); }

  void erase_namespace(std::string_view name);

  /// Needed by PodNames::kVerified only. A pod is put once for each of its addresses, and erased as often.
  void put_pod(std::string_view ns, const api::IpAddress& address) { ++pods_[{address, std::string(ns)}]; }

  void erase_pod(std::string_view ns, const api::IpAddress& address);

  /// The serial number of the zone: seconds since 1970 of the last change.
  void set_serial(std::uint32_t serial) { serial_ = serial; }

  const Options& options() const { return options_; }

  /// nullopt: the name is not the cluster's, so the query is forwarded. Records repeat the question's spelling of its
  /// name.
  std::optional<Answer> answer(const Question& question, const Bounds& bounds) const;

 private:
  struct KnownService {
    std::string domain;  // plain: "web.shop.svc.cluster.local"
    bool headless = false;
    bool alias = false;
    std::string external_name;  // plain
    std::vector<api::IpAddress> addresses;
    std::vector<NamedPort> ports;
  };

  /// The part of a Service that a question names: all, one endpoint, or one port.
  struct Selection {
    std::string_view host = {};      // empty: all
    std::string_view port = {};      // empty: all
    std::string_view protocol = {};  // with `port` only
  };

  Answer answer_in_zone(const Question& question, std::string_view plain, const Bounds& bounds, int aliases) const;
  Answer answer_at_zone(const Question& question) const;
  Answer answer_for_pod(const Question& question, std::span<const std::string_view> labels) const;
  Answer answer_for_service(const Question& question, std::span<const std::string_view> labels, const Bounds& bounds,
                            int aliases) const;
  Answer answer_for_alias(const Question& question, const KnownService& service, const Bounds& bounds,
                          int aliases) const;
  Answer answer_by_cluster_ip(const Question& question, const KnownService& service, const Selection& selection,
                              const Bounds& bounds) const;
  Answer answer_by_endpoints(const Question& question, const KnownService& service, std::string_view key,
                             const Selection& selection, const Bounds& bounds) const;
  std::optional<Answer> answer_for_address(const Question& question, std::string_view plain,
                                           const Bounds& bounds) const;

  Record authority(std::string_view zone) const;
  Answer no_data(std::string_view zone) const;
  Answer name_error(std::string_view zone) const;
  Answer with_addresses(const Question& question, std::span<const api::IpAddress> addresses,
                        const Bounds& bounds) const;
  Answer with_targets(const Question& question, std::string_view domain, std::span<const ReadyEndpoint> endpoints,
                      const Selection& selection, const Bounds& bounds) const;
  void add_address(std::vector<Record>& records, const std::string& name, const api::IpAddress& address) const;
  const KnownService* find(std::string_view key) const;

  Options options_;
  std::uint32_t serial_ = 0;
  EndpointBook endpoints_;
  IndexedMap<KnownService> services_;                           // "namespace/name"
  std::map<api::IpAddress, std::set<std::string>> by_address_;  // cluster IP: keys of services_
  std::set<std::string, std::less<>> namespaces_;
  std::map<std::pair<api::IpAddress, std::string>, std::size_t> pods_;  // address, namespace: pods
};

}  // namespace spillway::dns
