#include "policy/network/nft_text.h"

#include <fmt/format.h>

#include <iterator>
#include <span>
#include <vector>

namespace spillway::network {
namespace {

constexpr std::size_t kElementsInCommand = 2048;

struct Words {
  std::string_view ip;       // keyword of the family in expressions: "ip saddr"
  std::string_view address;  // the type of an address
};

Words words_of(Family family) {
  return family == Family::kIPv4 ? Words{"ip", "ipv4_addr"} : Words{"ip6", "ipv6_addr"};
}

std::string ranges_text(std::span<const api::IpRange> ranges) {
  std::string out = "{ ";
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ", ", text_of(ranges[i]));
  }
  return out + " }";
}

std::string_view unequal(bool negated) {
  return negated ? "!= " : "";
}

std::string target_text(Family family, Target target) {
  return target == Target::kAddress ? fmt::format("{} daddr . meta l4proto . th dport", words_of(family).ip)
                                    : std::string("meta l4proto . th dport");
}

struct ConditionText {
  Family family;

  std::string operator()(const IsNew& /*condition*/) const { return "ct state new"; }

  std::string operator()(const SourceIn& condition) const {
    return fmt::format("{} saddr {}{}", words_of(family).ip, unequal(condition.negated), ranges_text(condition.ranges));
  }

  std::string operator()(const DestinationIn& condition) const {
    return fmt::format("{} daddr {}{}", words_of(family).ip, unequal(condition.negated), ranges_text(condition.ranges));
  }

  std::string operator()(const InterfaceIs& condition) const {
    return fmt::format("iifname {}\"{}{}\"", unequal(condition.negated), condition.name,
                       condition.is_prefix ? "*" : "");
  }

  std::string operator()(const SourceIsHere& /*condition*/) const { return "fib saddr type local"; }

  std::string operator()(const DestinationIsHere& /*condition*/) const { return "fib daddr type local"; }

  std::string operator()(const DestinationInSet& condition) const {
    return fmt::format("{} daddr @{}", words_of(family).ip, condition.set);
  }

  std::string operator()(const SourceInSet& condition) const {
    return fmt::format("{} saddr @{}", words_of(family).ip, condition.set);
  }

  std::string operator()(const TranslatedPairInSet& condition) const {
    const std::string_view ip = words_of(family).ip;
    return fmt::format("ct status dnat {} saddr . {} daddr @{}", ip, ip, condition.set);
  }

  std::string operator()(const MarkIsClear& condition) const {
    return fmt::format("meta mark & {:#010x} == 0", condition.mask);
  }
};

struct StatementText {
  Family family;

  std::string operator()(const Drop& /*statement*/) const { return "drop"; }

  std::string operator()(const Reject& /*statement*/) const { return "reject"; }

  std::string operator()(const Return& /*statement*/) const { return "return"; }

  std::string operator()(const Jump& statement) const { return "jump " + statement.chain; }

  std::string operator()(const Goto& statement) const { return "goto " + statement.chain; }

  std::string operator()(const Follow& statement) const {
    return fmt::format("{} vmap @{}", target_text(family, statement.target), statement.map);
  }

  std::string operator()(const Spread& statement) const {
    return fmt::format("meta l4proto {{ tcp, udp, sctp }} dnat to {} . numgen random mod {} offset {} map @{}",
                       target_text(family, statement.target), statement.slots, statement.first_slot, statement.map);
  }

  std::string operator()(const GotoAny& statement) const {
    std::string out = fmt::format("numgen random mod {} vmap {{ ", statement.chains.size());
    for (std::size_t i = 0; i < statement.chains.size(); ++i) {
      fmt::format_to(std::back_inserter(out), "{}{} : goto {}", i == 0 ? "" : ", ", i, statement.chains[i]);
    }
    return out + " }";
  }

  std::string operator()(const Translate& statement) const {
    const std::string ip = text_of(statement.ip);
    return statement.ip.v4 ? fmt::format("meta l4proto {{ tcp, udp, sctp }} dnat to {}:{}", ip, statement.port)
                           : fmt::format("meta l4proto {{ tcp, udp, sctp }} dnat to [{}]:{}", ip, statement.port);
  }

  std::string operator()(const RememberSource& statement) const {
    return fmt::format("update @{} {{ {} saddr }}", statement.set, words_of(family).ip);
  }

  std::string operator()(const SetMark& statement) const {
    return fmt::format("meta mark set meta mark | {:#010x}", statement.mask);
  }

  std::string operator()(const FlipMark& statement) const {
    return fmt::format("meta mark set meta mark ^ {:#010x}", statement.mask);
  }

  std::string operator()(const Masquerade& /*statement*/) const { return "masquerade fully-random"; }
};

