// Pressure stall information: its text, and triggers that make a descriptor ready when stalls pass a limit.
// The parser is pure. Thread: any. Source: kernel document "psi.rst"; spec "Wake-up sources", 3.
#pragma once

#include "api/object/summary.h"
#include "base/error.h"
#include "base/unique_fd.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

/// Shares of time in hundredths of a percent, and the total in microseconds.
struct PsiLine {
  std::int32_t avg10 = 0;
  std::int32_t avg60 = 0;
  std::int32_t avg300 = 0;
  std::uint64_t total_micros = 0;

  friend bool operator==(const PsiLine&, const PsiLine&) = default;
};

struct Psi {
  PsiLine some;
  std::optional<PsiLine> full;

  friend bool operator==(const Psi&, const Psi&) = default;
};

/// kInvalid: the line "some" is missing, or a line is malformed.
Result<Psi> parse_psi(std::string_view text);

/// Converts the figures to the form of a Summary.
api::PsiStats to_psi_stats(const Psi& psi);

/// The window of triggers that the kernel allows: windows of half a second need CAP_SYS_RESOURCE, multiples of two
/// seconds do not.
enum class PsiWindow { kHalfSecond, kTwoSeconds, kNone };

struct PsiTrigger {
  UniqueFd fd;  // POLLPRI when stalls passed the limit; POLLERR when the cgroup was removed
  PsiWindow window = PsiWindow::kNone;
};

/// The finest trigger that can be had on `file` (/proc/pressure/memory, or memory.pressure of a cgroup directory): 10%
/// of a half-second window, else 5% of two seconds, else none.
PsiTrigger open_psi_trigger(int directory, const std::string& file);

}  // namespace spillway::host
