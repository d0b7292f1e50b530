#include "apiserver/subresource/eviction.h"

#include "apiserver/request/body.h"
#include "apiserver/write/write_path.h"

#include <memory>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

void EvictionPath::create(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const auto write_options = parse_write_options(exchange->target, "CreateOptions");
  if (!write_options) return exchange->fail(write_options.error());
  const auto body = read_object(exchange->request(), *api::find_kind("policy/v1", "Eviction"),
                                write_options->field_validation, exchange->warnings);
  if (!body) return exchange->fail(body.error());
  if (const auto same = check_namespace_matches(*body, route.ns); !same) return exchange->fail(same.error());
  if (const std::string_view name = body->string_at({"metadata", "name"}); name != route.name) {
    return exchange->fail(make_error(ErrorCode::kBadRequest,
                                     "the name in the Eviction ({}) does not match the name on the URL ({})", name,
                                     route.name));
  }
  const api::Json none = api::Json::object();
  const api::Json* given = body->find("deleteOptions");
  const auto options = parse_delete_options(api::Target{}, given != nullptr ? given : &none);
  if (!options) return exchange->fail(options.error());

  WriteContext context = WritePath::context_of(exchange, *write_options);
  context.dry_run = context.dry_run || options->dry_run;
  DeleteOptions deletion = *options;
  deletion.dry_run = context.dry_run;
  std::make_shared<PodEviction>(tools_, exchange, std::move(context), std::move(deletion))->advance();
}

}  // namespace spillway::apiserver
