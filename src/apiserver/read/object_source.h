// The objects of a list, or of the start of a watch, one after the other in the order of their keys. Thread: loop.
#pragma once

#include "apiserver/read/stored_object.h"

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class ObjectSource {
 public:
  /// False: stops the visit; the same object is visited again next time.
  using Visit = std::function<bool(const ObjectPtr&)>;

  virtual ~ObjectSource() = default;
  /// Continues where the last visit ended. True: there are no more objects.
  virtual bool visit(const Visit& visit) = 0;
  /// Starts again from the first object; until the first call, visited objects are kept.
  virtual void rewind() = 0;
};

/// Objects that are in memory.
class GivenObjects final : public ObjectSource {
 public:
  explicit GivenObjects(std::vector<ObjectPtr> objects) : objects_(std::move(objects)) {}

  bool visit(const Visit& visit) override {
    while (next_ < objects_.size() && visit(objects_[next_])) ++next_;
    return next_ == objects_.size();
  }

  void rewind() override { next_ = 0; }

 private:
  std::vector<ObjectPtr> objects_;
  std::size_t next_ = 0;
};

}  // namespace spillway::apiserver
