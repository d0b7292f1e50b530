// An outlook as a person reads it: the answer in one line, then the evidence. Sentences are templates over the facts of
// a remark, one per code, in outlook_sentence.cc. Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "cli/text/explanation.h"
#include "policy/outlook/outlook.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::cli {

/// "2 pods run" of the template "{running:pod runs|pods run}": {name} is the value of a fact, {name:one|many} its
/// number and the words that fit it. A part in [] is left out if it names a fact that is not there. Empty: a fact
/// outside of [] is not there.
std::string fill_in(std::string_view sentence, const std::vector<policy::Fact>& facts);

/// The remark as a sentence; the words of the code and its facts if it lacks the facts of its sentence.
std::string sentence_of(const outlook::Remark& remark);

/// "job shop/import: 2 pods run".
std::string headline(const outlook::Outlook& outlook);

/// The headline and all that belongs to it; ends in a newline. `width`: columns of the screen; 0: any number.
std::string explain(const outlook::Outlook& outlook, Paint paint, std::size_t width = 0);

/// The document of `-o json`.
api::Json explanation_json(const outlook::Outlook& outlook);

}  // namespace spillway::cli
