// The script, the style sheet and the frame of a report: the files of sim/report/page, which are part of the program.
// Thread: any (constants).
#pragma once

#include <span>
#include <string_view>

namespace spillway::sim {

struct PageFile {
  std::span<const std::string_view> pieces;  // the file, in pieces
  std::string_view sha256;                   // the file's digest, in hexadecimal; empty: not used
};

extern const PageFile kPageScript;
extern const PageFile kPageStyle;
/// HTML with the places {{policy}}, {{title}}, {{style}}, {{data}} and {{script}}.
extern const PageFile kPageFrame;

}  // namespace spillway::sim
