// The packet rules of one address family as values: containers looked up by the kernel, and chains of rules. A shell
// loads (nft_text.h) the same values that tests walk. Thread: any (values).
//
// The cost of a packet does not grow with the number of Services: the address, protocol and port of its destination are
// looked up in hashed containers. A chain that spreads connections over N endpoints is shared by all ports that have N:
// it draws a slot below N, and looks up address, protocol, port and slot. So a change of endpoints changes elements
// only. Ports with affinity of clients have chains of their own. Source: nft(8).
#pragma once

#include "policy/network/addresses.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::network {

// Conditions.

/// The first packet of a connection.
struct IsNew {
  friend bool operator==(const IsNew&, const IsNew&) = default;
};

struct SourceIn {
  std::vector<api::IpRange> ranges;
  bool negated = false;
};

struct DestinationIn {
  std::vector<api::IpRange> ranges;
  bool negated = false;
};

/// The name of the interface on which the packet arrived.
struct InterfaceIs {
  std::string name;
  bool is_prefix = false;  // true: matches all interfaces whose name begins with `name`
  bool negated = false;
};

/// True if the source is an address of this machine.
struct SourceIsHere {};

struct DestinationIsHere {};

struct DestinationInSet {
  std::string set;
};

struct SourceInSet {
  std::string set;
};

/// Source and destination are a pair of the set, after the destination was translated.
struct TranslatedPairInSet {
  std::string set;
};

struct MarkIsClear {
  std::uint32_t mask = 0;
};

using Condition = std::variant<IsNew, SourceIn, DestinationIn, InterfaceIs, SourceIsHere, DestinationIsHere,
                               DestinationInSet, SourceInSet, TranslatedPairInSet, MarkIsClear>;

// Statements.

enum class Target : std::uint8_t {
  kAddress,   // key: destination . protocol . port
  kNodePort,  // key: protocol . port
};

struct Drop {};

struct Reject {};

struct Return {};

struct Jump {
  std::string chain;
};

struct Goto {
  std::string chain;
};

/// Follows the verdict of the container for the packet's target, if it has one.
struct Follow {
  Target target = Target::kAddress;
  std::string map;
};

/// Translates the destination to the endpoint in a random slot of [first_slot, first_slot + slots) of the target.
struct Spread {
  Target target = Target::kAddress;
  std::uint32_t slots = 1;
  std::uint32_t first_slot = 0;
  std::string map;
};

/// Continues in one of the chains, drawn at random.
struct GotoAny {
  std::vector<std::string> chains;
};

struct Translate {
  api::IpAddress ip;
  std::int32_t port = 0;
};

/// Adds the source to the set, or begins its time again.
struct RememberSource {
  std::string set;
};

struct SetMark {
  std::uint32_t mask = 0;
};

struct FlipMark {
  std::uint32_t mask = 0;
};

struct Masquerade {};

using Statement = std::variant<Drop, Reject, Return, Jump, Goto, Follow, Spread, GotoAny, Translate, RememberSource,
                               SetMark, FlipMark, Masquerade>;

struct Rule {
  std::vector<Condition> conditions;
  Statement statement;
};

enum class Hook : std::uint8_t { kPrerouting, kInput, kForward, kOutput, kPostrouting };

struct Place {
  Hook hook = Hook::kPrerouting;
  bool translates = false;  // true: chain type nat; else filter
  int priority = 0;
};

struct Chain {
  std::optional<Place> place;  // nullopt: reached by jumps only
  std::vector<Rule> rules;
};

