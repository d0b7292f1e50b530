// Answers that are about the server itself: health, version, metrics, discovery, OpenAPI, the list of paths.
// Thread: loop. Source: spec "API server contract", 6.
#pragma once

#include "apiserver/request/discovery.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/health.h"
#include "apiserver/request/openapi.h"
#include "apiserver/request/remote_groups.h"
#include "apiserver/resource/slice_queue.h"
#include "telemetry/metrics.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class Pages {
 public:
  /// `remote`: the group versions that other servers serve; null: there are none.
  Pages(const ResourceRegistry& registry, telemetry::Registry& metrics, std::string version, SliceQueue& slices,
        const RemoteGroups* remote)
      : registry_(registry),
        metrics_(metrics),
        version_(std::move(version)),
        remote_(remote),
        discovery_(registry, remote),
        openapi_(registry, version_, remote),
        slices_(slices) {}

  /// True if the path was one of these pages and has been answered, or will be.
  bool answer(const ExchangePtr& exchange, std::span<const HealthCheck> checks);

 private:
  bool discovery_page(Exchange& exchange);
  bool openapi_page(const ExchangePtr& exchange);
  /// The index of OpenAPI documents with those of other servers; nullopt: they have none.
  std::optional<std::string> merged_index(std::string_view index) const;
  void answer_openapi(Exchange& exchange, const OpenApi::Page& page, const OpenApi::Document& document) const;
  void discovery_root(Exchange& exchange, bool core);
  static void plain_discovery(Exchange& exchange, api::Json document, Encoding encoding);
  /// Answers with an ETag, and with 304 when the client has that version already.
  static void cached(Exchange& exchange, std::string body, std::string_view content_type, std::string_view caching);
  static void cached(Exchange& exchange, const OpenApi::Document& document, std::string_view content_type,
                     std::string_view caching);
  api::Json paths() const;

  const ResourceRegistry& registry_;
  telemetry::Registry& metrics_;
  std::string version_;
  const RemoteGroups* remote_;
  Discovery discovery_;
  OpenApi openapi_;
  SliceQueue& slices_;
};

}  // namespace spillway::apiserver
