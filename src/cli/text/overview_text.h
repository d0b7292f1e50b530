// The overview of a cluster as a person reads it: one sentence for each object that needs a look, and the command that
// explains it. Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "cli/text/explanation.h"
#include "policy/outlook/overview.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::cli {

/// "node n2: it reports MemoryPressure: it may evict pods, and takes no new ones without a toleration".
std::string sentence_of(const outlook::Concern& concern);

/// "spillway explain pod/hog -n shop"; `name_space`: the one that needs no flag. Empty: no command explains it.
std::string command_for(const policy::Subject& subject, std::string_view name_space);

/// A summary in one line, then the concerns; ends in a newline. `width`: columns of the screen; 0: any number.
std::string overview_text(const outlook::Overview& overview, std::string_view name_space, Paint paint,
                          std::size_t width);

/// The document of `-o json`.
api::Json overview_json(const outlook::Overview& overview, std::string_view name_space);

}  // namespace spillway::cli
