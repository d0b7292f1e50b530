// Selects the objects of a list, watch or deletecollection: namespace, name, labels, fields. Thread: any (pure).
// Source: spec "API server contract", 9.4, 9.5.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/object/selector.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/request/route.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

struct Selection {
  struct FieldTerm {
    enum class Of { kName, kNamespace, kExtracted };
    Of of = Of::kExtracted;
    std::size_t index = 0;  // into Extract::fields
    bool equal = true;
    std::string value;

    friend bool operator==(const FieldTerm&, const FieldTerm&) = default;
  };

  std::string ns;  // the path's; empty: all namespaces
  api::LabelSelector labels;
  std::vector<FieldTerm> fields;

  bool matches(const StoredObject& object) const;

  /// True if neither labels nor fields narrow the selection.
  bool is_everything() const { return labels.is_everything() && fields.empty(); }

  /// True if only names and namespaces select: an object that matches once always does.
  bool is_by_name() const;

  /// The only name that can match (metadata.name=…), if the selection fixes it.
  std::optional<std::string_view> name() const;
  /// The only value of the first extracted field that can match (spec.nodeName of pods), if the selection fixes it.
  std::optional<std::string_view> first_field() const;

  /// Steps of one match, at most: one for each term and for each eight values.
  std::size_t steps() const;
  /// The cost of one match in a slice (SliceBudget), as much as so many bytes of text.
  std::size_t visit_cost() const;

  friend bool operator==(const Selection&, const Selection&) = default;

  /// The key prefix of all matching objects.
  std::string key_prefix() const { return ns.empty() ? std::string() : ns + "/"; }
};

/// Steps of a comparison of labels with a selector, at most.
std::size_t match_steps(const api::LabelSelector& selector);

/// Steps of comparing objects with a selector in one turn: some 30 ms.
inline constexpr std::size_t kSelectStepsMax = 500'000;

/// 413: the comparison takes more.
api::Status too_long_selector();

/// kBadRequest: a malformed selector, or a field the resource does not offer.
api::StatusResult<Selection> parse_selection(const Route& route, const api::Target& target);

}  // namespace spillway::apiserver
