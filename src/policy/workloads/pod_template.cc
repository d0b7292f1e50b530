#include "policy/workloads/pod_template.h"

#include "api/text/quantity.h"
#include "base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

namespace spillway::api {
extern const std::string_view kPodTemplateLayoutText;
}  // namespace spillway::api

namespace spillway::workloads {

namespace {

using api::Json;

/// kByMeaning: different spellings of a value give the same text.
enum class Printed { kAsWritten, kByMeaning };

enum class Kind { kString, kInteger, kBool, kTime, kQuantity, kIntOrString, kBytes, kStruct };
enum class Many { kOne, kPointer, kList, kMap };

struct GoStruct;

struct GoField {
  std::string name;
  std::string member;  // name in the JSON object; empty: the fields are in the parent's
  std::string type;
  Many many = Many::kOne;
  Kind kind = Kind::kString;
  const GoStruct* of = nullptr;
  bool only_if_set = false;  // field newer than 1.32: left out where absent, so that names given before stay valid
};

struct GoStruct {
  std::vector<GoField> fields;
};

using Layout = std::map<std::string, GoStruct, std::less<>>;

Kind kind_named(std::string_view name) {
  if (name == "string") return Kind::kString;
  if (name == "int32" || name == "int64") return Kind::kInteger;
  if (name == "bool") return Kind::kBool;
  if (name == "meta/v1.Time") return Kind::kTime;
  if (name == "resource.Quantity") return Kind::kQuantity;
  if (name == "intstr.IntOrString") return Kind::kIntOrString;
  return name == "uint8" ? Kind::kBytes : Kind::kStruct;
}

Many many_of(std::string_view type) {
  if (type.starts_with("*")) return Many::kPointer;
  if (type.starts_with("[]")) return Many::kList;
  return type.starts_with("map[") || type == "v1.ResourceList" ? Many::kMap : Many::kOne;
}

Layout read_layout() {
  const Result<Json> document = api::parse_json(api::kPodTemplateLayoutText);
  SPILLWAY_CHECK(document && document->is_object());
  Layout layout;
  for (const auto& [name, fields] : *document->if_object()) layout[name];
  for (const auto& [name, fields] : *document->if_object()) {
    for (const Json& each : *fields.if_array()) {
      const Json::Array& words = *each.if_array();
      const std::string& type = *words[2].if_string();
      const std::string& of = *words[3].if_string();
      GoField& field =
          layout[name].fields.emplace_back(GoField{*words[0].if_string(), *words[1].if_string(), type, many_of(type),
                                                   kind_named(of), nullptr, words.size() > 4});
      if (field.kind != Kind::kStruct) continue;
      const auto found = layout.find(of);
      SPILLWAY_CHECK(found != layout.end());
      field.of = &found->second;
    }
  }
  return layout;
}

const GoStruct& pod_template_layout() {
  static const Layout layout = read_layout();
  return layout.at("core/v1.PodTemplateSpec");
}

/// A quantity as its parser keeps it: a number, a power of ten, and the spelling where it counts as canonical.
std::string quantity_text(const Json& written) {
  std::string spelling(written.string_at({}));
  if (const auto number = written.if_int64()) spelling = std::to_string(*number);
  std::string_view rest = spelling;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::size_t suffix_at = std::min(rest.find_first_not_of("0123456789."), rest.size());
  const std::string_view suffix = rest.substr(suffix_at);
  std::string digits(rest.substr(0, suffix_at));
  std::int64_t scale = 0;
  if (const std::size_t dot = digits.find('.'); dot != std::string::npos) {
    while (digits.size() > dot && (digits.back() == '0' || digits.back() == '.')) {
      const bool ends = digits.back() == '.';
      digits.pop_back();
      if (ends) break;
    }
    if (digits.size() > dot) scale = -static_cast<std::int64_t>(digits.size() - dot - 1);
    if (digits.size() > dot) digits.erase(dot, 1);
  }
  const bool odd_digits = digits.ends_with("000") || (digits.starts_with('0') && digits.size() > 0);
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  std::string_view format = "DecimalSI";
  std::string kept;
  constexpr std::string_view kBinary = "KMGTPE";
  constexpr std::string_view kDecimal = "num?kMGTPE";
  if (suffix.size() == 2 && suffix[1] == 'i') {
    format = "BinarySI";
    if ((value & 7) != 0) kept = spelling;
    const auto power = kBinary.find(suffix[0]) + 1;
    value <<= 10 * power;
    for (; scale < 0; ++scale) value /= 10;
  } else {
    if (suffix.size() == 1) scale += 3 * (static_cast<std::int64_t>(kDecimal.find(suffix[0])) - 3);
    if (suffix.size() > 1) {
      format = "DecimalExponent";
      std::int64_t exponent = 0;
      const std::string_view power = suffix.substr(suffix[1] == '+' ? 2 : 1);
      std::from_chars(power.data(), power.data() + power.size(), exponent);
      scale += exponent;
    }
    if (scale % 3 == 0 && !odd_digits) kept = spelling;
  }
  if (value == 0) {
    scale = 0;
    kept = "0";
  }
  return fmt::format(
      "{{i:(resource.int64Amount){{value:(int64){} scale:(resource.Scale){}}} "
      "d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){} Format:(resource.Format){}}}",
      negative ? -value : value, scale, kept, format);
}

std::string quantity_by_value(const Json& written) {
  const auto parsed = api::parse_quantity_token(api::to_text(written));
  if (!parsed) return api::to_text(written);
  return (api::Quantity::of_units(1) + *parsed).canonical();
}

class Printer {
 public:
  explicit Printer(Printed printed) : by_meaning_(printed == Printed::kByMeaning) {}

