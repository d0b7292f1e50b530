#include "apps/server/etcd.h"

#include "apps/process/host_name.h"
#include "base/file.h"
#include "runtime/entropy.h"
#include "store/etcd/etcd_store.h"
#include "store/etcd/grpc/grpc_transport.h"

#include <utility>

namespace spillway::apps {
namespace {

/// Empty: none is named.
Result<std::string> read_if_named(const std::string& path) {
  return path.empty() ? Result<std::string>(std::string()) : read_file(path);
}

}  // namespace

Result<std::unique_ptr<store::Store>> open_etcd_store(const cli::EtcdArgs& args, const std::string& name,
                                                      store::Poster post, telemetry::Log log,
                                                      telemetry::Registry& metrics) {
  store::GrpcTransportOptions options{.servers = args.servers,
                                      .ca_pem = {},
                                      .certificate_pem = {},
                                      .key_pem = {},
                                      .username = args.username,
                                      .password = {}};
  for (const auto& [path, pem] :
       {std::pair(&args.ca_file, &options.ca_pem), std::pair(&args.certificate_file, &options.certificate_pem),
        std::pair(&args.key_file, &options.key_pem)}) {
    SPILLWAY_TRY(read, read_if_named(*path));
    *pem = std::move(read);
  }
  SPILLWAY_TRY(password, read_if_named(args.password_file));
  options.password = password.substr(0, password.find_first_of("\r\n"));
  SPILLWAY_TRY(transport, store::GrpcTransport::create(options, post));
  store::EtcdOptions kept;
  kept.name = name;
  kept.prefix = args.prefix;
  kept.lease_reuse = seconds(args.lease_reuse_seconds);
  kept.seed = runtime::entropy();
  kept.log = std::move(log);
  kept.metrics = &metrics;
  return std::unique_ptr<store::Store>(
      std::make_unique<store::EtcdStore>(std::move(transport), std::move(post), std::move(kept)));
}

Result<std::string> server_name(const std::string& data_dir) {
  const std::string path = data_dir + "/server-name";
  auto kept = read_file(path);
  if (kept && !kept->empty()) return *std::move(kept);
  if (!kept && kept.error().code != ErrorCode::kNotFound) return kept.error();
  const std::string made = fmt::format("{}.{:016x}", host_name(), runtime::entropy());
  SPILLWAY_TRY_VOID(replace_file(path, made));
  return made;
}

}  // namespace spillway::apps
