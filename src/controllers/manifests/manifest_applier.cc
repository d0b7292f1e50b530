#include "controllers/manifests/manifest_applier.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::controllers {
namespace {

constexpr Duration kApplyPeriod = seconds(30);
constexpr Duration kManifestRetryMin = milliseconds(500);  // a definition of a custom kind is served that soon
constexpr std::string_view kQuery = "?fieldManager=spillway-manifests&force=true";
constexpr std::string_view kDefaultNamespace = "default";

std::string key_of_manifest(const api::Json& object) {
  return fmt::format("{} {} {}/{}", object.string_at({"apiVersion"}), object.string_at({"kind"}),
                     object.string_at({"metadata", "namespace"}), object.string_at({"metadata", "name"}));
}

/// Objects that others depend on are applied first.
int rank_of(const api::Json& object) {
  const std::string_view kind = object.string_at({"kind"});
  if (kind == "Namespace") return 0;
  if (kind == "CustomResourceDefinition") return 1;
  return 2;
}

std::string discovery_path(std::string_view api_version) {
  return fmt::format("{}/{}", api_version.contains('/') ? "/apis" : "/api", api_version);
}

/// "Deployment shop/cart", for messages.
std::string title_of(const api::Json& object) {
  const std::string_view ns = object.string_at({"metadata", "namespace"});
  return fmt::format("{} {}{}{}", object.string_at({"kind"}), ns, ns.empty() ? "" : "/",
                     object.string_at({"metadata", "name"}));
}

}  // namespace

ManifestApplier::ManifestApplier(Rng rng, telemetry::Log log)
    : log_(std::move(log)),
      client_("spillway-manifests", rng.fork("calls")),
      queue_({.retry_min = kManifestRetryMin, .retry_max = kApplyPeriod}) {}

void ManifestApplier::start(Now now) {
  started_ = true;
  client_.start(now);
  run(now);
}

void ManifestApplier::on_api_event(const client::ApiEvent& event, Now now) {
  client_.on_api_event(event, now);
  run(now);
}

void ManifestApplier::on_wakeup(Now now) {
  client_.on_wakeup(now);
  run(now);
}

void ManifestApplier::replace(std::vector<Manifest> manifests, Now now) {
  std::ranges::stable_sort(manifests, {}, [](const Manifest& each) { return rank_of(each.object); });
  std::map<std::string, Entry> before = std::exchange(entries_, {});
  std::vector<std::string> changed;  // in the order of application
  for (Manifest& each : manifests) {
    const std::string key = key_of_manifest(each.object);
    if (const auto first = entries_.find(key); first != entries_.end()) {
      log_.warning("manifest ignored: another one has the same object",
                   {{"object", title_of(each.object)}, {"file", each.place}, {"other", first->second.manifest.place}});
      continue;
    }
    const auto known = before.find(key);
    const bool is_same = known != before.end() && known->second.manifest.object == each.object;
    if (!is_same) changed.push_back(key);
    entries_[key] = is_same ? std::move(known->second) : Entry{std::move(each), {}, {}};
  }
  for (const auto& [key, entry] : before) {
    if (!entries_.contains(key)) queue_.remove(key);
  }
  for (const std::string& key : changed) {
    queue_.remove(key);  // the wait before the next retry ends
    queue_.add(key, now.mono);
  }
  run(now);
}

std::size_t ManifestApplier::applied() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const auto& each) { return !each.second.resource_version.empty(); }));
}

void ManifestApplier::run(Now now) {
  while (started_ && !busy_) {
    const std::optional<std::string> key = queue_.take(now.mono);
    if (!key) break;
    if (!entries_.contains(*key)) {
      queue_.done(*key);
      continue;
    }
    busy_ = true;
    sync(*key);
  }
  wake_up_.set(client_, busy_ ? std::nullopt : queue_.next_due());
}

