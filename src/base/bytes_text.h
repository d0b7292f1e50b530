// Amounts of memory and storage as people read them.
// Thread: any (pure).
#pragma once

#include <string>

namespace spillway {

/// "61.8Mi", "252Gi", "512": the largest binary unit (to Pi) of which there is at least one, with one decimal unless it
/// is zero. `bytes` may be negative.
std::string bytes_text(double bytes);

/// The number with one decimal, unless that is zero: "1.5", "2".
std::string short_number(double number);

}  // namespace spillway
