// A report of simulated runs: one HTML file that loads nothing, with the data in it. Its policy lets it run its own
// script and style sheet, by their digests, and nothing else. Thread: any (pure).
#pragma once

#include "sim/report/page_data.h"

#include <span>
#include <string>

namespace spillway::sim {

/// `title` is for the window; every name from a run is text on the page, whatever is in it.
std::string report_page(const std::string& title, std::span<const RunHistory> runs, const Explain& explain);

}  // namespace spillway::sim
