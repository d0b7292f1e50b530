// How far apart two words are: what "did you mean" goes by.
#pragma once

#include <cstddef>
#include <string_view>

namespace spillway {

/// Bytes to insert, remove or replace until `a` is `b` (Levenshtein). Takes |a| times |b| steps: for words, not texts.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace spillway
