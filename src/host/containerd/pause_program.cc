#include "host/containerd/pause_program.h"

#include <cstddef>

// The file that the build has made, as it is.
asm(R"(
  .pushsection .rodata
  .global spillway_pause_begin
  .global spillway_pause_end
  .balign 16
spillway_pause_begin:
  .incbin ")" SPILLWAY_PAUSE R"("
spillway_pause_end:
  .byte 0
  .popsection
)");

extern "C" {
extern const char spillway_pause_begin[];
extern const char spillway_pause_end[];
}

namespace spillway::host {

std::string_view pause_program() {
  return {spillway_pause_begin, static_cast<std::size_t>(spillway_pause_end - spillway_pause_begin)};
}

}  // namespace spillway::host
