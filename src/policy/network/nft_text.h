// Rules as commands of nft, which the kernel carries out as one transaction. Thread: any (values). Texts of objects
// reach a command only as addresses, numbers and names that the API server checked; other characters are replaced.
// Source: nft(8).
#pragma once

#include "policy/network/rule_book.h"
#include "policy/network/ruleset.h"

#include <string>
#include <string_view>

namespace spillway::network {

/// The table of a family, which is this program's own: "ip spillway-proxy", "ip6 spillway-proxy".
std::string_view table_of(Family family);

/// Commands that add the rules of a chain, one a line. Empty if it has none.
std::string rules_text(Family family, std::string_view name, const Chain& chain);

std::string change_text(const RuleChange& change);

/// Commands that remove the table, if it exists.
std::string removal_text(Family family);

}  // namespace spillway::network
