// Pages of the controllers below /debug/spillway, as JSON. The server authorizes requests. Thread: loop.
#pragma once

#include "apps/controller/debug_pages.h"
#include "controllers/controller_set.h"
#include "runtime/loop.h"
#include "telemetry/metrics.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apps {

inline constexpr std::string_view kZonesPage = "/debug/spillway/zones";
inline constexpr std::string_view kNodesPage = "/debug/spillway/nodes/";
inline constexpr std::string_view kPodsPage = "/debug/spillway/pods/";
inline constexpr std::string_view kEvictionsPage = "/debug/spillway/evictions/";
inline constexpr std::string_view kServicesPage = "/debug/spillway/services";

class ControllerPages final : public DebugPages {
 public:
  explicit ControllerPages(runtime::Loop& loop) : loop_(loop) {}

  /// nullptr: no controllers run here, for the reason `why`. The set must outlive the pages or be replaced by nullptr.
  void set_controllers(const controllers::ControllerSet* set, std::string why) {
    set_ = set;
    why_ = std::move(why);
  }

  /// `why`: no Service proxy runs in this process; empty: one does.
  void set_services(std::string why) { not_carried_ = std::move(why); }

  /// services, zones, nodes/NAME, pods/NAMESPACE/NAME, evictions/RESOURCE/NAMESPACE/NAME. nullopt: there is no such
  /// page. 503: nothing runs here; 404: no such node or workload, or the pod is not to be deleted.
  std::optional<api::Response> answer(std::string_view path) const override;

 private:
  api::Response page(std::string_view path) const;

  runtime::Loop& loop_;
  const controllers::ControllerSet* set_ = nullptr;
  std::string why_ = "the controllers are starting";
  std::optional<std::string> not_carried_;  // nullopt: this process has nothing to do with Services
};

}  // namespace spillway::apps
