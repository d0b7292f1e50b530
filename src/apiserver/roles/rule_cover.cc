#include "apiserver/roles/rule_cover.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using RuleId = std::uint32_t;                // a place among the rules held
using RuleSet = std::vector<std::uint64_t>;  // a bit for each rule held

constexpr std::size_t kWordSteps = 16;
constexpr std::size_t kSetSteps = 16;
constexpr std::size_t kBitsOfWord = 64;

bool grants_nothing(const RuleSet& set) {
  return std::ranges::all_of(set, [](std::uint64_t bits) { return bits == 0; });
}

void keep_common(RuleSet& set, const RuleSet& other) {
  for (std::size_t i = 0; i < set.size(); ++i) set[i] &= other[i];
}

void add_rule(RuleSet& set, RuleId rule) {
  set[rule / kBitsOfWord] |= std::uint64_t{1} << (rule % kBitsOfWord);
}

/// One list of the rules, such as their verbs: which rules held grant a word.
struct ListIndex {
  struct Word {
    std::vector<RuleId> rules;
    RuleSet set;  // the rules that grant this word, and those that grant every word; empty until its first use
  };

  std::unordered_map<std::string_view, Word> by_word;  // the wanted words
  std::vector<RuleId> of_all;                          // rules that grant every word
};

/// A rule held whose path ends with a star.
struct PathPattern {
  std::string_view prefix;
  RuleId rule = 0;
};

class RuleComparer {
 public:
  RuleComparer(std::span<const PolicyRule* const> held, std::size_t steps_max)
      : held_(held), left_(steps_max), set_size_((held.size() + kBitsOfWord - 1) / kBitsOfWord) {}

  /// False: the steps are used up.
  bool index(std::span<const PolicyRule> wanted) {
    for (const PolicyRule& rule : wanted) {
      if (!spend(kWordSteps * (1 + rule.words()))) return false;
      want(verbs_, rule.verbs);
      want(groups_, rule.api_groups);
      want(resources_, rule.resources);
      want(names_, rule.resource_names);
      want(urls_, rule.non_resource_urls);
    }
    for (RuleId id = 0; id < held_.size(); ++id) {
      const PolicyRule& rule = *held_[id];
      if (!spend(kWordSteps * (1 + rule.words()))) return false;
      hold(verbs_, rule.verbs, id);
      hold(groups_, rule.api_groups, id);
      hold(resources_, rule.resources, id);
      hold_names(rule.resource_names, id);
      hold_urls(rule.non_resource_urls, id);
    }
    return true;
  }

  bool covers(const PolicyRule& wanted) {
    const std::vector<RuleSet> verbs = sets_of(verbs_, wanted.verbs);
    if (!wanted.non_resource_urls.empty() && !is_covered({verbs, sets_of(urls_, wanted.non_resource_urls)}))
      return false;
    if (wanted.api_groups.empty() || wanted.resources.empty()) return true;
    std::vector<RuleSet> names = wanted.resource_names.empty() ? std::vector<RuleSet>(1, set_of(names_.of_all))
                                                               : sets_of(names_, wanted.resource_names);
    return is_covered(
        {verbs, sets_of(groups_, wanted.api_groups), sets_of(resources_, wanted.resources), std::move(names)});
  }

  bool is_used_up() const { return used_up_; }

  std::size_t left() const { return left_; }

 private:
  bool spend(std::size_t steps) {
    used_up_ = used_up_ || steps > left_;
    left_ -= std::min(steps, left_);
    return !used_up_;
  }

  static void want(ListIndex& axis, const std::vector<std::string>& words) {
    for (const std::string& word : words) axis.by_word.try_emplace(word);
  }

  static void hold(ListIndex& axis, const std::vector<std::string>& words, RuleId id) {
    for (const std::string& word : words) {
      if (word == "*") {
        axis.of_all.push_back(id);
      } else if (const auto wanted = axis.by_word.find(word); wanted != axis.by_word.end()) {
        wanted->second.rules.push_back(id);
      }
    }
  }

  /// A star is no name for all: a rule without names is for all of them.
  void hold_names(const std::vector<std::string>& names, RuleId id) {
    if (names.empty()) names_.of_all.push_back(id);
    for (const std::string& name : names) {
      if (const auto wanted = names_.by_word.find(name); wanted != names_.by_word.end())
        wanted->second.rules.push_back(id);
    }
  }

