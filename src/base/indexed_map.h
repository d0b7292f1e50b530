// A map of strings in key order that is looked up through a hash once it is large: in a map of thousands whose keys
// begin alike, nearly every step down the tree waits for memory. The hash decides nothing: iteration is in key order.
// Thread: as a std::map. References to values stay valid until their element is erased.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace spillway {

template <typename T>
class IndexedMap {
 public:
  using Ordered = std::map<std::string, T, std::less<>>;
  using iterator = typename Ordered::iterator;
  using const_iterator = typename Ordered::const_iterator;

  /// Smaller maps are searched in the tree.
  static constexpr std::size_t kIndexedFrom = 128;

  IndexedMap() = default;
  IndexedMap(const IndexedMap&) = delete;  // the index points to the elements
  IndexedMap& operator=(const IndexedMap&) = delete;

  const Ordered& ordered() const { return elements_; }

  std::size_t size() const { return elements_.size(); }

  bool empty() const { return elements_.empty(); }

  iterator begin() { return elements_.begin(); }

  iterator end() { return elements_.end(); }

  const_iterator begin() const { return elements_.begin(); }

  const_iterator end() const { return elements_.end(); }

  iterator find(std::string_view key) {
    if (index_.empty()) return elements_.find(key);
    const auto found = index_.find(key);
    return found == index_.end() ? elements_.end() : found->second;
  }

  const_iterator find(std::string_view key) const {
    if (index_.empty()) return elements_.find(key);
    const auto found = index_.find(key);
    return found == index_.end() ? elements_.end() : const_iterator(found->second);
  }

  /// The element of that key, made with T() if there was none; true if it was made.
  std::pair<iterator, bool> emplace(std::string_view key) {
    if (!index_.empty()) {
      const auto known = index_.find(key);
      if (known != index_.end()) return {known->second, false};
    }
    const auto made = elements_.emplace(key, T());
    if (made.second) add_to_index(made.first);
    return made;
  }

  T& operator[](std::string_view key) { return emplace(key).first->second; }

  void erase(iterator element) {
    index_.erase(element->first);
    elements_.erase(element);
    if (elements_.size() < kIndexedFrom / 2 && !index_.empty()) index_ = {};  // the hash table with its buckets
  }

  void clear() {
    index_.clear();
    elements_.clear();
  }

 private:
  /// The index has all elements or none.
  void add_to_index(iterator made) {
    if (!index_.empty()) {
      index_.emplace(made->first, made);
    } else if (elements_.size() >= kIndexedFrom) {
      for (auto each = elements_.begin(); each != elements_.end(); ++each) index_.emplace(each->first, each);
    }
  }

  Ordered elements_;
  std::unordered_map<std::string_view, iterator> index_;  // points to keys in the elements
};

}  // namespace spillway
