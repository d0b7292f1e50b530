// State of the horizontal autoscaler between syncs. Thread: loop. Bounds: one memory per autoscaler in the cache; 64
// kinds of targets are remembered.
#pragma once

#include "api/object/selector.h"
#include "base/error.h"
#include "policy/autoscaling/autoscaler_plan.h"
#include "policy/autoscaling/scale_path.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace spillway::controllers {

/// State of an autoscaler that its status does not have.
struct AutoscalerMemory {
  std::string ns;
  std::string key;
  autoscaling::History history;
  std::optional<api::LabelSelector> selector;  // selector of the target's pods, once it is known
};

/// The plurals of kinds, as the API server has answered.
class TargetKinds {
 public:
  /// The plural name of a target's kind; nullptr: unknown.
  const autoscaling::PluralKind* find(const std::string& api_version, const std::string& kind) const {
    const auto known = plurals_.find({api_version, kind});
    return known != plurals_.end() ? &known->second : nullptr;
  }

  /// The plural of a kind in the answer to a request for autoscaling::version_path(); it is remembered.
  Result<autoscaling::PluralKind> learn(const std::string& api_version, const std::string& kind,
                                        const Result<api::Json>& outcome);

 private:
  std::map<std::pair<std::string, std::string>, autoscaling::PluralKind> plurals_;  // by apiVersion and kind
};

}  // namespace spillway::controllers
