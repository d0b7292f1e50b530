#include "sim/hollow/annotations.h"

#include "api/text/duration.h"
#include "api/text/quantity.h"
#include "base/error.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <map>
#include <utility>

namespace spillway::sim {
namespace {

using TakeAnnotation = std::function<Outcome(const std::string& text)>;
/// Parsers of annotations, by the end of the annotation's name.
using Takers = std::map<std::string, TakeAnnotation, std::less<>>;

Result<Bytes> read_amount(std::string_view text, std::string_view example) {
  const auto quantity = api::parse_quantity(text);
  if (!quantity || quantity->sign() < 0)
    return make_error(ErrorCode::kInvalid, "expected an amount like {}, got \"{}\"", example, text);
  return quantity->bytes();
}

template <typename Target>
TakeAnnotation takes_amount(Target& into) {
  return [&into](const std::string& text) -> Outcome {
    SPILLWAY_TRY(amount, read_amount(text, "200Mi"));
    into = amount;
    return {};
  };
}

TakeAnnotation takes_rate(Bytes& into) {
  return [&into](const std::string& text) -> Outcome {
    const std::string_view amount = std::string_view(text).substr(0, text.size() - (text.ends_with("/s") ? 2 : 0));
    SPILLWAY_TRY(rate, read_amount(amount, "5Mi/s"));
    into = rate;
    return {};
  };
}

template <typename Target>
TakeAnnotation takes_duration(Target& into) {
  return [&into](const std::string& text) -> Outcome {
    const auto duration = api::parse_duration(text);
    if (!duration || *duration < Duration::zero())
      return make_error(ErrorCode::kInvalid, "expected a duration like 2s, got \"{}\"", text);
    into = *duration;
    return {};
  };
}

template <typename Target>
TakeAnnotation takes_number(Target& into, std::int32_t most) {
  return [&into, most](const std::string& text) -> Outcome {
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 0 || number > most)
      return make_error(ErrorCode::kInvalid, "expected a number from 0 to {}, got \"{}\"", most, text);
    into = number;
    return {};
  };
}

template <typename Target, typename Value>
TakeAnnotation takes_word(Target& into, std::vector<std::pair<std::string, Value>> words) {
  return [&into, words = std::move(words)](const std::string& text) -> Outcome {
    std::string known;
    for (const auto& [word, value] : words) {
      if (word == text) {
        into = value;
        return {};
      }
      known += known.empty() ? word : ", " + word;
    }
    return make_error(ErrorCode::kInvalid, "expected one of {}, got \"{}\"", known, text);
  };
}

std::vector<std::string> take_all(const api::StringMap& annotations, const Takers& takers) {
  std::vector<std::string> problems;
  for (auto it = annotations.lower_bound(kHollowPrefix);
       it != annotations.end() && it->first.starts_with(kHollowPrefix); ++it) {
    const auto taker = takers.find(it->first.substr(kHollowPrefix.size()));
    const Outcome taken = taker != takers.end()
                              ? taker->second(it->second)
                              : Outcome(make_error(ErrorCode::kInvalid, "there is no such annotation of this kind"));
    if (!taken) problems.push_back(fmt::format("{}: {}", it->first, taken.error().message));
  }
  return problems;
}

}  // namespace

ReadAnnotations<HollowNodeWishes> read_node_annotations(const api::StringMap& annotations) {
  ReadAnnotations<HollowNodeWishes> read;
  HollowNodeWishes& wishes = read.wishes;
  const Takers takers{{"state", takes_word(wishes.state,
                                           std::vector<std::pair<std::string, HollowState>>{
                                               {"silent", HollowState::kSilent}, {"crashed", HollowState::kCrashed}})},
                      {"disk-delay", takes_duration(wishes.disk_delay)},
                      {"link-delay", takes_duration(wishes.link_delay)},
                      {"images", takes_amount(wishes.images)}};
  read.problems = take_all(annotations, takers);
  return read;
}

ReadAnnotations<HollowPodWishes> read_pod_annotations(const api::StringMap& annotations) {
  ReadAnnotations<HollowPodWishes> read;
  HollowPodWishes& wishes = read.wishes;
  const Takers takers{{"memory", takes_amount(wishes.memory)},
                      {"memory-rate", takes_rate(wishes.memory_rate)},
                      {"disk", takes_amount(wishes.disk)},
                      {"disk-rate", takes_rate(wishes.disk_rate)},
                      {"processes", takes_number(wishes.processes, SimHost::kPidsMax)},
                      {"runs-for", takes_duration(wishes.runs_for)},
                      {"exit-code", takes_number(wishes.exit_code, 255)},
                      {"ending", takes_word(wishes.ending, std::vector<std::pair<std::string, SimHost::Ending>>{
                                                               {"prompt", SimHost::Ending::kPrompt},
                                                               {"at-grace", SimHost::Ending::kAtGrace},
                                                               {"never", SimHost::Ending::kNever}})}};
  read.problems = take_all(annotations, takers);
  return read;
}

}  // namespace spillway::sim
