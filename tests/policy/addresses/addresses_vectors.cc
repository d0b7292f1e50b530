// vectors/network: cidr_set, service_bands.
#include "policy/addresses/cidr_set.h"
#include "policy/addresses/ip_blocks.h"
#include "policy/addresses/service_bands.h"
#include "support/vectors.h"

#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace spillway::addresses {
namespace {

using api::Json;
using support::Mismatch;

Json outcome_of(const Outcome& outcome) {
  return outcome ? Json::object({{"ok", true}}) : Json::object({{"error", outcome.error().message}});
}

Json apply(CidrSet& set, const Json& op) {
  const std::string_view name = op.string_at({"op"});
  if (name == "allocate") {
    const auto block = set.allocate();
    return block ? Json::object({{"cidr", to_text(*block)}}) : Json::object({{"error", block.error().message}});
  }
  const auto range = api::parse_ip_range(op.string_at({"cidr"}));
  if (!range) return "unreadable";
  if (name == "occupy") return outcome_of(set.occupy(*range));
  return name == "release" ? outcome_of(set.release(*range)) : Json("unknown operation");
}

std::optional<Mismatch> check_cidr_set(const Json& row) {
  const Json& in = *row.find("in");
  const auto cluster = api::parse_ip_range(in.string_at({"clusterCIDR"}));
  if (!cluster) return Mismatch{"a range", "unreadable"};
  auto set = CidrSet::create(*cluster, static_cast<int>(*in.find("nodeMaskSize")->if_int64()));
  if (!set) return support::compare(*row.find("want"), Json::object({{"error", set.error().message}}));
  Json results = Json::array();
  for (const Json& op : *in.find("ops")->if_array()) results.if_array()->push_back(apply(*set, op));
  return support::compare(*row.find("want"), Json::object({{"maxBlocks", static_cast<std::int64_t>(set->blocks_max())},
                                                           {"results", std::move(results)}}));
}

template <typename ValueAt>
void put_bands(Json& got, const Bands& bands, const ValueAt& value_at) {
  if (bands.count == 0) return;
  got["first"] = value_at(0);
  got["last"] = value_at(bands.count - 1);
  got["dynamicFirst"] = value_at(bands.offset);
  got["dynamicLast"] = value_at(bands.count - 1);
  if (bands.offset == 0) return;
  got["staticFirst"] = value_at(0);
  got["staticLast"] = value_at(bands.offset - 1);
}

/// From any start: the dynamic band whole, each number once, and then one of the static band.
bool static_comes_last(const Bands& bands) {
  for (const std::uint64_t start : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    std::set<std::uint64_t> seen;
    const std::uint64_t dynamic = bands.count - bands.offset;
    for (std::uint64_t step = 0; step < dynamic; ++step) seen.insert(number_at(bands, start, step));
    if (seen.size() != dynamic || *seen.begin() != bands.offset || *seen.rbegin() != bands.count - 1) return false;
    if (number_at(bands, start, dynamic) >= bands.offset) return false;
  }
  return true;
}

std::optional<Mismatch> check_service_bands(const Json& row) {
  const Json& in = *row.find("in");
  Json want = *row.find("want");
  Json got = Json::object();
  Bands bands;
  if (in.string_at({"kind"}) == "clusterIP") {
    const auto range = api::parse_ip_range(in.string_at({"cidr"}));
    if (!range) return Mismatch{"a range", "unreadable"};
    const AddressBands all = address_bands(*range);
    bands = all.bands;
    got["rangeSize"] = static_cast<std::int64_t>(all.range_size);
    got["allocatable"] = static_cast<std::int64_t>(bands.count);
    put_bands(got, bands, [&](std::uint64_t number) { return Json(to_text(nth_block(all.first, number, 0))); });
  } else {
    const std::string_view text = in.string_at({"range"});
    std::int64_t first = 0;
    std::int64_t last = 0;
    const auto [dash, ec] = std::from_chars(text.data(), text.data() + text.size(), first);
    if (ec != std::errc{} || std::from_chars(dash + 1, text.data() + text.size(), last).ec != std::errc{}) {
      return Mismatch{"a range", "unreadable"};
    }
    bands = port_bands(static_cast<std::uint64_t>(last - first + 1));
    got["rangeSize"] = last - first + 1;
    put_bands(got, bands, [&](std::uint64_t number) { return Json(first + static_cast<std::int64_t>(number)); });
  }
  got["offset"] = static_cast<std::int64_t>(bands.offset);
  if (want.find("afterDynamicIsFull") != nullptr) {
    got["afterDynamicIsFull"] = static_comes_last(bands) ? "static band" : "another order";
  }
  return support::compare(want, got);
}

const bool kCidrSet = support::add_vector_check("network/cidr_set", check_cidr_set);
const bool kServiceBands = support::add_vector_check("network/service_bands", check_service_bands);

}  // namespace
}  // namespace spillway::addresses