std::string_view name_of(Hook hook) {
  switch (hook) {
    case Hook::kPrerouting:
      return "prerouting";
    case Hook::kInput:
      return "input";
    case Hook::kForward:
      return "forward";
    case Hook::kOutput:
      return "output";
    case Hook::kPostrouting:
      return "postrouting";
  }
  return "";
}

std::string shape_text(Family family, Shape shape) {
  const std::string_view ip = words_of(family).ip;
  const std::string_view address = words_of(family).address;
  const std::string endpoint = fmt::format("{} daddr . th dport", ip);
  switch (shape) {
    case Shape::kTargetVerdict:
      return fmt::format("typeof {} : verdict", target_text(family, Target::kAddress));
    case Shape::kTargetSlot:
      return fmt::format("typeof {} . numgen random mod 65536 : {}", target_text(family, Target::kAddress), endpoint);
    case Shape::kNodePortVerdict:
      return fmt::format("typeof {} : verdict", target_text(family, Target::kNodePort));
    case Shape::kNodePortSlot:
      return fmt::format("typeof {} . numgen random mod 65536 : {}", target_text(family, Target::kNodePort), endpoint);
    case Shape::kAddress:
      return fmt::format("type {}", address);
    case Shape::kAddressPair:
      return fmt::format("type {} . {}", address, address);
  }
  return "";
}

bool is_map(Shape shape) {
  return shape != Shape::kAddress && shape != Shape::kAddressPair;
}

class ChangeText {
 public:
  explicit ChangeText(const RuleChange& change) : change_(change), table_(table_of(change.family)) {}

  std::string write() {
    if (change_.whole) {
      // Added first, so that the deletion succeeds even if the table does not exist.
      line("add table {}", table_);
      line("delete table {}", table_);
      line("add table {} {{ comment \"rules of spillway proxy\"; }}", table_);
      for (const Container& each : kContainers) {
        line("add {} {} {} {{ {} ; }}", is_map(each.shape) ? "map" : "set", table_, each.name,
             shape_text(change_.family, each.shape));
      }
    }
    for (const auto& [name, seconds] : change_.new_source_sets) {
      line("add set {} {} {{ type {} ; flags dynamic,timeout ; timeout {}s ; }}", table_, name,
           words_of(change_.family).address, seconds);
    }
    write_chains();
    write_elements("delete", change_.removed);
    write_elements("add", change_.added);
    for (const std::string& name : change_.emptied_chains) line("flush chain {} {}", table_, name);
    for (const std::string& name : change_.deleted_source_sets) line("delete set {} {}", table_, name);
    for (const std::string& name : change_.deleted_chains) line("delete chain {} {}", table_, name);
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  /// Declares all chains before any rule, because rules refer to chains.
  void write_chains() {
    for (const auto& [name, chain] : change_.chains) {
      if (chain.place) {
        line("add chain {} {} {{ type {} hook {} priority {} ; }}", table_, name,
             chain.place->translates ? "nat" : "filter", name_of(chain.place->hook), chain.place->priority);
      } else {
        line("add chain {} {}", table_, name);
      }
      if (!change_.whole) line("flush chain {} {}", table_, name);
    }
    for (const auto& [name, chain] : change_.chains) text_ += rules_text(change_.family, name, chain);
  }

  void write_elements(std::string_view verb, const Elements& elements) {
    std::string_view container;
    std::size_t written = 0;
    for (const auto& [key, value] : elements) {
      if (key.container != container || written == kElementsInCommand) {
        if (written > 0) text_ += " }\n";
        container = key.container;
        written = 0;
        fmt::format_to(std::back_inserter(text_), "{} element {} {} {{ ", verb, table_, container);
      }
      if (written > 0) text_ += ", ";
      text_ += key.key;
      if (!value.empty()) fmt::format_to(std::back_inserter(text_), " : {}", value);
      ++written;
    }
    if (written > 0) text_ += " }\n";
  }

  const RuleChange& change_;
  std::string_view table_;
  std::string text_;
};

}  // namespace

std::string_view table_of(Family family) {
  return family == Family::kIPv4 ? "ip spillway-proxy" : "ip6 spillway-proxy";
}

std::string rules_text(Family family, std::string_view name, const Chain& chain) {
  std::string out;
  for (const Rule& rule : chain.rules) {
    fmt::format_to(std::back_inserter(out), "add rule {} {}", table_of(family), name);
    for (const Condition& condition : rule.conditions) {
      fmt::format_to(std::back_inserter(out), " {}", std::visit(ConditionText{family}, condition));
    }
    fmt::format_to(std::back_inserter(out), " {}\n", std::visit(StatementText{family}, rule.statement));
  }
  return out;
}

std::string change_text(const RuleChange& change) {
  return ChangeText(change).write();
}

std::string removal_text(Family family) {
  return fmt::format("add table {}\ndelete table {}\n", table_of(family), table_of(family));
}

}  // namespace spillway::network
