// Asks a container runtime about its pods, containers and images, over its socket (gRPC, CRI v1).
// Thread: not the loop: report() waits; one at a time. stop() any. Bounds: kRoundTimeout for all calls of a round
// together, 16 MiB per answer, kListedMax entries per list; an answer beyond them is an error. Source: Kubernetes docs,
// "Container Runtime Interface (CRI)"; spec "Node agent", 20.
#pragma once

#include "agent/companion/foreign_storage.h"
#include "base/error.h"

#include <cstddef>
#include <memory>
#include <string>

namespace spillway::host {

class CriClient {
 public:
  static constexpr Duration kRoundTimeout = seconds(10);
  static constexpr std::size_t kListedMax = 10'000;

  /// `socket`: path of the runtime's socket. `image_socket`: path of the image service's; empty: the same. Connects at
  /// the first call.
  explicit CriClient(const std::string& socket, const std::string& image_socket = {},
                     Duration round_timeout = kRoundTimeout);
  ~CriClient();
  CriClient(const CriClient&) = delete;
  CriClient& operator=(const CriClient&) = delete;

  /// kServiceUnavailable: the runtime cannot be reached, or does not implement CRI v1. kTimeout: it did not answer in
  /// time. kInvalid: its answer is too long.
  Result<agent::RuntimeReport> report();

  /// The call under way and all later ones end at once.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::host
