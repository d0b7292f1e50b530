// Requests that write, from HTTP to Writer and Remover and back: POST, PUT, PATCH, DELETE, on objects, collections and
// the status, finalize, approval, ephemeralcontainers and resize endpoints.
// Thread: loop. Source: spec "API server contract", 3.3, 4.8, 8, 10, 11.
#pragma once

#include "api/patch/patch.h"
#include "apiserver/access/authorizer.h"
#include "apiserver/read/core.h"
#include "apiserver/read/reader.h"
#include "apiserver/request/exchange.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/renewals.h"
#include "apiserver/write/writer.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class WritePath {
 public:
  WritePath(Core& core, Writer& writer, Renewals& renewals, Remover& remover, Reader& reader,
            const Authorizer& authorizer)
      : core_(core),
        writer_(writer),
        renewals_(renewals),
        remover_(remover),
        reader_(reader),
        authorizer_(authorizer) {}

  void create(const ExchangePtr& exchange);
  void update(const ExchangePtr& exchange);
  void patch(const ExchangePtr& exchange);
  void remove(const ExchangePtr& exchange);
  void remove_collection(const ExchangePtr& exchange);

  /// DeleteOptions of the body or, without one, of the query.
  static api::StatusResult<DeleteOptions> delete_options(const Exchange& exchange);
  /// User, field manager and time of a request's write.
  static WriteContext context_of(const ExchangePtr& exchange, const WriteOptions& options);

 private:
  struct Sweep;

  void update_generally(const ExchangePtr& exchange);
  void patch_generally(const ExchangePtr& exchange, api::PatchType type);
  /// Renews a lease in place. True: the request was a heartbeat and is answered. `general`: continues other requests.
  bool renew(const ExchangePtr& exchange, RenewalForm form, std::string_view options, std::function<void()> general);
  api::DocumentPtr kept_document(const Route& route) const;
  void remove_converted(const std::shared_ptr<Sweep>& sweep, const Selection& selection);
  void sweep_converted(const std::shared_ptr<Sweep>& sweep, const Selection& selection,
                       const api::StatusResult<std::vector<ObjectPtr>>& converted);
  void continue_sweep(const std::shared_ptr<Sweep>& sweep);
  void apply(const ExchangePtr& exchange);
  /// Checks that the requestor may create the object that its PUT or apply patch names, if that does not exist.
  api::StatusResult<void> check_create(const Exchange& exchange) const;
  void answer(const ExchangePtr& exchange, api::StatusResult<Written> result);

  Core& core_;
  Writer& writer_;
  Renewals& renewals_;
  Remover& remover_;
  Reader& reader_;
  const Authorizer& authorizer_;
};

}  // namespace spillway::apiserver
