// A decision as text: the answer in one line, then its reasons. Uses the form of policy::Decision and nothing of the
// modules that make them: thresholds are reasons with a signal, rankings are candidates, other facts are printed
// unchanged. Words for reasons are in reason_sentence.cc.
// Thread: any (pure).
#pragma once

#include "api/object/meta.h"
#include "policy/reason.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::cli {

enum class Paint { kNone, kTerminal };

/// kWide: with the columns that a table leaves out otherwise.
enum class Width { kUsual, kWide };

/// "evicted" of "evict".
std::string action_done(std::string_view action);

/// True if the decision was not executed, because this agent only watches.
bool is_shadow(const policy::Decision& decision);

/// The reasons in short, without subject and time; the message if no reason may be the cause; may be empty.
std::string cause_of(const policy::Decision& decision);

/// The first line. With a pod that the decision is not about, what it means for that pod.
std::string headline(const policy::Decision& decision, const std::optional<api::PodKey>& pod);

/// The headline and all that belongs to it; ends in a newline. The row of `pod` is marked. `width`: columns of the
/// screen; 0: any number.
std::string explain(const policy::Decision& decision, const std::optional<api::PodKey>& pod, Paint paint,
                    std::size_t width = 0);

/// "2026-11-21T05:10:11 pod shop/hog was evicted by n1: ...": one line of a list.
std::string summary_line(const policy::Decision& decision);

}  // namespace spillway::cli
