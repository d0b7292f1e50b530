// A network of the Container Network Interface, parsed from its configuration file: plug-ins that are called one after
// the other, with the input of each. Thread: any (values). Source: CNI specification 1.0.0, sections 1, 2, 4.
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

struct CniList {
  std::string name;
  std::string version;  // the specification's, for all its plug-ins
  bool disable_check = false;
  std::vector<api::Json> plugins;  // not empty; each has a type
};

/// A `.conflist` file, or a `.conf` or `.json` file with one plug-in. kInvalid: no such configuration, or one of a
/// version other than 0.3.0 to 1.0.0. `at`: the file's name in errors.
Result<CniList> parse_cni_list(std::string_view text, std::string_view at);

/// Reads the first file of the directory by name that ends in .conflist, .conf or .json. kNotFound: there is none.
/// kInvalid: it is no configuration; later files are not tried, so that a mistake does not choose another network.
Result<CniList> read_cni_list(const std::string& directory);

/// The input of one plug-in. `capabilities`: values by name (portMappings, bandwidth, …), of which a plug-in gets those
/// that it lists. `previous`: the result so far; null: none.
std::string cni_input(const CniList& list, const api::Json& plugin, const api::Json& capabilities,
                      const api::Json& previous);

/// True if plug-ins of that version support `operation` ("CHECK") or accept a result at DEL: both since 0.4.0.
bool cni_has_check(const CniList& list);

/// The pod's addresses in a result, without prefix: those of interfaces in a sandbox, at most one of each family.
std::vector<std::string> addresses_in(const api::Json& result);

}  // namespace spillway::host