// Maps and sets that always exist.
inline constexpr std::string_view kServices = "services";     // target → chain
inline constexpr std::string_view kFromPods = "from-pods";    // target → chain, for packets of pods
inline constexpr std::string_view kFromNode = "from-node";    // target → chain, for packets of this machine
inline constexpr std::string_view kEndpoints = "endpoints";   // target . slot → endpoint
inline constexpr std::string_view kNodePorts = "node-ports";  // the same four of node ports
inline constexpr std::string_view kNodePortsFromPods = "node-ports-from-pods";
inline constexpr std::string_view kNodePortsFromNode = "node-ports-from-node";
inline constexpr std::string_view kNodePortEndpoints = "node-port-endpoints";
inline constexpr std::string_view kNoEndpoints = "no-endpoints";  // target → drop, or chain that rejects
inline constexpr std::string_view kNodePortsNoEndpoints = "node-ports-no-endpoints";
inline constexpr std::string_view kFirewall = "firewall";          // target → chain that checks the source
inline constexpr std::string_view kClusterIps = "cluster-ips";     // addresses
inline constexpr std::string_view kNodePortIps = "node-port-ips";  // addresses
inline constexpr std::string_view kHairpin = "hairpin";            // pairs: an endpoint that reaches itself
inline constexpr std::string_view kRejectChain = "reject-it";

enum class Shape : std::uint8_t {
  kTargetVerdict,
  kTargetSlot,
  kNodePortVerdict,
  kNodePortSlot,
  kAddress,
  kAddressPair,
};

struct Container {
  std::string_view name;
  Shape shape;
};

/// All of the above, in the order in which they are made.
inline constexpr std::array kContainers = {
    Container{kServices, Shape::kTargetVerdict},
    Container{kFromPods, Shape::kTargetVerdict},
    Container{kFromNode, Shape::kTargetVerdict},
    Container{kEndpoints, Shape::kTargetSlot},
    Container{kNodePorts, Shape::kNodePortVerdict},
    Container{kNodePortsFromPods, Shape::kNodePortVerdict},
    Container{kNodePortsFromNode, Shape::kNodePortVerdict},
    Container{kNodePortEndpoints, Shape::kNodePortSlot},
    Container{kNoEndpoints, Shape::kTargetVerdict},
    Container{kNodePortsNoEndpoints, Shape::kNodePortVerdict},
    Container{kFirewall, Shape::kTargetVerdict},
    Container{kClusterIps, Shape::kAddress},
    Container{kNodePortIps, Shape::kAddress},
    Container{kHairpin, Shape::kAddressPair},
};

/// An element's container and key, in nft's spelling: {"services", "10.96.0.1 . tcp . 443"}.
struct ElementKey {
  std::string_view container;  // name of one of kContainers
  std::string key;

  friend auto operator<=>(const ElementKey&, const ElementKey&) = default;
};

/// "goto cluster-3", "drop", "10.0.0.1 . 8080"; empty: of a set.
using ElementValue = std::string;

using Elements = std::map<ElementKey, ElementValue>;

/// A part of the rules, of one owner: the frame that is always there, or one Service. A chain that several parts have
/// has the same rules in all of them.
struct RulePart {
  std::map<std::string, Chain> chains;
  std::map<std::string, std::int32_t> source_sets;  // remembered clients: name → seconds
  /// Elements by their destination, which only one owner has: "10.96.0.1 . tcp . 443", "tcp . 30080"; elements that
  /// parts share have a text of their own.
  std::map<std::string, Elements> targets;
};

/// The lists of endpoints of a port: all that serve, and those on this node.
enum class List : std::uint8_t { kCluster, kLocal };

/// The most endpoints of a list that get connections: the first ones.
inline constexpr std::size_t kSpreadMax = 4096;

/// Slots of the local list begin here.
inline constexpr std::uint32_t kFirstLocalSlot = 65536;

/// The chain that spreads connections over a list of this size: "cluster-3", "node-port-local-2".
std::string spread_chain(Target target, List list, std::size_t size);

/// Keys in nft's spelling.
std::string address_key(const api::IpAddress& ip, std::string_view protocol, std::int32_t port);
std::string node_port_key(std::string_view protocol, std::int32_t port);
std::string slot_key(std::string_view target_key, std::size_t slot);
std::string pair_key(const api::IpAddress& ip);

/// The target of an element that several parts share.
std::string shared_target(std::string_view container, std::string_view key);

}  // namespace spillway::network
