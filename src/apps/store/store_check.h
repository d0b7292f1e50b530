// Every object of a store decoded and encoded again.
// Thread: main. Source: spec "etcd as the store", 11.7.
#pragma once

#include "apiserver/stored_values.h"
#include "cli/flags/command_line.h"
#include "store/sqlite/upkeep/check.h"

#include <string_view>

namespace spillway::apps {

/// A sqlite::CheckValue.
class ValueCheck {
 public:
  store::sqlite::CheckedValue operator()(std::string_view key, std::string_view value) const;

 private:
  apiserver::StoredValues values_;
};

/// Checks all keys at one revision; etcd's own files are not checked. A server may run meanwhile. Errors: the store
/// cannot be read, or `should_continue` requested a stop.
Result<store::sqlite::CheckReport> check_etcd_store(const cli::EtcdArgs& args,
                                                    const store::sqlite::ShouldContinue& should_continue);

}  // namespace spillway::apps
