// Which objects of a resource a list, watch or deletecollection is about: namespace, name, labels, fields.
// Thread: any (pure). Source: spec "API server contract", 9.4, 9.5.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/object/selector.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/request/route.h"

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
  };

  std::string ns;  // of the path; empty: all namespaces
  api::LabelSelector labels;
  std::vector<FieldTerm> fields;

  bool matches(const StoredObject& object) const;

  /// Labels and fields select nothing away.
  bool is_everything() const { return labels.is_everything() && fields.empty(); }

  /// Only names and namespaces select: what matches once does so for good.
  bool is_by_name() const;

  /// The one name that can match (metadata.name=…), if the selection pins it.
  std::optional<std::string_view> name() const;
  /// The one value of the first extracted field that can match (spec.nodeName of pods), if the selection pins it.
  std::optional<std::string_view> first_field() const;

  /// Keys of matching objects start with this.
  std::string key_prefix() const { return ns.empty() ? std::string() : ns + "/"; }
};

/// kBadRequest: a malformed selector, or a field the resource does not offer.
api::StatusResult<Selection> parse_selection(const Route& route, const api::Target& target);

}  // namespace spillway::apiserver
