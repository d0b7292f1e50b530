// The rules of all Services of one address family, and what has to change where they are loaded. Parts are put and
// removed by owner; take() gives the difference to what was taken before. Its cost grows with the parts that changed,
// not with all parts. Thread: loop.
//
// A destination belongs to one owner. Of two Services that claim the same address and port, the older one has it; of
// two of the same age, the first by name. So a new Service with a foreign external IP takes no traffic away.
//
// A chain that no part needs is emptied at once and deleted later: kernels before 6.2 notice late that an element
// which led to it is gone. Source: nft(8); Kubernetes docs, "Virtual IPs and Service Proxies".
#pragma once

#include "base/time.h"
#include "policy/network/ruleset.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::network {

/// An atomic change of the loaded rules.
struct RuleChange {
  Family family = Family::kIPv4;
  bool whole = false;  // true: replaces all rules of the family; else the members below are the difference
  std::map<std::string, std::int32_t> new_source_sets;
  std::map<std::string, Chain> chains;  // new chains, and those whose rules have changed
  std::vector<std::string> emptied_chains;
  std::vector<std::string> deleted_source_sets;
  std::vector<std::string> deleted_chains;
  Elements removed;
  Elements added;

  bool empty() const;
};

class RuleBook {
 public:
  /// The older owner has the smaller key. `name` is unique.
  struct Owner {
    std::int64_t created_seconds = 0;  // since 1970
    std::string name;

    friend auto operator<=>(const Owner&, const Owner&) = default;
  };

  explicit RuleBook(Family family) : family_(family) {}

  /// Replaces the part of that owner.
  void put(const Owner& owner, RulePart part);
  void remove(const std::string& name);
  /// Makes the next change the complete rule set: the loaded rules are unknown.
  void begin_anew();
  /// The changes since the last call. The caller loads it, or calls begin_anew().
  RuleChange take(Instant now);

  bool changed() const {
    return whole_ || !touched_targets_.empty() || !touched_chains_.empty() || !touched_sets_.empty();
  }

  std::size_t owners() const { return parts_.size(); }

  /// All rules that should be loaded now.
  RulePart all() const;

 private:
  struct OwnedChain {
    Chain chain;
    std::set<std::string> owners;
  };

  struct OwnedSet {
    std::int32_t seconds = 0;
    std::set<std::string> owners;
  };

  void withdraw(const Owner& owner, const RulePart& part);
  RuleChange take_whole();
  void take_chains(RuleChange& change, Instant now);
  void take_targets(RuleChange& change);

  Family family_;
  bool whole_ = true;
  std::map<std::string, std::pair<Owner, RulePart>> parts_;
  std::map<std::string, std::map<Owner, Elements>> targets_;
  std::map<std::string, OwnedChain> chains_;
  std::map<std::string, OwnedSet> sets_;
  // The targets at the last change taken, of those that changed since.
  std::map<std::string, Elements> touched_targets_;
  std::map<std::string, std::string> touched_chains_;  // chain → its former rules as text; empty: the chain is new
  std::set<std::string> touched_sets_;
  std::set<std::string> loaded_sets_;
  std::map<std::string, Instant> emptied_;
};

}  // namespace spillway::network
