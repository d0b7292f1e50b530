// The objects of one resource at one revision, visited a few at a time while the cache changes. The cache reports the
// previous value of every change, which is kept until the visit has passed it. Nothing is copied when the view is made,
// and a write costs one call for each view of its resource.
// Thread: loop. Bounds: it holds the former values of objects that were changed and not visited since (and, for as long
// as it is to be rewound, of those behind it); the number of views is bounded by their owners (long_reads.h). Source:
// ADR-0021.
#pragma once

#include "apiserver/read/object_source.h"
#include "apiserver/read/watch_cache.h"

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

class PinnedObjects final : public ObjectSource, public ResourceCache::Pin {
 public:
  enum class Passes { kOne, kTwo };  // kTwo: rewind() follows

  /// Objects below `prefix`, from just behind `start_after`, as at the revision `at`: the present one, or one that
  /// `cache` covers.
  static std::shared_ptr<PinnedObjects> make(ResourceCache& cache, store::Revision at, std::string prefix,
                                             std::string start_after, Passes passes);

  bool visit(const Visit& visit) override;
  void rewind() override;

  // ResourceCache::Pin
  void on_change(const std::string& key, const ObjectPtr& previous) override;

  /// Former values that are held.
  std::size_t held() const { return then_.size(); }

 private:
  PinnedObjects(ResourceCache& cache, std::string prefix, std::string start_after, Passes passes);

  bool is_ahead(std::string_view key) const;
  bool absorb();
  void pass(const std::string& key);

  const ResourceCache& cache_;
  const std::string prefix_;
  const std::string start_after_;
  bool rewinds_;
  std::string passed_;  // the last key that was visited; empty: none
  // Changes between the revision and now, oldest first, still to be merged into `then_`.
  std::deque<std::pair<std::string, ObjectPtr>> news_;
  std::vector<EventPtr> history_;
  std::size_t absorbed_ = 0;
  ObjectMap then_;  // values at the revision, of objects changed since; null: absent then
};

}  // namespace spillway::apiserver
