#include "apiserver/aggregation/remote_open_api.h"

#include "apiserver/aggregation/service_server.h"
#include "base/rng.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::size_t kTagBytesMax = 256;
constexpr int kNotModified = 304;
constexpr int kNotFound = 404;

}  // namespace

/// A document that is being read.
struct RemoteOpenApi::Reading {
  std::string text;
  std::string path;
  Result<RemoteSchemas> part = Error{};
};

void RemoteOpenApi::follow(const std::vector<RemoteApiPtr>& apis) {
  std::map<std::string, Known, std::less<>> known;
  for (const RemoteApiPtr& api : apis) {
    Known one;
    const auto before = known_.find(api->name);
    // A new object with the old name (another uid) may name another server, so its document is not reused.
    const bool is_same_object = before != known_.end() && before->second.api->uid == api->uid;
    if (!is_same_object || *before->second.api != *api) due_.add(api->name);
    if (is_same_object) one = std::move(before->second);
    one.api = api;
    known.emplace(api->name, std::move(one));
  }
  known_ = std::move(known);
  ++version_;
  fetch_next();
}

void RemoteOpenApi::refresh() {
  for (const auto& [name, known] : known_) due_.add(name);
  fetch_next();
}

RemoteSchemasPtr RemoteOpenApi::find(const std::string& name) const {
  const auto found = known_.find(name);
  return found == known_.end() ? nullptr : found->second.schemas;
}

void RemoteOpenApi::fetch_next() {
  while (const std::optional<std::string> name = due_.take()) {
    const auto known = known_.find(*name);
    if (known != known_.end() && known->second.api->available) fetch(*name, known->second);
  }
}

void RemoteOpenApi::fetch(const std::string& name, const Known& known) {
  const Result<AggregatedServer> server = server_of(core_, *known.api);
  if (!server) return;
  due_.begin(name);
  fetch_.get({.server = *server,
              .target = "/openapi/v2",
              .bytes_max = kDocumentBytesMax,
              .time_max = kTimeMax,
              .known_tag = known.tag},
             [this, name, api = known.api](Result<api::Response> answer) { on_answer(name, api, std::move(answer)); });
}

RemoteOpenApi::Known* RemoteOpenApi::current(const std::string& name, const RemoteApiPtr& api) {
  const auto known = known_.find(name);
  return known != known_.end() && known->second.api->uid == api->uid ? &known->second : nullptr;
}

void RemoteOpenApi::on_answer(const std::string& name, const RemoteApiPtr& api, Result<api::Response> answer) {
  Known* known = current(name, api);
  if (known != nullptr && answer && answer->ok()) return read(name, api, *std::move(answer));
  if (known != nullptr && !answer) refuse(name, *known, answer.error());
  if (known != nullptr && answer && answer->status == kNotFound) keep(*known, nullptr);
  if (known != nullptr && answer && answer->status != kNotModified) known->tag.clear();
  due_.end(name);
  fetch_next();
}

void RemoteOpenApi::read(const std::string& name, const RemoteApiPtr& api, api::Response document) {
  Known& known = *current(name, api);
  const std::string_view tag = document.header("ETag");
  known.tag = tag.size() <= kTagBytesMax ? tag : std::string_view();
  const std::uint64_t hash = fnv1a64(document.body);
  if (std::exchange(known.hash, hash) == hash) {
    due_.end(name);
    return fetch_next();
  }
  auto reading = std::make_shared<Reading>(std::move(document.body), path_of(*api) + "/");
  core_.in_slices([reading] { reading->part = remote_schemas(reading->text, reading->path); },
                  [this, reading, name, api] { on_read(name, api, reading->part); });
}

void RemoteOpenApi::on_read(const std::string& name, const RemoteApiPtr& api, const Result<RemoteSchemas>& part) {
  due_.end(name);
  if (Known* known = current(name, api)) {
    if (!part) {
      refuse(name, *known, part.error());
    } else if (kept_bytes_besides(name) + part->bytes > kKeptBytesMax) {
      known->hash = 0;  // the next refresh reads the document again: there may be room then
      known->tag.clear();
      refuse(name, *known,
             make_error(ErrorCode::kRequestEntityTooLarge, "all API services have more than {} bytes of definitions",
                        kKeptBytesMax));
    } else {
      known->error.clear();
      keep(*known, std::make_shared<const RemoteSchemas>(*part));
    }
  }
  fetch_next();
}

void RemoteOpenApi::keep(Known& known, RemoteSchemasPtr schemas) {
  if (known.schemas == schemas) return;
  known.schemas = std::move(schemas);
  ++version_;
}

/// The definitions that were read before stay.
void RemoteOpenApi::refuse(const std::string& name, Known& known, const Error& error) {
  if (known.error == error.message) return;
  known.error = error.message;
  core_.log.warning("the OpenAPI v2 document of an API service is left out",
                    {{"apiservice", name}, {"error", error.message}});
}

std::size_t RemoteOpenApi::kept_bytes_besides(const std::string& name) const {
  std::size_t bytes = 0;
  for (const auto& [each, known] : known_) {
    if (each != name && known.schemas != nullptr) bytes += known.schemas->bytes;
  }
  return bytes;
}

}  // namespace spillway::apiserver
