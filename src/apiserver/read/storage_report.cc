#include "apiserver/read/storage_report.h"

namespace spillway::apiserver {

StorageReport::StorageReport(Core& core, telemetry::Registry& metrics)
    : core_(core),
      unreadable_(metrics.gauge("spillway_storage_unreadable_values",
                                "Values in the store that cannot be decoded and are not served")) {}

void StorageReport::choose_media_type() {
  std::optional<StorageMediaType>& chosen = core_.storage.media_type;
  const auto found = core_.cache.media_type_at_rest();
  std::string_view why = "--storage-media-type";
  if (!chosen) {
    why = found ? "as in the existing store" : "the store is empty";
    chosen = found.value_or(StorageMediaType::kJson);
  }
  core_.log.info("storage format of new objects", {{"media_type", to_string(*chosen)}, {"because", why}});
  count();
}

void StorageReport::on_unreadable(std::string_view store_key, const Unreadable& value) {
  if (logged_.contains(store_key) || logged_.size() >= kKeysLoggedMax) return;
  logged_.emplace(store_key);
  core_.log.error("a value in the store cannot be read; it is neither served nor written",
                  {{"key", store_key}, {"revision", value.revision.number()}, {"cause", value.cause}});
}

void StorageReport::count() {
  std::size_t now = 0;
  for (const auto& cache : core_.cache.all()) now += cache->unreadable().size();
  if (now == counted_) return;
  counted_ = now;
  unreadable_.set(static_cast<double>(now));
}

api::StatusResult<void> StorageReport::check(const Route& route) const {
  if (route.name.empty() || route.resource == nullptr || !route.resource->stored()) return {};
  const ResourceCache& cache = core_.cache.of(*route.resource);
  const std::string key = object_key(route.ns, route.name);
  const Unreadable* bad = cache.find_unreadable(key);
  if (bad == nullptr) return {};
  return unreadable_status(route.resource->storage + key, bad->revision, bad->cause);
}

}  // namespace spillway::apiserver
