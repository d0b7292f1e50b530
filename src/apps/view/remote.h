// The way to an API server that a kubeconfig names.
#pragma once

#include "base/error.h"
#include "client/engine.h"
#include "runtime/loop.h"

#include <memory>
#include <string>

namespace spillway::apps {

struct Remote {
  std::unique_ptr<client::Transport> transport;
  std::string authority_pem;  // of the cluster; empty over plain HTTP
  std::string host;           // "192.0.2.7:6443"
};

/// kInvalid: what is wrong with the file, and where. Nothing is connected yet.
Result<Remote> connect_remote(runtime::Loop& loop, const std::string& kubeconfig);

}  // namespace spillway::apps
