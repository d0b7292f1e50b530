// Loads packet rules by the program nft, each change as one transaction, on a thread of its own. Only the tables of
// nft_text.h are touched. Thread: loop. Bounds: 30 seconds for a change. Source: nft(8).
#pragma once

#include "base/error.h"
#include "host/kernel/blocking_thread.h"
#include "policy/network/rule_book.h"
#include "policy/network/stale_flows.h"
#include "runtime/loop.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace spillway::host {

class RuleLoader {
 public:
  explicit RuleLoader(runtime::Loop& loop) : thread_(loop, kWaitingMax) {}

  /// `done` runs on the loop. An error names the refused rule, and the remedy where that is known.
  void load(std::vector<network::RuleChange> changes, std::function<void(Outcome)> done);

  /// Removes the tables of both families, after all changes requested before.
  void remove(std::function<void(Outcome)> done);

  /// Deletes the UDP entries of the connection table that `judge` classifies as stale; entries that cannot be read or
  /// deleted stay. `done` gets the number of deleted entries.
  void delete_flows(std::shared_ptr<const network::FlowCheck> check, std::function<void(Result<std::size_t>)> done);

  /// Addresses of the interfaces of this machine, without prefixes.
  void read_addresses(std::function<void(std::vector<std::string>)> done);

 private:
  static constexpr std::size_t kWaitingMax = 16;

  BlockingThread thread_;
};

/// Checks that packet rules can be loaded here; the error names the missing right or kernel feature. Changes nothing.
/// Waits for the kernel; thread: any.
Outcome check_netfilter();

/// Removes the tables of both families, if they are there. Waits for the kernel; thread: any.
Outcome remove_rules();

}  // namespace spillway::host
