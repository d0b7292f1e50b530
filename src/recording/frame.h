// The format of a recording in a file: a line that names the format, then one frame per record, each with its length
// and its checksums. An incomplete last frame, left by a crash, is no record.
// Thread: any (pure). Bounds: kRecordBytesMax.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::recording {

/// The kind of recording: of a node's evictions, or of the node lifecycle.
struct Kind {
  std::string_view header;  // the first line, with the version of the records
  std::string_view of;      // "an agent"
};

inline constexpr Kind kAgentKind{"spillway agent recording 2\n", "an agent"};
inline constexpr Kind kControllerKind{"spillway controller recording 1\n", "a controller"};

/// The size limit of one record.
inline constexpr std::size_t kRecordBytesMax = std::size_t{4} << 20;

/// Appends one frame. False: the record is longer than kRecordBytesMax, nothing was appended.
[[nodiscard]] bool append_frame(std::string& file, std::string_view record);

struct Frames {
  std::vector<std::string_view> records;  // within the text that was read
  // length of an incomplete record at the end, which was being written when the process ended
  std::size_t torn_bytes = 0;
};

/// kInvalid: no recording, one of another version, or one that is damaged before its last frame; the message names the
/// byte. A frame that is not whole ends the recording.
Result<Frames> read_frames(std::string_view file, const Kind& kind);

/// Adds the frames of `segment`, a recording of its own, to `file`, which is empty or one already. What is torn at its
/// end is left out. Errors as of read_frames(); `file` is as before then.
Outcome append_segment(std::string& file, std::string_view segment, const Kind& kind);

}  // namespace spillway::recording
