#include "policy/admission/option_text.h"

namespace spillway::admission {

Result<bool> parse_option(std::string_view name, std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return invalid({}, "bad value for option \"{}\": strconv.ParseBool: parsing \"{}\": invalid syntax", name, text);
}

}  // namespace spillway::admission
