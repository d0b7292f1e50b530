// Names of APIServices whose documents are due, in the order in which they became due, each once: servers that answer
// slowly delay the others, and none of them for ever. Thread: loop. Bound: RemoteApis::kApisMax names.
#pragma once

#include <deque>
#include <set>
#include <string>

namespace spillway::apiserver {

class DueNames {
 public:
  void add(const std::string& name) {
    if (names_.insert(name).second) order_.push_back(name);
  }

  bool empty() const { return order_.empty(); }

  /// Precondition: not empty.
  std::string pop() {
    std::string name = std::move(order_.front());
    order_.pop_front();
    names_.erase(name);
    return name;
  }

 private:
  std::set<std::string> names_;
  std::deque<std::string> order_;
};

}  // namespace spillway::apiserver
