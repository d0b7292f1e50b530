// The ready endpoints behind Services, as their EndpointSlices have them: by Service and by address.
// Thread: one at a time; find() merges the slices of a Service that has changed. Cost: a change of a slice costs its
// endpoints; the first question after a change costs the endpoints of the Service; other look-ups cost one search.
// Bound: kEndpointsMax endpoints of a Service are used, those of the first slices by name.
// Source: Kubernetes DNS specification 1.1.0, 2.4; API reference, EndpointSlice.
#pragma once

#include "api/object/endpoints.h"
#include "api/text/ip_address.h"
#include "base/indexed_map.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::dns {

/// A port that records can name.
struct NamedPort {
  std::string name;      // in lower case; empty: the endpoint has no name of its own
  std::string protocol;  // "tcp"
  std::uint16_t number = 0;

  friend bool operator==(const NamedPort&, const NamedPort&) = default;
};

/// 1 to 65,535; nullopt: no number of a port.
std::optional<std::uint16_t> port_number(std::int32_t number);

struct ReadyEndpoint {
  std::string host;  // a label, small letters: the endpoint's hostname, else its address
  api::IpAddress address;
  std::shared_ptr<const std::vector<NamedPort>> ports;
};

/// The ready endpoints of one Service.
struct ReadyEndpoints {
  std::vector<ReadyEndpoint> by_host;        // by host, then address
  std::vector<api::IpAddress> v4_addresses;  // each once, in order
  std::vector<api::IpAddress> v6_addresses;
};

class EndpointBook {
 public:
  /// More would not fit into an answer: 65,535 bytes hold 4,000 addresses.
  static constexpr std::size_t kEndpointsMax = 20'000;

  /// A slice that serves no Service, or holds host names in place of addresses, has no endpoints here.
  void put(const api::EndpointSlice& slice);
  void erase(std::string_view ns, std::string_view slice_name);

  /// `service`: "namespace/name". nullptr: it has no ready endpoint. Valid until the next put() or erase().
  const ReadyEndpoints* find(std::string_view service) const;

  /// The Services that the address serves with its hosts, at most `most`, in the order of the Services.
  std::vector<std::pair<std::string, std::string>> hosts_of(const api::IpAddress& address, std::size_t most) const;

 private:
  struct Slice {
    std::string service;  // "namespace/name"
    std::vector<ReadyEndpoint> endpoints;
  };

  struct ServiceSlices {
    std::set<std::string> slices;  // keys of slices_
    mutable bool merged = false;
    mutable ReadyEndpoints endpoints;
  };

  void merge(const ServiceSlices& service) const;
  void remove(const std::string& key);

  IndexedMap<Slice> slices_;  // "namespace/name" of the slice
  IndexedMap<ServiceSlices> services_;
  std::map<api::IpAddress, std::map<std::pair<std::string, std::string>, std::string>> hosts_;  // service, slice: host
};

}  // namespace spillway::dns
