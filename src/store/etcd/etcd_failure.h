// Classifies a refusal of etcd: the request was executed or not, and a retry can help or not. Thread: any (pure).
// Source: etcd, api/v3rpc/rpctypes; spec "etcd as the store", 3.
#pragma once

#include "base/error.h"
#include "store/etcd/etcd_wire.h"

namespace spillway::store {

enum class EtcdVerdict {
  kCompacted,  // the revision was compacted
  kFuture,     // the revision is still in the future
  kNoSpace,    // the write was refused: the database is full
  kBusy,       // not done: too many requests
  kTooLarge,   // not done
  kDenied,     // not done: wrong or missing credentials
  kCorrupt,    // the members hold different data, so none of it can be trusted
  kNotDone,    // not done; another member may do it
  kUnknown,    // the request may have been executed, or may be later
};

EtcdVerdict classify(const EtcdFailure& failure);

/// True if the token of the call has expired, or is unknown to the member.
bool is_token_gone(const EtcdFailure& failure);
/// A put named a lease that has ended, or that another cluster gave.
bool is_lease_gone(const EtcdFailure& failure);

/// The error for the caller, in etcd's own words.
Error error_of(const EtcdFailure& failure);

}  // namespace spillway::store