  std::string text(const Json& pod_template) {
    out_ = "(v1.PodTemplateSpec)";
    print_struct(pod_template_layout(), pod_template);
    return std::move(out_);
  }

 private:
  void print_struct(const GoStruct& layout, const Json& object) {
    out_ += '{';
    bool first = true;
    for (const GoField& field : layout.fields) {
      if (field.only_if_set && is_absent(object, field.member)) continue;
      if (!std::exchange(first, false)) out_ += ' ';
      out_ += field.name;
      out_ += ":(";
      out_ += field.type;
      out_ += ')';
      print_field(field, object);
    }
    out_ += '}';
  }

  static bool is_absent(const Json& object, std::string_view member) {
    const Json* found = object.find(member);
    return found == nullptr || found->is_null();
  }

  void print_field(const GoField& field, const Json& object) {
    static const Json kNothing;
    const Json* found = field.member.empty() ? &object : object.find(field.member);
    const Json& value = found != nullptr ? *found : kNothing;
    if (field.many == Many::kOne) return print_one(field, value);
    if (value.is_null() || field.kind == Kind::kBytes || (by_meaning_ && is_empty(field, value))) {
      out_ += "<nil>";
    } else if (field.many == Many::kList && value.is_array()) {
      print_list(field, *value.if_array());
    } else if (field.many == Many::kMap && value.is_object()) {
      print_map(field, *value.if_object());
    } else {
      print_one(field, value);
    }
  }

  static bool is_empty(const GoField& field, const Json& value) {
    if (field.many == Many::kList) return value.is_array() && value.if_array()->empty();
    return field.many == Many::kMap && value.is_object() && value.if_object()->empty();
  }

  void print_list(const GoField& field, const Json::Array& values) {
    out_ += '[';
    bool first = true;
    for (const Json& value : values) {
      if (!std::exchange(first, false)) out_ += ' ';
      print_one(field, value);
    }
    out_ += ']';
  }

  void print_map(const GoField& field, const Json::Object& members) {
    out_ += "map[";
    bool first = true;
    for (const auto& [key, value] : members) {
      if (!std::exchange(first, false)) out_ += ' ';
      out_ += key;
      out_ += ':';
      print_one(field, value);
    }
    out_ += ']';
  }

  void print_one(const GoField& field, const Json& value) {
    switch (field.kind) {
      case Kind::kStruct:
        return print_struct(*field.of, value);
      case Kind::kTime:
        out_ += "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}";
        return;
      case Kind::kQuantity:
        out_ += by_meaning_ ? quantity_by_value(value) : quantity_text(value);
        return;
      case Kind::kIntOrString:
        return print_int_or_string(value);
      case Kind::kInteger:
        out_ += std::to_string(value.if_int64().value_or(0));
        return;
      case Kind::kBool:
        out_ += value.if_bool().value_or(false) ? "true" : "false";
        return;
      case Kind::kString:
      case Kind::kBytes:
        out_ += value.string_at({});
        return;
    }
  }

  void print_int_or_string(const Json& value) {
    out_ += fmt::format("{{Type:(intstr.Type){} IntVal:(int32){} StrVal:(string){}}}", value.is_string() ? 1 : 0,
                        value.if_int64().value_or(0), value.string_at({}));
  }

  bool by_meaning_;
  std::string out_;
};

Json without_hash(Json pod_template) {
  if (Json* labels = pod_template.at({"metadata", "labels"}); labels != nullptr && labels->is_object()) {
    labels->if_object()->erase(kPodTemplateHash);
  }
  return pod_template;
}

}  // namespace

std::string template_text(const Json& pod_template) {
  return Printer(Printed::kAsWritten).text(pod_template);
}

std::string safe_encode(std::string_view number) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (const char c : number) out += kLetters[static_cast<unsigned char>(c) % kLetters.size()];
  return out;
}

std::string template_hash(const Json& pod_template, std::optional<std::int32_t> collision_count) {
  std::uint32_t hash = 2166136261U;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 16777619U; };
  for (const char c : template_text(pod_template)) add(static_cast<unsigned char>(c));
  if (collision_count) {
    for (int i = 0; i < 8; ++i) {
      add(i < 4 ? static_cast<unsigned char>(static_cast<std::uint32_t>(*collision_count) >> (8 * i)) : 0);
    }
  }
  return safe_encode(std::to_string(hash));
}

TemplateMatch::TemplateMatch(const Json& wanted)
    : wanted_(without_hash(wanted)), meaning_(Printer(Printed::kByMeaning).text(wanted_)) {}

bool TemplateMatch::operator()(const Json& other) const {
  const Json without = without_hash(other);
  return without == wanted_ || Printer(Printed::kByMeaning).text(without) == meaning_;
}

bool same_template(const Json& a, const Json& b) {
  return TemplateMatch(a)(b);
}

Json template_document(const api::PodTemplate& pod_template) {
  return Json::object({{"metadata", pod_template.metadata}, {"spec", pod_template.spec}});
}

}  // namespace spillway::workloads
