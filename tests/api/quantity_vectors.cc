// Golden vectors of quantities: parsing, printing, arithmetic.
#include "api/text/quantity.h"
#include "support/vectors.h"

#include <algorithm>
#include <utility>

namespace spillway::api {
namespace {

using support::Mismatch;
using Format = Quantity::Format;

constexpr std::pair<Format, std::string_view> kFormats[] = {
    {Format::kDecimalSI, "DecimalSI"}, {Format::kBinarySI, "BinarySI"}, {Format::kDecimalExponent, "DecimalExponent"}};

Format parse_format(std::string_view text) {
  return std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& f) { return f.second == text; })->first;
}

Json format_text(Format format) {
  return std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& f) { return f.first == format; })
      ->second;
}

Quantity quantity(std::string_view text) {
  const auto parsed = parse_quantity(text);
  return parsed ? *parsed : Quantity::of_units(-999);
}

std::string_view text_at(const Json& in, std::string_view key) {
  return in.string_at({key});
}

int integer_at(const Json& in, std::string_view key) {
  return static_cast<int>(in.find(key)->if_int64().value_or(0));
}

bool has_tag(const Json& row, std::string_view tag) {
  const Json* tags = row.find("tags");
  if (tags == nullptr) return false;
  return std::find(tags->if_array()->begin(), tags->if_array()->end(), Json(tag)) != tags->if_array()->end();
}

Json description(const Quantity& q) {
  return Json::object({{"format", format_text(q.format())},
                       {"canonical", q.canonical()},
                       {"string", q.to_string()},
                       {"value", q.value()},
                       {"milli", q.milli_value()},
                       {"sign", q.sign()},
                       {"is_zero", q.is_zero()}});
}

/// Leaves out fields that show only the internal form that upstream used (null has no format there), and values that
/// are not the mathematical ones.
Json comparable(const Json& row, Json document) {
  document.erase({"as_int64"});
  if (row.string_at({"in", "raw"}) == "null") document.erase({"format"});
  if (text_at(row, "op") == "mul") document.erase({"exact"});
  if (has_tag(row, "value_not_exact")) document.erase({"value"});
  if (has_tag(row, "milli_not_exact")) document.erase({"milli"});
  return document;
}

Json outcome(const Result<Quantity>& parsed) {
  if (!parsed) return Json::object({{"ok", false}, {"error", parsed.error().text()}});
  Json got = description(*parsed);
  got["ok"] = true;
  return got;
}

Json run(std::string_view op, const Json& in, const Json& want) {
  if (op == "parse") return outcome(parse_quantity(text_at(in, "text")));
  if (op == "json") {
    const auto parsed = parse_quantity_token(text_at(in, "raw"));
    Json got = outcome(parsed);
    if (parsed) got["marshal"] = '"' + parsed->to_string() + '"';
    return got;
  }
  if (op == "cmp") {
    const auto order = quantity(text_at(in, "a")) <=> quantity(text_at(in, "b"));
    return Json::object({{"result", order < 0 ? -1 : (order > 0 ? 1 : 0)}, {"equal", order == 0}});
  }
  if (op == "add") return description(quantity(text_at(in, "a")) + quantity(text_at(in, "b")));
  if (op == "sub") return description(quantity(text_at(in, "a")) - quantity(text_at(in, "b")));
  if (op == "sum") {
    Quantity sum = Quantity::of_units(0, parse_format(text_at(in, "start_format")));
    for (const Json& term : *in.find("terms")->if_array()) sum += quantity(*term.if_string());
    return description(sum);
  }
  if (op == "neg") return description(-quantity(text_at(in, "text")));
  if (op == "mul") return description(quantity(text_at(in, "text")) *= in.find("by")->if_int64().value_or(0));
  if (op == "round_up") {
    const Quantity before = quantity(text_at(in, "text"));
    const Quantity after = before.rounded_up(integer_at(in, "scale"));
    Json got = description(after);
    got["exact"] = after == before;
    return got;
  }
  if (op == "scaled_value") {
    if (want.find("result") == nullptr) return Json::object();
    return Json::object({{"result", quantity(text_at(in, "text")).scaled_value(integer_at(in, "scale"))}});
  }
  const std::int64_t number = in.find("number")->if_int64().value_or(0);
  if (op == "new") return description(Quantity::of_units(number, parse_format(text_at(in, "format"))));
  if (op == "new_milli") return description(Quantity::of_milli(number, parse_format(text_at(in, "format"))));
  return description(Quantity::of_scaled(number, integer_at(in, "scale")));
}

std::optional<Mismatch> check_quantity(const Json& row) {
  const Json& want = *row.find("want");
  const std::string_view op = text_at(row, "op");
  if (op == "scaled_value" && has_tag(row, "value_not_exact")) return std::nullopt;
  return support::compare(comparable(row, want), comparable(row, run(op, *row.find("in"), want)));
}

/// A description of the eviction vectors; "exact" is a plain decimal whose trailing zeros carry no meaning.
Json eviction_description(const Quantity& q, const Json& want) {
  Json got = Json::object({{"format", format_text(q.format())}, {"string", q.to_string()}, {"sign", q.sign()}});
  if (want.find("value") != nullptr) got["value"] = q.value();
  const std::string_view exact = text_at(want, "exact");
  got["exact"] = quantity(exact) == q ? Json(exact) : Json(q.canonical());
  return got;
}

std::optional<Mismatch> check_eviction_quantity(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("out");
  const std::string_view function = text_at(row, "fn");
  if (function == "fromInteger") {
    const auto number =
        Quantity::of_units(in.find("value")->if_int64().value_or(0), parse_format(text_at(in, "format")));
    return support::compare(want, Json::object({{"string", number.to_string()}}));
  }
  if (function == "arith") {
    const Quantity a = quantity(text_at(in, "a"));
    const Quantity b = quantity(text_at(in, "b"));
    const auto order = a <=> b;
    return support::compare(want, Json::object({{"cmp", order < 0 ? -1 : (order > 0 ? 1 : 0)},
                                                {"add", eviction_description(a + b, *want.find("add"))},
                                                {"sub", eviction_description(a - b, *want.find("sub"))}}));
  }
  const auto parsed = parse_quantity(text_at(in, "text"));
  if (!parsed) {
    return support::compare(want, Json::object({{"ok", false}, {"errors", Json::array({parsed.error().text()})}}));
  }
  Json got = eviction_description(*parsed, want);
  got["ok"] = true;
  return support::compare(want, got);
}

const bool kQuantity = support::add_vector_check("admission/quantity", check_quantity);
const bool kEvictionQuantity = support::add_vector_check("eviction/quantity", check_eviction_quantity);

}  // namespace
}  // namespace spillway::api
