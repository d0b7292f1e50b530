// The server's handling of stored values: the media type that it writes, and for unreadable values a log line each, a
// count and the refusal of every request that names one.
// Thread: loop. Bounds: keys that have been logged, kKeysLoggedMax. Source: spec "etcd as the store", 4.7, 11.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/request/route.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class StorageReport {
 public:
  static constexpr std::size_t kKeysLoggedMax = 10'000;

  StorageReport(Core& core, telemetry::Registry& metrics);

  /// Chooses once the cache has loaded: the configured type, else the type of the stored values, else JSON.
  void choose_media_type();

  void on_unreadable(std::string_view store_key, const Unreadable& value);
  /// The metric is brought up to date.
  void count();

  /// 500: the route names an object whose value cannot be read.
  api::StatusResult<void> check(const Route& route) const;

 private:
  Core& core_;
  telemetry::Gauge unreadable_;
  std::set<std::string, std::less<>> logged_;
  std::size_t counted_ = 0;
};

}  // namespace spillway::apiserver
