// Names of APIServices whose documents are due, in the order in which they became due, each once, and those whose fetch
// is under way: servers that answer slowly delay the others, and none of them for ever. Thread: loop. Bounds: a fixed
// number of fetches at a time; RemoteApis::kApisMax names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace spillway::apiserver {

class DueNames {
 public:
  /// `fetches_max`: fetches that may be under way at a time.
  explicit DueNames(std::size_t fetches_max) : fetches_max_(fetches_max) {}

  void add(const std::string& name) {
    if (names_.insert(name).second) order_.push_back(name);
  }

  /// Takes the name whose fetch is the next to begin. A name whose fetch is under way stays due, as that fetch may have
  /// begun before the change. nullopt: no fetch can begin now.
  std::optional<std::string> take() {
    if (under_way_.size() >= fetches_max_) return std::nullopt;
    const auto next = std::ranges::find_if(order_, [this](const auto& name) { return !under_way_.contains(name); });
    if (next == order_.end()) return std::nullopt;
    std::string name = std::move(*next);
    order_.erase(next);
    names_.erase(name);
    return name;
  }

  void begin(const std::string& name) { under_way_.insert(name); }

  void end(const std::string& name) { under_way_.erase(name); }

 private:
  std::size_t fetches_max_;
  std::set<std::string> names_;
  std::deque<std::string> order_;
  std::set<std::string> under_way_;
};

}  // namespace spillway::apiserver
