// A pod as the runtime runs it, for /runningpods. Thread: any (plain value).
#pragma once

#include "api/object/meta.h"
#include "base/time.h"

#include <string>
#include <vector>

namespace spillway::agent {

struct RunningPod {
  std::string uid;
  api::PodKey pod;
  WallTime created;                     // when its sandbox was made
  std::vector<std::string> containers;  // running ones alone
};

}  // namespace spillway::agent
