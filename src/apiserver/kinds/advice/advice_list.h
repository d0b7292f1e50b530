// Advice about one write: texts for Warning headers, each once, in the order in which they were found.
// Thread: any. Bounds: kAdviceMax texts; the headers of an answer hold fewer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

class AdviceList {
 public:
  static constexpr std::size_t kAdviceMax = 100;

  /// `texts` gets what is added, behind what it holds already.
  explicit AdviceList(std::vector<std::string>& texts) : texts_(texts), first_(texts.size()) {}

  void add(std::string text) {
    if (full() || std::ranges::find(texts_, text) != texts_.end()) return;
    texts_.push_back(std::move(text));
  }

  bool full() const { return texts_.size() - first_ >= kAdviceMax; }

 private:
  std::vector<std::string>& texts_;
  std::size_t first_;
};

}  // namespace spillway::apiserver::kinds
