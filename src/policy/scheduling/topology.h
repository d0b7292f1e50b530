// Nodes by number, in the order of their names, and which of them have a value of a label in common.
// Thread: one. The nodes must outlive it, unchanged in number and labels. Bounds: kKeysMax labels are kept.
#pragma once

#include "policy/node_load.h"
#include "policy/scheduling/surroundings.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::scheduling {

class Topology {
 public:
  using Entry = std::map<std::string, policy::NodeLoad>::value_type;

  static constexpr std::size_t kKeysMax = 64;
  static constexpr std::uint32_t kNone = UINT32_MAX;  // the node lacks the label

  /// The nodes' domains by one label: the number of each node's value, and how many values there are.
  struct Domains {
    std::vector<std::uint32_t> of;
    std::uint32_t count = 0;
  };

  Topology(const std::map<std::string, policy::NodeLoad>& nodes, const Surroundings& around);

  std::size_t size() const { return entries_.size(); }

  const std::string& name(std::size_t number) const { return entries_[number]->first; }

  const policy::NodeLoad& load(std::size_t number) const { return entries_[number]->second; }

  /// The number of the node; nullopt: unknown node.
  std::optional<std::uint32_t> number_of(const std::string& node) const;
  std::optional<std::uint32_t> number_of(Slot slot) const;
  std::shared_ptr<const Domains> domains_of(const std::string& label);

 private:
  std::vector<const Entry*> entries_;
  std::vector<std::uint32_t> by_slot_;
  std::map<std::string, std::shared_ptr<const Domains>> domains_;
};

}  // namespace spillway::scheduling