ManifestApplier::Resources ManifestApplier::resources_in(const api::Json& discovery) {
  Resources found;
  const api::Json* const list = discovery.find("resources");
  if (list == nullptr || !list->is_array()) return found;
  for (const api::Json& each : *list->if_array()) {
    const std::string name(each.string_at({"name"}));
    if (name.contains('/')) continue;  // a subresource
    const api::Json* const scope = each.find("namespaced");
    found.emplace(each.string_at({"kind"}), Resource{name, scope != nullptr && scope->if_bool().value_or(false)});
  }
  return found;
}

void ManifestApplier::sync(const std::string& key) {
  const api::Json& object = entries_.at(key).manifest.object;
  const std::string api_version(object.string_at({"apiVersion"}));
  if (const auto known = resources_.find(api_version); known != resources_.end()) {
    const auto resource = known->second.find(object.string_at({"kind"}));
    if (resource != known->second.end()) return apply(key, resource->second);
  }
  read_resources(key, api_version);
}

void ManifestApplier::read_resources(const std::string& key, const std::string& api_version) {
  client_.get(discovery_path(api_version),
              [this, key](const Result<api::Json>& answer, Now now) { on_resources_read(key, answer, now); });
}

void ManifestApplier::on_resources_read(const std::string& key, const Result<api::Json>& answer, Now now) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return finish(key, now);
  if (!answer) return fail(key, answer.error(), now);
  const api::Json& object = entry->second.manifest.object;
  const std::string api_version(object.string_at({"apiVersion"}));
  const Resources& known = resources_[api_version] = resources_in(*answer);
  const auto resource = known.find(object.string_at({"kind"}));
  if (resource == known.end()) {
    return fail(key, make_error(ErrorCode::kNotFound, "the server has no such kind in {}", api_version), now);
  }
  apply(key, resource->second);
}

void ManifestApplier::apply(const std::string& key, const Resource& resource) {
  api::Json object = entries_.at(key).manifest.object;
  std::string ns(object.string_at({"metadata", "namespace"}));
  if (!resource.is_namespaced) {
    ns.clear();
    object.erase({"metadata", "namespace"});
  } else if (ns.empty()) {
    ns = kDefaultNamespace;
  }
  std::string path = client::object_path(object.string_at({"apiVersion"}), resource.plural, ns,
                                         object.string_at({"metadata", "name"}));
  path += kQuery;
  client_.patch(std::move(path), client::PatchType::kApply, std::move(object),
                [this, key](const Result<api::Json>& answer, Now now) { on_applied(key, answer, now); });
}

void ManifestApplier::on_applied(const std::string& key, const Result<api::Json>& answer, Now now) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return finish(key, now);
  if (!answer) {
    // The kind may have been removed and added again with another scope or plural.
    if (answer.error().code == ErrorCode::kNotFound) {
      resources_.erase(std::string(found->second.manifest.object.string_at({"apiVersion"})));
    }
    return fail(key, answer.error(), now);
  }
  Entry& entry = found->second;
  const std::string version(answer->string_at({"metadata", "resourceVersion"}));
  if (entry.resource_version != version) {
    log_.info("manifest applied", {{"object", title_of(entry.manifest.object)}, {"file", entry.manifest.place}});
  }
  entry.resource_version = version;
  entry.failure.clear();
  queue_.forget(key);
  queue_.add(key, now.mono + kApplyPeriod);
  finish(key, now);
}

void ManifestApplier::fail(const std::string& key, const Error& error, Now now) {
  Entry& entry = entries_.at(key);
  if (entry.failure != error.text()) {
    entry.failure = error.text();
    log_.warning(
        "manifest not applied",
        {{"object", title_of(entry.manifest.object)}, {"file", entry.manifest.place}, {"error", entry.failure}});
  }
  queue_.retry(key, now.mono);
  finish(key, now);
}

void ManifestApplier::finish(const std::string& key, Now now) {
  queue_.done(key);
  busy_ = false;
  run(now);
}

}  // namespace spillway::controllers
