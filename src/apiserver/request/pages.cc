#include "apiserver/request/pages.h"

#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "apiserver/request/discovery_text.h"
#include "apiserver/request/negotiation.h"
#include "base/check.h"
#include "base/rng.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kOpenApiProtobuf = "application/com.github.proto-openapi.spec.v2";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kRevalidate = "public";
constexpr std::string_view kImmutable = "public, immutable, max-age=31536000";

}  // namespace

bool Pages::answer(const ExchangePtr& held, std::span<const HealthCheck> checks) {
  Exchange& exchange = *held;
  const std::vector<std::string>& at = exchange.target.segments;
  const bool read = exchange.request().method == api::Method::kGet;
  if (auto health = health_page(exchange.target, checks)) {
    exchange.answer(health->code, std::move(health->body), kText, {{"X-Content-Type-Options", "nosniff"}});
    return true;
  }
  const bool root = at.empty();
  const bool version = at.size() == 1 && at[0] == "version";
  const bool metrics = at.size() == 1 && at[0] == "metrics";
  if (!root && !version && !metrics) return discovery_page(exchange) || openapi_page(held);
  if (!read) {
    exchange.fail(api::method_not_allowed_status());
  } else if (metrics) {
    exchange.answer(200, metrics_.text(), "text/plain; version=0.0.4; charset=utf-8");
  } else if (version) {
    exchange.answer(200, version_document(version_));
  } else {
    exchange.answer(200, paths());
  }
  return true;
}

bool Pages::discovery_page(Exchange& exchange) {
  const std::vector<std::string>& at = exchange.target.segments;
  if (at.empty() || (at[0] != "api" && at[0] != "apis")) return false;
  const bool core = at[0] == "api";
  const std::size_t depth = core ? at.size() + 1 : at.size();
  if (depth > 3) return false;
  if (exchange.request().method != api::Method::kGet) {
    exchange.fail(api::method_not_allowed_status());
    return true;
  }
  if (at.size() == 1) {
    discovery_root(exchange, core);
    return true;
  }
  std::optional<Json> document = core             ? discovery_.resources("", at[1])
                                 : at.size() == 2 ? discovery_.group(at[1])
                                                  : discovery_.resources(at[1], at[2]);
  if (!document) {
    exchange.fail(api::unknown_resource_status());
    return true;
  }
  if (const auto form = negotiate_discovery(exchange.request().header("accept")); form) {
    plain_discovery(exchange, *std::move(document), form->encoding);
  } else {
    exchange.fail(form.error());
  }
  return true;
}

void Pages::plain_discovery(Exchange& exchange, Json document, Encoding encoding) {
  if (encoding == Encoding::kJson) {
    return cached(exchange, discovery_text(document) + "\n", "application/json", kRevalidate);
  }
  document["apiVersion"] = "v1";  // the core group's JSON has no apiVersion
  const api::Type* type = api::protobuf_type("v1", document.string_at({"kind"}));
  SPILLWAY_CHECK(type != nullptr);
  cached(exchange, api::write_protobuf(*type, document), api::kProtobufContentType, kRevalidate);
}

void Pages::discovery_root(Exchange& exchange, bool core) {
  const auto form = negotiate_discovery(exchange.request().header("accept"));
  if (!form) return exchange.fail(form.error());
  if (!form->is_aggregated) {
    return plain_discovery(exchange, core ? discovery_.core_versions() : discovery_.groups(), form->encoding);
  }
  cached(exchange, discovery_text(discovery_.aggregated(core)) + "\n",
         "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", kRevalidate);
}

