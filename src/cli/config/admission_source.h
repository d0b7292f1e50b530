// A configuration file of admission plug-ins while it is parsed: the places of its values, and their errors. Thread:
// any.
#pragma once

#include "api/json/json.h"
#include "yaml/yaml_document.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cli {

/// The place of a value: for people ("plugins[0].configuration") and for yaml::Document ("plugins[0][configuration]").
struct AdmissionPlace {
  std::string path;
  std::string origin;

  AdmissionPlace member(std::string_view name) const;
  AdmissionPlace element(std::size_t index) const;
};

/// The file, its document and the list of errors outlive it.
class AdmissionSource {
 public:
  AdmissionSource(const std::string& file, const yaml::Document& document, std::vector<std::string>& errors)
      : file_(file), document_(document), errors_(errors) {}

  const api::Json& root() const { return document_.value; }

  /// "FILE:LINE".
  std::string at(const AdmissionPlace& place) const;
  void wrong(const AdmissionPlace& place, std::string_view what);
  /// False, with an error, if this is no mapping; members other than `known` are reported, with the nearest known one.
  bool is_mapping(const api::Json& value, const AdmissionPlace& place, std::span<const std::string_view> known);
  /// Adds an error unless `kind` and `apiVersion` are these.
  void check_kind(const api::Json& value, const AdmissionPlace& place, std::string_view kind,
                  std::span<const std::string_view> versions);
  /// A list of strings that may be absent; other types are reported.
  std::vector<std::string> strings(const api::Json& value, const AdmissionPlace& place, std::string_view name);
  /// A string that may be absent: "".
  std::string string(const api::Json& value, const AdmissionPlace& place, std::string_view name);
  /// The elements of a list that may be absent: empty.
  std::span<const api::Json> elements(const api::Json& value, const AdmissionPlace& place, std::string_view name);

 private:
  const std::string& file_;
  const yaml::Document& document_;
  std::vector<std::string>& errors_;
};

}  // namespace spillway::cli
