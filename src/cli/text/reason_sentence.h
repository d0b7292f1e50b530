// One reason in words, and its role in an explanation: one row per ReasonCode, in reason_sentence.cc. Thread: any
// (pure).
#pragma once

#include "policy/reason.h"

#include <string>
#include <vector>

namespace spillway::cli {

enum class ReasonRole {
  kCause,     // may be the cause in the headline, and is a remark otherwise
  kRemark,    // completes the picture; never the cause
  kTableRow,  // shown in a table; neither the cause nor a remark
};

ReasonRole role_of(policy::ReasonCode code);

/// "zone halted": the words of the code.
std::string words_of(policy::ReasonCode code);

/// The facts in order: "available 90Mi, threshold 100Mi". Conditions keep their names: "MemoryPressure False".
std::string facts_text(const std::vector<policy::Fact>& facts);

/// "memory.available was 90Mi, below its threshold of 100Mi"; the words of the code and its facts if it has no sentence
/// of its own, or not the facts for it.
std::string sentence_of(const policy::Reason& reason);

}  // namespace spillway::cli
