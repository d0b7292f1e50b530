// vectors/pod-lifecycle: stream_options.
#include "api/stream/stream_options.h"
#include "support/vectors.h"

namespace spillway::api {
namespace {

using support::Mismatch;

std::optional<Mismatch> stream_options(const Json& row) {
  const auto target = parse_target(fmt::format("/exec/ns/p/c?{}", row.find("in")->string_at({"query"})));
  const Result<StreamOptions> options = target ? parse_stream_options(*target) : Result<StreamOptions>(target.error());
  const Json got =
      options ? Json::object(
                    {{"stdin", options->in}, {"stdout", options->out}, {"stderr", options->err}, {"tty", options->tty}})
              : Json::object({{"error", options.error().message}});
  return support::compare(*row.find("want"), got);
}

const bool kStreamOptions = support::add_vector_check("pod-lifecycle/stream_options", stream_options);

}  // namespace
}  // namespace spillway::api
