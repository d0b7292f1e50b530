// The files of the dashboard as `./dev` has built them from ui/, and put into the program when the build is configured.
// Thread: any (constants).
#pragma once

#include <span>
#include <string_view>

namespace spillway::wire {

struct DashboardFile {
  std::span<const std::string_view> pieces;  // the file, in pieces; empty: the page was not built
};

extern const DashboardFile kDashboardScript;
extern const DashboardFile kDashboardStyle;
extern const DashboardFile kDashboardFrame;

}  // namespace spillway::wire
