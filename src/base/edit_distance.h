// The distance between two words, and the word that a misspelt one was probably meant to be. Thread: any (plain
// values). Source: V. Levenshtein, "Binary codes capable of correcting deletions, insertions and reversals" (1966).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway {

/// The number of bytes to insert, remove or replace until `a` is `b`. Takes |a| times |b| steps: for words, not texts.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of the words that are offered to it, if that differs in at most a third of the bytes of the misspelt
/// word and one; of two that are equally near the first. The number of words offered is the caller's to bound.
class NearestWord {
 public:
  explicit NearestWord(std::string_view word) : word_(word), limit_(word.size() / 3 + 2) {}

  void offer(std::string_view candidate) { offer(candidate, candidate); }

  /// `name`: the text to suggest for the candidate.
  void offer(std::string_view candidate, std::string_view name);

  /// The name of the nearest; empty: none is near.
  const std::string& found() const { return found_; }

  /// " (did you mean NAME?)"; empty: none is near.
  std::string suggestion() const;

 private:
  std::string_view word_;
  std::size_t limit_;  // a candidate must be closer than this
  std::string found_;
};

/// The nearest of `known`, a range of texts.
template <typename Range>
NearestWord nearest_word(std::string_view word, const Range& known) {
  NearestWord nearest(word);
  for (const auto& each : known) nearest.offer(each);
  return nearest;
}

}  // namespace spillway
