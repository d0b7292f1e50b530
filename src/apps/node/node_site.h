// The process of a node, and the loop on which the node works: the process's own, or one of its own beside an API
// server (docs/adr/0074-heartbeats-of-their-own.md). Thread: any; what it refers to has rules of its own.
#pragma once

#include "apps/process/process.h"
#include "runtime/loop.h"

namespace spillway::apps {

struct NodeSite {
  Process& process;     // only its log and metrics may be used from `loop`
  runtime::Loop& loop;  // outlives the node
};

}  // namespace spillway::apps