bool Pages::openapi_page(const ExchangePtr& exchange) {
  const std::vector<std::string>& at = exchange->target.segments;
  if (at.size() < 2 || at[0] != "openapi" || exchange->request().method != api::Method::kGet) return false;
  OpenApi::Page page;
  if (at[1] == "v2" && at.size() == 2) {
    const bool wanted = exchange->request().header("accept").find(kOpenApiProtobuf) != std::string_view::npos;
    page.of = wanted ? OpenApi::Page::Of::kV2Protobuf : OpenApi::Page::Of::kV2Json;
  } else if (at[1] == "v3" && at.size() == 2) {
    page.of = OpenApi::Page::Of::kV3Index;
  } else if (at[1] == "v3") {
    page.of = OpenApi::Page::Of::kV3Document;
    page.path = at[2];
    for (std::size_t i = 3; i < at.size(); ++i) page.path += "/" + at[i];
  } else {
    return false;
  }
  if (!openapi_.has(page)) return false;
  slices_.add([this, exchange, page](SliceBudget& budget) {
    if (exchange->finished()) return true;
    if (!openapi_.has(page)) {  // its group was removed meanwhile
      exchange->fail(api::unknown_resource_status());
      return true;
    }
    const OpenApi::Document* const document = openapi_.make(page, budget);
    if (document != nullptr) answer_openapi(*exchange, page, *document);
    return document != nullptr;
  });
  return true;
}

std::optional<std::string> Pages::merged_index(std::string_view index) const {
  if (remote_ == nullptr) return std::nullopt;
  Result<Json> merged = Error{};
  for (const RemoteVersion& remote : remote_->remote_versions()) {
    if (remote.openapi_path.empty()) continue;
    if (!merged) merged = api::parse_json(index);
    if (!merged) return std::nullopt;
    merged->make({"paths", fmt::format("apis/{}/{}", remote.group, remote.version)}) =
        Json::object({{"serverRelativeURL", remote.openapi_path}});
  }
  if (!merged) return std::nullopt;
  return api::to_text(*merged);
}

void Pages::answer_openapi(Exchange& exchange, const OpenApi::Page& page, const OpenApi::Document& document) const {
  if (page.of == OpenApi::Page::Of::kV3Index) {
    if (auto merged = merged_index(document.text)) {
      return cached(exchange, *std::move(merged), "application/json", kRevalidate);
    }
  }
  const bool is_named = page.of == OpenApi::Page::Of::kV3Document && exchange.target.find("hash") != nullptr;
  cached(exchange, document,
         page.of == OpenApi::Page::Of::kV2Protobuf ? "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
                                                   : "application/json",
         is_named ? kImmutable : kRevalidate);
}

void Pages::cached(Exchange& exchange, std::string body, std::string_view content_type, std::string_view caching) {
  const std::uint64_t hash = fnv1a64(body);
  cached(exchange, OpenApi::Document{std::move(body), hash}, content_type, caching);
}

void Pages::cached(Exchange& exchange, const OpenApi::Document& document, std::string_view content_type,
                   std::string_view caching) {
  const std::string tag = fmt::format("\"{:016X}\"", document.hash);
  api::HeaderList headers{{"Vary", "Accept"}, {"ETag", tag}, {"Cache-Control", std::string(caching)}};
  if (exchange.request().header("if-none-match") == tag) {
    exchange.answer(304, {}, content_type, std::move(headers));
  } else {
    exchange.answer(200, document.text, content_type, std::move(headers));
  }
}

Json Pages::paths() const {
  // The paths without those of the health of single parts, which need a right of their own.
  std::vector<std::string> paths{"/api",     "/api/v1",     "/apis",       "/healthz", "/livez",
                                 "/metrics", "/openapi/v2", "/openapi/v3", "/readyz",  "/version"};
  for (const Resource& row : registry_.all()) {
    if (row.group.empty()) continue;
    paths.push_back("/apis/" + std::string(row.group));
    paths.push_back("/apis/" + row.api_version());
  }
  for (const RemoteVersion& remote : remote_ != nullptr ? remote_->remote_versions() : std::vector<RemoteVersion>()) {
    paths.push_back("/apis/" + remote.group);
    paths.push_back("/apis/" + remote.group + "/" + remote.version);
  }
  std::ranges::sort(paths);
  const auto doubles = std::ranges::unique(paths);
  paths.erase(doubles.begin(), doubles.end());
  return Json::object({{"paths", Json::Array(paths.begin(), paths.end())}});
}

}  // namespace spillway::apiserver
