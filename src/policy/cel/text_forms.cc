#include "policy/cel/text_forms.h"

#include "api/text/time_text.h"
#include "policy/cel/pattern.h"

#include <algorithm>
#include <string>

namespace spillway::cel {

bool is_uuid(std::string_view text) {
  static const Pattern kUuid =
      Pattern::compile("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").value();
  return kUuid.matches(text);
}

bool is_base64(std::string_view text) {
  static const Pattern kBase64 =
      Pattern::compile("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$").value();
  return kBase64.matches(text);
}

bool is_date(std::string_view text) {
  static const Pattern kDate = Pattern::compile("^[0-9]{4}-[0-9]{2}-[0-9]{2}$").value();
  return kDate.matches(text) && api::parse_time(std::string(text) + "T00:00:00Z").has_value();
}

bool is_date_time(std::string_view text) {
  std::string upper(text);
  std::ranges::replace(upper, 't', 'T');
  std::ranges::replace(upper, 'z', 'Z');
  return api::parse_time(upper).has_value();
}

}  // namespace spillway::cel
