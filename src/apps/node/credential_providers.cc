#include "apps/node/credential_providers.h"

#include "yaml/yaml_document.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace spillway::apps {
namespace {

constexpr const char* kFileFlag = "--image-credential-provider-config";
constexpr const char* kDirectoryFlag = "--image-credential-provider-bin-dir";

}  // namespace

Result<std::vector<agent::CredentialProvider>> read_credential_providers(const cli::NodeArgs& args) {
  if (args.credential_plugin_file.empty() && args.credential_plugin_dir.empty())
    return std::vector<agent::CredentialProvider>();
  if (args.credential_plugin_file.empty()) return invalid(kDirectoryFlag, "expected {} as well", kFileFlag);
  if (args.credential_plugin_dir.empty()) return invalid(kFileFlag, "expected {} as well", kDirectoryFlag);
  SPILLWAY_TRY(document, yaml::read_file(args.credential_plugin_file));
  agent::CredentialProviders parsed = agent::parse_credential_providers(document.value);
  if (!parsed.errors.empty()) {
    const std::size_t more = parsed.errors.size() - 1;
    return invalid(args.credential_plugin_file, "{}{}", parsed.errors.front(),
                   more == 0 ? std::string() : fmt::format(" (and {} more)", more));
  }
  for (const agent::CredentialProvider& each : parsed.providers) {
    const std::string program = fmt::format("{}/{}", args.credential_plugin_dir, each.name);
    if (::access(program.c_str(), X_OK) != 0)
      return invalid(args.credential_plugin_file, "provider \"{}\": expected a program {}", each.name, program);
  }
  return std::move(parsed.providers);
}

}  // namespace spillway::apps
