// Documents seen as sets of owned fields: the paths of a document, the differences between two documents, the merge of
// an applied document into a live one, and the removal of fields. The schema defines where ownership ends: at scalars
// and at atomic lists, maps and structs.
// Thread: any (pure). Source: Kubernetes docs, "Server-Side Apply", merge strategy; spec "API server contract", 10.5.
#pragma once

#include "api/json/json.h"
#include "api/schema/field_set.h"
#include "api/schema/schema.h"
#include "base/error.h"

namespace spillway::api {

/// Owned paths of a document: scalars, atomic values, empty objects, and elements of keyed lists and sets.
/// kBadRequest: a list element without its keys, or two with the same.
Result<FieldSet> fields_of(const Type& type, const Json& document);

struct FieldChanges {
  FieldSet added;     // with the objects and elements that were added with them
  FieldSet modified;  // other value
  FieldSet removed;
};

/// The changes from `before` to `after`, both in canonical form.
FieldChanges compare_fields(const Type& type, const Json& before, const Json& after);

/// `config` laid over `live`: atomic values are replaced, everything else merges. Keyed lists and sets: elements of
/// both follow the order of `config`, the others keep their place. `config` has passed fields_of.
Json merge_applied(const Type& type, const Json& live, const Json& config);

/// Removes the fields that are in `last` but not in `keep`; an object or element is removed with its content.
Json remove_fields(const Type& type, const Json& document, const FieldSet& last, const FieldSet& keep);

}  // namespace spillway::api
