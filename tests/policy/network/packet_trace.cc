#include "policy/network/packet_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace spillway::network {
namespace {

enum class Verdict { kContinue, kReturn, kAccept, kDrop, kReject };

/// The random numbers of one walk; walks use all of them in turn, like the digits of a counter.
class Choices {
 public:
  std::size_t draw(std::size_t below) {
    if (next_ == digits_.size()) digits_.push_back({0, below});
    return digits_[next_++].value;
  }

  /// False: all were made.
  bool advance() {
    next_ = 0;
    while (!digits_.empty() && digits_.back().value + 1 == digits_.back().below) digits_.pop_back();
    if (digits_.empty()) return false;
    ++digits_.back().value;
    return true;
  }

 private:
  struct Digit {
    std::size_t value;
    std::size_t below;
  };

  std::vector<Digit> digits_;
  std::size_t next_ = 0;
};

class Walk {
 public:
  Walk(const RulePart& rules, const TracedPacket& packet, const std::set<api::IpAddress>& here,
       const std::set<std::string>& remembered, Choices& choices)
      : rules_(rules), packet_(packet), here_(here), remembered_(remembered), choices_(choices) {
    for (const auto& [target, elements] : rules.targets) elements_.insert(elements.begin(), elements.end());
  }

  TraceEnd run() {
    const bool from_here = here_.contains(packet_.source);
    std::optional<TraceEnd> end = pass(from_here ? Hook::kOutput : Hook::kPrerouting);
    const bool to_here = here_.contains(packet_.destination);
    if (!end && to_here) end = pass(Hook::kInput);
    if (!end && !to_here && !from_here) end = pass(Hook::kForward);
    if (!end) end = pass(Hook::kPostrouting);
    if (end) return *end;
    if (!translated_) return {};
    const std::string ip = text_of(packet_.destination);
    return {TraceEnd::Kind::kEndpoint,
            packet_.destination.v4 ? fmt::format("{}:{}", ip, packet_.port) : fmt::format("[{}]:{}", ip, packet_.port),
            masqueraded_};
  }

 private:
  std::optional<TraceEnd> pass(Hook hook) {
    std::vector<const Chain*> chains;
    for (const auto& [name, chain] : rules_.chains) {
      if (chain.place && chain.place->hook == hook) chains.push_back(&chain);
    }
    std::ranges::stable_sort(chains, {}, [](const Chain* chain) { return chain->place->priority; });
    for (const Chain* chain : chains) {
      const Verdict verdict = walk(*chain);
      if (verdict == Verdict::kDrop) return TraceEnd{TraceEnd::Kind::kDrop, {}, false};
      if (verdict == Verdict::kReject) return TraceEnd{TraceEnd::Kind::kReject, {}, false};
    }
    return std::nullopt;
  }

  Verdict walk(const Chain& chain) {
    for (const Rule& rule : chain.rules) {
      const bool meant = std::ranges::all_of(
          rule.conditions, [this](const Condition& condition) { return std::visit(*this, condition); });
      if (!meant) continue;
      const Verdict verdict = std::visit(*this, rule.statement);
      if (verdict == Verdict::kReturn) return Verdict::kContinue;
      if (verdict != Verdict::kContinue) return verdict;
    }
    return Verdict::kContinue;
  }

  Verdict enter(const std::string& name) {
    const auto chain = rules_.chains.find(name);
    if (chain == rules_.chains.end()) throw std::runtime_error("no chain " + name);
    return walk(chain->second);
  }

  /// Follows a jump or a goto; rules behind a goto in the same chain are not evaluated.
  Verdict follow(const std::string& name) {
    const Verdict verdict = enter(name);
    return verdict == Verdict::kContinue ? Verdict::kReturn : verdict;
  }

  std::string target_key(Target target) const {
    return target == Target::kAddress
               ? fmt::format("{} . {} . {}", text_of(packet_.destination), packet_.protocol, packet_.port)
               : fmt::format("{} . {}", packet_.protocol, packet_.port);
  }

  const std::string* find(std::string_view container, const std::string& key) const {
    for (const Container& each : kContainers) {
      if (each.name != container) continue;
      const auto found = elements_.find({each.name, key});
      return found == elements_.end() ? nullptr : &found->second;
    }
    throw std::runtime_error("no container " + std::string(container));
  }

  Verdict translate(const api::IpAddress& ip, std::int32_t port) {
    packet_.destination = ip;
    packet_.port = port;
    translated_ = true;
    return Verdict::kAccept;
  }

