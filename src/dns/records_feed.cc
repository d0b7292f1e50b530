#include "dns/records_feed.h"

#include <algorithm>
#include <utility>

namespace spillway::dns {
namespace {

/// nullopt: it has none, or shares that of its node, which names no pod. As CoreDNS, the first address alone counts.
std::optional<api::IpAddress> own_address(const api::Pod& pod) {
  const bool ended = pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
  if (pod.spec.host_network || ended) return std::nullopt;
  return api::parse_ip(pod.status.pod_ip);
}

}  // namespace

RecordsFeed::RecordsFeed(ClusterRecords::Options options, Rng rng)
    : records_(std::move(options)),
      client_("spillway-dns", rng),
      services_(client_, client::object_path(api::NamedService::kApiVersion, "services", {})),
      slices_(client_, client::object_path(api::EndpointSlice::kApiVersion, "endpointslices", {})),
      namespaces_(client_, client::object_path(api::Namespace::kApiVersion, "namespaces", {})) {
  if (records_.options().pods == PodNames::kVerified)
    pods_.emplace(client_, client::object_path(api::Pod::kApiVersion, "pods", {}));
  follow_services();
  follow_slices();
  follow_namespaces();
  if (pods_) follow_pods();
}

void RecordsFeed::follow_services() {
  services_.cache().listen({[this](const auto& before, const auto& after, Now now) {
    if (after != nullptr) {
      records_.put_service(*after);
    } else {
      records_.erase_service(before->metadata.ns, before->metadata.name);
    }
    touch(now);
  }});
}

void RecordsFeed::follow_slices() {
  slices_.cache().listen({[this](const auto& before, const auto& after, Now now) {
    if (after != nullptr) {
      records_.put_slice(*after);
    } else {
      records_.erase_slice(before->metadata.ns, before->metadata.name);
    }
    touch(now);
  }});
}

void RecordsFeed::follow_namespaces() {
  namespaces_.cache().listen({[this](const auto& before, const auto& after, Now now) {
    if (after != nullptr) {
      records_.put_namespace(after->metadata.name);
    } else {
      records_.erase_namespace(before->metadata.name);
    }
    touch(now);
  }});
}

void RecordsFeed::follow_pods() {
  pods_->cache().listen({[this](const auto& before, const auto& after, Now now) {
    const auto old_address = before != nullptr ? own_address(*before) : std::nullopt;
    const auto new_address = after != nullptr ? own_address(*after) : std::nullopt;
    if (old_address) records_.erase_pod(before->metadata.ns, *old_address);
    if (new_address) records_.put_pod(after->metadata.ns, *new_address);
    touch(now);
  }});
}

void RecordsFeed::touch(Now now) {
  const auto since_1970 = std::chrono::duration_cast<seconds>(now.wall.time_since_epoch());
  serial_ = std::max(serial_ + 1, static_cast<std::uint32_t>(since_1970.count()));
  records_.set_serial(serial_);
}

}  // namespace spillway::dns
