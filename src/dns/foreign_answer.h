// An answer that another server gave, as far as an engine has to understand it. Thread: any (values).
#pragma once

#include "policy/dns/record.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace spillway::dns {

struct ForeignAnswer {
  std::shared_ptr<const std::string> message;  // as received; never null
  Rcode rcode = Rcode::kNoError;
  bool truncated = false;  // the rest is available over TCP
  /// The time for which it may be cached: the least time of its records; without any, the SOA record's time for a name
  /// or type that does not exist (RFC 2308). nullopt: not at all.
  std::optional<std::uint32_t> ttl_seconds = {};
};

}  // namespace spillway::dns
