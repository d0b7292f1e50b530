// Port: the destination of an engine's recording. Never waits for a disk: records without room are dropped, and the
// next segment begins with everything that a replay needs to begin there.
// Thread: loop. Source: docs/adr/0024-recordings.md.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::recording {

class Sink {
 public:
  virtual ~Sink() = default;

  /// The size after which a segment should be ended.
  virtual std::size_t segment_bytes() const = 0;
  /// Ends the segment before and begins one with `bytes`. False: it cannot be had now.
  [[nodiscard]] virtual bool begin_segment(std::string bytes) = 0;
  /// False: not all of the segment was kept, and nothing more can be added to it.
  [[nodiscard]] virtual bool append(std::string bytes) = 0;
  /// Saves a copy of the present recording. `why`: a word for its name.
  virtual void keep(std::string_view why) = 0;
};

}  // namespace spillway::recording
