// Tells from a refusal of etcd if the request was carried out, and if a repetition can help. Thread: any (pure).
// Source: etcd, api/v3rpc/rpctypes; spec "etcd as the store", 3.
#pragma once

#include "base/error.h"
#include "store/etcd/etcd_wire.h"

namespace spillway::store {

enum class EtcdVerdict {
  kCompacted,  // that revision is gone
  kFuture,     // that revision is not there yet
  kNoSpace,    // not done: its database is full
  kBusy,       // not done: too many requests
  kTooLarge,   // not done
  kDenied,     // not done: wrong or missing credentials
  kCorrupt,    // the members hold different data: nothing of it may be believed
  kNotDone,    // another member may do it
  kUnknown,    // it may have been done, or may be done yet
};

EtcdVerdict judge(const EtcdFailure& failure);

/// The token of the call has expired, or the member does not know it.
bool is_token_gone(const EtcdFailure& failure);
/// A put named a lease that has ended, or that another cluster gave.
bool is_lease_gone(const EtcdFailure& failure);

/// The error for the caller, in etcd's own words.
Error error_of(const EtcdFailure& failure);

}  // namespace spillway::store
