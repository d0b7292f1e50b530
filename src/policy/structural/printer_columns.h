// Columns that a CustomResourceDefinition adds to tables of its objects. Thread: any (pure). Source: Kubernetes docs,
// "Extend the Kubernetes API with CustomResourceDefinitions", additional printer columns.
#pragma once

#include "api/json/json.h"
#include "policy/structural/json_path.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::structural {

struct PrinterColumn {
  std::string name;
  std::string type;  // integer, number, string, boolean, date
  std::string format;
  std::string description;
  std::int32_t priority = 0;
  JsonPath path;
};

/// Parses one entry of additionalPrinterColumns; nullopt: its path is malformed.
std::optional<PrinterColumn> read_printer_column(const api::Json& column);

/// Null: the value is absent, or of another type. A string column shows other types as JSON, a date column shows the
/// text.
api::Json printer_cell(const PrinterColumn& column, const api::Json& object);

}  // namespace spillway::structural
