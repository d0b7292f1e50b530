// vectors api/table_rows: the cells of a row, from the object and the time alone.
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/resource/resource_registry.h"
#include "support/vectors.h"

namespace spillway::apiserver {

namespace {

std::optional<support::Mismatch> check_row(const api::Json& row) {
  static const ResourceRegistry registry(kinds::kind_rows());
  const api::Json& object = *row.find("object");
  const Resource* resource = registry.find_kind(object.string_at({"apiVersion"}), object.string_at({"kind"}));
  const auto now = api::parse_time(row.string_at({"now"}));
  if (resource == nullptr || resource->hooks->table_row == nullptr || !now) {
    return support::Mismatch{"a table for this kind", "none"};
  }
  const TableRow got = resource->hooks->table_row(object, *now);
  api::Json shown = api::Json::object({{"cells", api::Json(got.cells)}});
  if (!got.conditions.is_null()) shown["conditions"] = got.conditions;
  api::Json want = *row.find("expected");
  if (resource->hooks->columns.size() != got.cells.size()) {
    return support::Mismatch{fmt::format("{} cells", resource->hooks->columns.size()), api::to_text(shown)};
  }
  return support::compare(want, shown);
}

const bool kTableRows = support::add_vector_check("api/table_rows", check_row);

}  // namespace

}  // namespace spillway::apiserver