 public:
  bool operator()(const IsNew& /*condition*/) const { return true; }

  bool operator()(const SourceIn& condition) const {
    return any_contains(condition.ranges, packet_.source) != condition.negated;
  }

  bool operator()(const DestinationIn& condition) const {
    return any_contains(condition.ranges, packet_.destination) != condition.negated;
  }

  bool operator()(const InterfaceIs& condition) const {
    const bool is =
        condition.is_prefix ? packet_.interface.starts_with(condition.name) : packet_.interface == condition.name;
    return is != condition.negated;
  }

  bool operator()(const SourceIsHere& /*condition*/) const { return here_.contains(packet_.source); }

  bool operator()(const DestinationIsHere& /*condition*/) const { return here_.contains(packet_.destination); }

  bool operator()(const DestinationInSet& condition) const {
    return find(condition.set, text_of(packet_.destination)) != nullptr;
  }

  bool operator()(const SourceInSet& condition) const {
    if (!rules_.source_sets.contains(condition.set)) throw std::runtime_error("no set " + condition.set);
    return remembered_.contains(condition.set);
  }

  bool operator()(const TranslatedPairInSet& condition) const {
    return translated_ &&
           find(condition.set, text_of(packet_.source) + " . " + text_of(packet_.destination)) != nullptr;
  }

  bool operator()(const MarkIsClear& condition) const { return (mark_ & condition.mask) == 0; }

  Verdict operator()(const Drop& /*statement*/) { return Verdict::kDrop; }

  Verdict operator()(const Reject& /*statement*/) { return Verdict::kReject; }

  Verdict operator()(const Return& /*statement*/) { return Verdict::kReturn; }

  Verdict operator()(const Jump& statement) { return enter(statement.chain); }

  Verdict operator()(const Goto& statement) { return follow(statement.chain); }

  Verdict operator()(const Follow& statement) {
    const std::string* verdict = find(statement.map, target_key(statement.target));
    if (verdict == nullptr) return Verdict::kContinue;
    if (*verdict == "drop") return Verdict::kDrop;
    constexpr std::string_view kGoto = "goto ";
    if (!verdict->starts_with(kGoto)) throw std::runtime_error("no verdict: " + *verdict);
    return follow(verdict->substr(kGoto.size()));
  }

  Verdict operator()(const Spread& statement) {
    const std::size_t slot = statement.first_slot + choices_.draw(statement.slots);
    const std::string* to = find(statement.map, slot_key(target_key(statement.target), slot));
    if (to == nullptr) throw std::runtime_error("an empty slot of " + target_key(statement.target));
    constexpr std::string_view kBetween = " . ";
    const std::size_t end = to->find(kBetween);
    return translate(*api::parse_ip(to->substr(0, end)), std::stoi(to->substr(end + kBetween.size())));
  }

  Verdict operator()(const GotoAny& statement) {
    return follow(statement.chains[choices_.draw(statement.chains.size())]);
  }

  Verdict operator()(const Translate& statement) { return translate(statement.ip, statement.port); }

  Verdict operator()(const RememberSource& statement) {
    if (!rules_.source_sets.contains(statement.set)) throw std::runtime_error("no set " + statement.set);
    return Verdict::kContinue;
  }

  Verdict operator()(const SetMark& statement) {
    mark_ |= statement.mask;
    return Verdict::kContinue;
  }

  Verdict operator()(const FlipMark& statement) {
    mark_ ^= statement.mask;
    return Verdict::kContinue;
  }

  Verdict operator()(const Masquerade& /*statement*/) {
    masqueraded_ = true;
    return Verdict::kAccept;
  }

 private:
  const RulePart& rules_;
  TracedPacket packet_;
  const std::set<api::IpAddress>& here_;
  const std::set<std::string>& remembered_;
  Choices& choices_;
  Elements elements_;
  std::uint32_t mark_ = 0;
  bool translated_ = false;
  bool masqueraded_ = false;
};

}  // namespace

std::set<TraceEnd> trace(const RulePart& rules, const TracedPacket& packet, const std::set<api::IpAddress>& here,
                         const std::set<std::string>& remembered) {
  std::set<TraceEnd> ends;
  Choices choices;
  do {
    ends.insert(Walk(rules, packet, here, remembered, choices).run());
  } while (choices.advance());
  return ends;
}

}  // namespace spillway::network
