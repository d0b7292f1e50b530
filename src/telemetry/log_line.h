// One log line as text. The time is the sink's business.
// Thread: any. Invariant: the result is one line, whatever the fields hold. Source: style guide, "What operators see".
#pragma once

#include "telemetry/log.h"

#include <span>
#include <string>
#include <string_view>

namespace spillway::telemetry {

std::string_view level_name(Level level);

/// level=info msg="evicting pod" node=n3; a value is quoted when it is empty or holds a blank, '=', '"', '\' or a
/// control character.
std::string render_logfmt(Level level, std::string_view event, std::span<const Field> fields);

/// "level":"info","msg":"evicting pod","node":"n3": the members of one JSON object, without its braces.
std::string render_json_members(Level level, std::string_view event, std::span<const Field> fields);

/// "spillway: warning: nothing is recorded (directory /var/lib/spillway): disk full": one line for a person. The fields
/// with the cause (error, cause, why, warning, problem) follow a colon, the others are in brackets.
std::string render_sentence(Level level, std::string_view event, std::span<const Field> fields);

}  // namespace spillway::telemetry
