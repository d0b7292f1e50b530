// The values that a flag takes: checked when it is parsed, shown in its help and offered by completion, in the same
// words.
// Thread: main.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace spillway::cli {

// The description of each is the form of the flag's value: "a|b", "0..64", "NUMBER". Its error names the expected form
// and the given value.

/// Accepts only these words.
CLI::Validator one_of(std::vector<std::string> words);

/// Accepts the words of an enumeration, for transform(): each becomes the number beside it.
CLI::Validator choice_of(std::vector<std::pair<std::string, int>> words);

/// Accepts a number between both, inclusive.
CLI::Validator between(std::int64_t least, std::int64_t most);
CLI::Validator between_shares(double least, double most);

/// The name of a file: any text but none.
CLI::Validator file_name();

CLI::Validator above_zero();
CLI::Validator not_negative();

/// The flag's values, as help and completion show them: "FILE", "DIR", "a|b", "0..64", "DURATION", "TEXT". Empty:
/// it takes no value.
std::string value_words(const CLI::Option& option);

}  // namespace spillway::cli
