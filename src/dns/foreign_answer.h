// An answer that another server gave, as far as an engine has to understand it. Thread: any (values).
#pragma once

#include "policy/dns/record.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace spillway::dns {

struct ForeignAnswer {
  std::shared_ptr<const std::string> message;  // as it came; never null
  Rcode rcode = Rcode::kNoError;
  bool truncated = false;  // the server has more to say, over TCP
  /// For how long it may be repeated: the least time of its records; without any, what the zone's SOA record grants for
  /// a name or type that does not exist (RFC 2308). nullopt: not at all.
  std::optional<std::uint32_t> ttl_seconds = {};
};

}  // namespace spillway::dns