  void hold_urls(const std::vector<std::string>& urls, RuleId id) {
    hold(urls_, urls, id);
    for (const std::string& url : urls) {
      if (url.size() > 1 && url.ends_with('*'))
        patterns_.push_back({std::string_view(url).substr(0, url.size() - 1), id});
    }
  }

  RuleSet set_of(const std::vector<RuleId>& rules) {
    RuleSet set(set_size_);
    spend(kSetSteps + set_size_ + rules.size());
    for (const RuleId rule : rules) add_rule(set, rule);
    return set;
  }

  const RuleSet& set_of_word(ListIndex& index, const std::string& text) {
    ListIndex::Word& word = index.by_word.at(text);
    spend(kWordSteps);
    if (!word.set.empty()) return word.set;
    word.set = set_of(index.of_all);
    spend(word.rules.size());
    for (const RuleId rule : word.rules) add_rule(word.set, rule);
    if (&index != &urls_) return word.set;
    for (const auto& [prefix, rule] : patterns_) {
      if (!spend(1 + prefix.size() / sizeof(std::uint64_t))) break;
      if (text.starts_with(prefix)) add_rule(word.set, rule);
    }
    return word.set;
  }

  /// The different sets of rules that grant these words.
  std::vector<RuleSet> sets_of(ListIndex& index, const std::vector<std::string>& words) {
    std::set<RuleSet> sets;
    for (const std::string& word : words) {
      if (!spend(kSetSteps + set_size_)) break;
      sets.insert(set_of_word(index, word));
    }
    return {sets.begin(), sets.end()};
  }

  /// Each choice of one set of every axis has a rule in common.
  bool is_covered(const std::vector<std::vector<RuleSet>>& axes) {
    RuleSet all(set_size_, ~std::uint64_t{0});
    std::vector<RuleSet> common(axes.size() + 1,
                                all);  // by axis: the rules that grant everything of it and of later ones
    for (std::size_t axis = axes.size(); axis-- > 0;) {
      common[axis] = common[axis + 1];
      for (const RuleSet& set : axes[axis]) {
        if (!spend(kSetSteps + set_size_)) return false;
        keep_common(common[axis], set);
      }
    }
    return is_covered(axes, common, 0, all);
  }

  bool is_covered(const std::vector<std::vector<RuleSet>>& axes, const std::vector<RuleSet>& common, std::size_t axis,
                  const RuleSet& alive) {
    RuleSet whole = alive;
    keep_common(whole, common[axis]);
    if (!spend(kSetSteps + set_size_)) return false;
    if (axis == axes.size() || !grants_nothing(whole)) return !grants_nothing(whole);
    std::set<RuleSet> narrowed;
    for (const RuleSet& set : axes[axis]) {
      if (!spend(kSetSteps + set_size_)) return false;
      RuleSet rest = alive;
      keep_common(rest, set);
      if (grants_nothing(rest)) return false;
      narrowed.insert(std::move(rest));
    }
    return std::ranges::all_of(narrowed, [&](const RuleSet& rest) { return is_covered(axes, common, axis + 1, rest); });
  }

  std::span<const PolicyRule* const> held_;
  std::size_t left_;
  std::size_t set_size_;
  bool used_up_ = false;
  ListIndex verbs_;
  ListIndex groups_;
  ListIndex resources_;
  ListIndex names_;
  ListIndex urls_;
  std::vector<PathPattern> patterns_;
};

}  // namespace

RuleComparison compare_rules(std::span<const PolicyRule* const> held, std::span<const PolicyRule> wanted,
                             std::size_t steps_max) {
  using Answer = RuleComparison::Answer;
  RuleComparer comparer(held, steps_max);
  RuleComparison result;
  if (!comparer.index(wanted)) result.answer = Answer::kTooLarge;
  for (; result.answer == Answer::kCovered && result.lacking < wanted.size(); ++result.lacking) {
    const bool is_covered = comparer.covers(wanted[result.lacking]);
    if (comparer.is_used_up()) {
      result.answer = Answer::kTooLarge;
    } else if (!is_covered) {
      result.answer = Answer::kLacking;
      break;
    }
  }
  result.steps = steps_max - comparer.left();
  return result;
}

bool are_covered(std::span<const PolicyRule> held, std::span<const PolicyRule> wanted) {
  std::vector<const PolicyRule*> places;
  places.reserve(held.size());
  for (const PolicyRule& rule : held) places.push_back(&rule);
  return compare_rules(places, wanted).answer == RuleComparison::Answer::kCovered;
}

}  // namespace spillway::apiserver
