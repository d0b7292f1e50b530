// A store in etcd for work that has no loop of its own: each call returns when etcd has answered. It can keep
// the API servers of this project out: it has an entry among theirs, with keys of its own.
// Thread: main. Bounds: kWritesAtATime. Source: spec "etcd as the store", 11.7; store/server_roster.h.
#pragma once

#include "cli/flags/command_line.h"
#include "runtime/loop.h"
#include "store/server_roster.h"
#include "store/store.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apps {

class EtcdEnd {
 public:
  static constexpr std::size_t kWritesAtATime = 64;
  /// False: stop.
  using ShouldContinue = std::function<bool()>;

  /// kInvalid, kForbidden, kNotFound: a flag, or a file it names.
  static Result<std::unique_ptr<EtcdEnd>> open(const cli::EtcdArgs& args, ShouldContinue should_continue);
  ~EtcdEnd();
  EtcdEnd(const EtcdEnd&) = delete;
  EtcdEnd& operator=(const EtcdEnd&) = delete;

  /// kConflict: an API server uses this etcd. From then on no other one starts. Takes ServerRoster::kGoneAfter if a
  /// server has ended without signing off.
  Outcome keep_servers_out();
  void give_back();

  Result<store::RangeResult> range(store::Range range);
  /// Carries out all writes; after an error some may be done. kConflict: a condition did not hold.
  Outcome write(std::vector<store::Write> writes);

 private:
  explicit EtcdEnd(ShouldContinue should_continue) : should_continue_(std::move(should_continue)) {}

  /// Runs the loop until `over`. kServiceUnavailable: should_continue_ has returned false.
  Outcome run_until(const std::function<bool()>& over);

  ShouldContinue should_continue_;
  telemetry::Registry metrics_;
  runtime::Loop loop_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::ServerRoster> roster_;
  bool stopped_ = false;
};

}  // namespace spillway::apps
