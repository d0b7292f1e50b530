// EndpointSlices of a cache by the Service that they are of. Thread: loop.
#pragma once

#include "api/object/endpoints.h"
#include "policy/endpoints/slice_plan.h"

#include <map>
#include <string>
#include <vector>

namespace spillway::controllers {

class SlicesByService {
 public:
  /// "namespace/name" of the Service; empty: the slice names none.
  static std::string key_of(const api::EndpointSlice& slice) {
    const auto name = slice.metadata.labels.find(endpoints::kServiceNameLabel);
    const bool says_one = name != slice.metadata.labels.end() && !name->second.empty();
    return says_one ? slice.metadata.ns + "/" + name->second : std::string();
  }

  /// Applies a change from the cache; visit(key) is called for the Service of the slices before and after. A slice that
  /// names no Service is ignored.
  template <typename Visit>
  void change(const endpoints::SlicePtr& before, const endpoints::SlicePtr& after, Visit visit) {
    if (const std::string key = before ? key_of(*before) : std::string(); !key.empty()) {
      if (const auto found = by_service_.find(key); found != by_service_.end()) {
        found->second.erase(before->metadata.name);
        if (found->second.empty()) by_service_.erase(found);
      }
      visit(key);
    }
    if (const std::string key = after ? key_of(*after) : std::string(); !key.empty()) {
      by_service_[key][after->metadata.name] = after;
      visit(key);
    }
  }

  /// The slices that are not being deleted, in the order of their names.
  std::vector<endpoints::SlicePtr> of(const std::string& key) const {
    std::vector<endpoints::SlicePtr> slices;
    const auto found = by_service_.find(key);
    if (found == by_service_.end()) return slices;
    for (const auto& [name, slice] : found->second) {
      if (!slice->metadata.deletion_timestamp) slices.push_back(slice);
    }
    return slices;
  }

  /// The keys of all Services that have slices.
  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, slices] : by_service_) keys.push_back(key);
    return keys;
  }

 private:
  std::map<std::string, std::map<std::string, endpoints::SlicePtr>> by_service_;
};

}  // namespace spillway::controllers
