// `spillway store copy`: the keys and values of one store into the other, between the embedded store and etcd. Thread:
// main. Invariants: count and hash of the copy equal those of the source; a copy into etcd that did not end is marked
// (store/incomplete_copy.h), one into a file has no name. Source: spec "etcd as the store", 11.7.
#pragma once

#include "cli/flags/command_line.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <string>

namespace spillway::apps {

struct CopyReport {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;       // sum of all keys and values
  std::string hash;              // hash over all keys and values, in key order
  store::Revision from;          // as of which the source was read
  store::Revision continues_at;  // revision of the copy; the next write there gets a later one
  std::string kept;              // the new path of the former store; empty: there was none, or it was in etcd
};

/// `progress` is called during the work, with the share that is done. False: stop.
Result<CopyReport> copy_store(const cli::StoreCommand& command, const std::function<bool(double share)>& progress);

}  // namespace spillway::apps
